"""`WebSection`: pages that a venue adds to the web app, as values: the server mounts them and asks for the roles.

A venue cannot import the server, so it gives its content as markup and its actions as functions. It is named by `Venue.web`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import InvariantError
from pitboss.report.markup import Html
from pitboss.runs.venues import venues


@dataclass(frozen=True, slots=True)
class WebRequest:
    """What a page or an action is asked with. `workspace` is bounded to the caller's owner."""

    workspace: Workspace
    owner: str
    """Whose rows the caller may see."""
    can_operate: bool = False
    """Whether the caller may carry out actions."""
    values: Mapping[str, str] = field(default_factory=dict[str, str])
    """The part of the path in braces, and the query."""


class PageNotFound(Exception):
    """What the path of a page names does not exist."""


@dataclass(frozen=True, slots=True)
class WebPage:
    """One page. `path` is below that of its section and may hold one name in braces; empty for its first page.

    With `is_live` the page asks for its content again every few seconds.
    """

    path: str
    title: str
    render: Callable[[WebRequest], Html]
    is_live: bool = False


@dataclass(frozen=True, slots=True)
class WebAction:
    """Something that an operator does with one thing of a page. Returns what was done, in words."""

    name: str
    act: Callable[[WebRequest, str], str]


@dataclass(frozen=True, slots=True)
class WebSection:
    """The pages of a venue: an entry of the main navigation, with pages and actions. `style` is CSS text of its own."""

    venue: str
    name: str
    path: str
    pages: Sequence[WebPage]
    actions: Sequence[WebAction] = ()
    style: str = ""


@cache
def web_sections() -> tuple[WebSection, ...]:
    """The sections of all installed venues, by the names of the venues."""
    return tuple(_section(venue.web) for venue in venues() if venue.web)


def _section(path: str) -> WebSection:
    module, _, name = path.partition(":")
    section: Any = getattr(import_module(module), name)
    if not isinstance(section, WebSection):
        raise InvariantError(f"{path} is not a WebSection")
    return section
