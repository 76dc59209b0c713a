"""Spelling of names in skill documents: snake_case and camelCase keys, and suggestions for unknown names.

Documents may spell keys in snake_case or camelCase. `canonical` converts them to snake_case and keeps the original
spelling, so that errors show the author's keys. Values are not checked here, except null. `root` is the document
class of the venue.
"""

import re
import types
import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

from pydantic.fields import FieldInfo

from pitboss.core.suggestion import fold_spelling, nearest_spelling
from pitboss.skill.parse import Path
from pitboss.skill.schema import Part, SkillDocument


@dataclass(frozen=True, slots=True)
class SkillError:
    """One error: its path in the document, the message, and a hint."""

    path: str
    message: str
    hint: str = ""
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Canonical:
    """A document in snake_case. `written` maps canonical paths to the author's own keys where they differ."""

    value: Any
    written: dict[Path, str] = field(default_factory=dict[Path, str])
    errors: list[tuple[Path, str, str]] = field(default_factory=list[tuple[Path, str, str]])


def canonical(plain: Any, root: type[SkillDocument]) -> Canonical:
    """Convert every known key to snake_case; keys given in both spellings and nulls are errors."""
    result = Canonical(None)
    return Canonical(_walk(plain, root, (), result, root.nullable), result.written, result.errors)


def _walk(value: Any, part: type[Part] | None, path: Path, document: Canonical, nullable: frozenset[str]) -> Any:
    if isinstance(value, list):
        return [
            _walk(item, part, (*path, index), document, nullable) for index, item in enumerate(cast("list[Any]", value))
        ]
    if not isinstance(value, dict) or part is None:
        return cast("Any", value)
    result: dict[str, Any] = {}
    names = _camel_names(part)
    for key, item in cast("dict[str, Any]", value).items():
        name = names.get(key, key)
        here = (*path, name)
        if name in result:
            message = f"{key} and {document.written.get(here, name)} are two spellings of one key"
            document.errors.append((here, message, "keep one of them"))
            continue
        if name != key:
            document.written[here] = key
        if item is None and name in part.model_fields and dotted(here) not in nullable:
            document.errors.append((here, "has no value", "write a value or leave the key out"))
            continue
        info = part.model_fields.get(name)
        result[name] = _walk(item, part_of(info) if info else None, here, document, nullable)
    return result


def dotted(path: Iterable[str | int]) -> str:
    """Format a path, such as `context.symbols[1]`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


@cache
def _camel_names(part: type[Part]) -> dict[str, str]:
    return {re.sub(r"_([a-z])", lambda match: match[1].upper(), name): name for name in part.model_fields}


@cache
def _part_in(annotation: Any) -> type[Part] | None:
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return annotation
    return next((part for inner in typing.get_args(annotation) if (part := _part_in(inner))), None)


def part_of(info: FieldInfo) -> type[Part] | None:
    """The part of a skill that a field holds, or holds a list of."""
    return _part_in(info.annotation)


def takes_text(info: FieldInfo) -> bool:
    """Whether the field's value is text or an enumeration of words."""
    arms = _arms(info.annotation)
    return all(arm is str or isinstance(arm, str) for arm in arms)


def takes_list(info: FieldInfo) -> bool:
    """Whether the field's value is a list."""
    return any(typing.get_origin(arm) is tuple for arm in _arms(info.annotation))


def _arms(annotation: Any) -> list[Any]:
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _arms(typing.get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        return [arm for inner in typing.get_args(annotation) if inner is not type(None) for arm in _arms(inner)]
    return list(typing.get_args(annotation)) if origin is typing.Literal else [annotation]


def fields(part: type[Part], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    """Every field of a skill with its path, in document order; a part comes before its own fields."""
    for name, info in part.model_fields.items():
        yield (*path, name), info
        inner = part_of(info)
        if inner:
            yield from fields(inner, (*path, name))


def field_at(path: Path, root: type[Part]) -> FieldInfo | None:
    """The field that a canonical path leads to, list positions ignored."""
    return _by_path(root).get(tuple(part for part in path if isinstance(part, str)))


@cache
def _by_path(root: type[Part]) -> dict[tuple[str, ...], FieldInfo]:
    return dict(fields(root))


def keys_at(path: Path, root: type[Part]) -> list[str]:
    """The keys that exist inside the part at a path."""
    info = field_at(path, root)
    part = part_of(info) if info else root
    return list(part.model_fields) if part else []


def nearest_key(path: Path, root: type[Part]) -> str | None:
    """The known key most similar to an unknown one: among its siblings first, then anywhere in a skill."""
    key = str(path[-1])
    sibling = nearest_spelling(key, keys_at(path[:-1], root))
    if sibling:
        return sibling
    elsewhere = {fold_spelling(path_parts[-1]): dotted(path_parts) for path_parts in reversed(list(_by_path(root)))}
    return elsewhere.get(fold_spelling(key))
