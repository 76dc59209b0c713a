"""Caches what the library of the command line computes for each parsed line.

It describes the arguments of a command up to six times per line, which takes longer than many commands. Cached are: the
arguments of a command, of which each line gets a copy; the groups of commands; the names that match an argument and those
that do not; the number of words of a type; the validators of types; and the texts of completion scripts.
"""

from collections.abc import Hashable, Iterator
from functools import cache
from typing import Any

import pydantic
from cyclopts import App, ArgumentCollection, Parameter, _convert, app_stack, core
from cyclopts.argument import Argument, _argument
from cyclopts.command_spec import CommandSpec
from cyclopts.completion import _base, zsh

_collections: dict[Hashable, tuple[App, ArgumentCollection]] = {}
"""With the command of each, so that its id is never that of another."""
_groups: dict[int, tuple[App, Hashable, list[Any]]] = {}
_mismatches: dict[Hashable, Argument] = {}
_negatives: dict[Hashable, tuple[Argument, tuple[str, ...]]] = {}
_fields = [field for name in Argument.__slots__ if name != "__weakref__" for field in [Argument.__dict__[name]]]
_assemble = App.assemble_argument_collection
_inverse_groups = app_stack.inverse_groups_from_app  # pyright: ignore[reportPrivateImportUsage]
_match = Argument._match_name
_negatives_of = Argument.negatives.fget
_token_count = _convert.token_count
_token_count_of_type = cache(_token_count)
_validate = Argument.validate
_Adapter = pydantic.TypeAdapter
_adapter = cache(_Adapter)
_strip_markup = cache(_base.strip_markup)


def _assemble_once(
    app: App, *, default_parameter: Parameter | None = None, parse_docstring: bool = False
) -> ArgumentCollection:
    inherited = Parameter.combine(app.app_stack.default_parameter, default_parameter)
    key = id(app), app.default_command, parse_docstring, inherited
    if key not in _collections:
        collection = _assemble(app, default_parameter=default_parameter, parse_docstring=parse_docstring)
        _collections[key] = app, collection
    return _unused(_collections[key][1])


def _unused(collection: ArgumentCollection) -> ArgumentCollection:
    """Arguments without a value, which belong to one another like the originals."""
    copies = {id(argument): _copy(argument) for argument in collection}
    for argument in copies.values():
        argument.tokens = []
        argument.children = ArgumentCollection(copies[id(child)] for child in argument.children)
    return ArgumentCollection(copies.values())


def _copy(argument: Argument) -> Argument:
    copied = Argument.__new__(Argument)
    for field in _fields:
        field.__set__(copied, field.__get__(argument))
    return copied


def _groups_once(app: App, resolve_lazy: bool = False) -> list[Any]:
    """The groups of a command's commands, until it gets another one or one of them is imported."""
    state = resolve_lazy, [(id(one), isinstance(one, CommandSpec) and one.is_resolved) for one in _commands(app)]
    found = _groups.get(id(app))
    if found is None or found[1] != state:
        found = _groups[id(app)] = app, state, _inverse_groups(app, resolve_lazy=resolve_lazy)
    return found[2]


def _commands(app: App) -> Iterator[App | CommandSpec]:
    for one in (app, app._meta, app._meta_parent, *app._flattened_subapps):
        if one is not None:
            yield from one._commands.values()


def _match_once(argument: Argument, term: str, **how: Any) -> tuple[tuple[str, ...], Any]:
    """Whether a word names an argument. Copies of an argument share what the answer depends on."""
    key = id(argument.parameter), id(argument.field_info), term, *how.items()
    if key in _mismatches:
        raise ValueError
    try:
        return _match(argument, term, **how)
    except ValueError:
        _mismatches[key] = argument
        raise


def _negatives_once(argument: Argument) -> tuple[str, ...]:
    key = id(argument.parameter), id(argument.field_info)
    if key not in _negatives:
        _negatives[key] = argument, _negatives_of(argument)
    return _negatives[key][1]


def _token_count_once(type_: Any, skip_converter_params: bool = False, upcoming_tokens: Any = None) -> tuple[int, bool]:
    if not upcoming_tokens:
        try:
            return _token_count_of_type(type_, skip_converter_params)
        except TypeError:  # what it is annotated with has no hash
            pass
    return _token_count(type_, skip_converter_params, upcoming_tokens)


def _adapter_once(hint: Any) -> Any:
    try:
        return _adapter(hint)
    except TypeError:  # what it is annotated with has no hash
        return _Adapter(hint)


def _validate_quickly(argument: Argument, value: Any) -> Any:
    pydantic.TypeAdapter = _adapter_once
    try:
        return _validate(argument, value)
    finally:
        pydantic.TypeAdapter = _Adapter


def install() -> None:
    """Change the library for the rest of this process."""
    for owner, name, changed in (
        (App, "assemble_argument_collection", _assemble_once),
        (app_stack, "inverse_groups_from_app", _groups_once),
        (core, "validate_command", cache(core.validate_command)),
        (Argument, "__copy__", _copy),
        (Argument, "negatives", property(_negatives_once)),
        (_convert, "token_count", _token_count_once),
        (_argument, "token_count", _token_count_once),
        (Argument, "_match_name", _match_once),
        (Argument, "validate", _validate_quickly),
        (_base, "strip_markup", _strip_markup),
        (zsh, "strip_markup", _strip_markup),
    ):
        setattr(owner, name, changed)
