"""The command line's library describes the arguments of a command anew up to six times for each line that it parses.

That takes longer than many commands do. In a process that runs thousands of them the description is made once, and each
line is parsed with a copy.
"""

from collections.abc import Hashable
from copy import copy

import pytest
from cyclopts import App, ArgumentCollection, Parameter

_collections: dict[Hashable, tuple[App, ArgumentCollection]] = {}
"""With the command of each, so that its id is never that of another."""
_assemble = App.assemble_argument_collection


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
    copies = {id(argument): copy(argument) for argument in collection}
    for argument in copies.values():
        argument.tokens = []
        argument.children = ArgumentCollection(copies[id(child)] for child in argument.children)
    return ArgumentCollection(copies.values())


def install(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(App, "assemble_argument_collection", _assemble_once)
