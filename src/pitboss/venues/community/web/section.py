"""`SECTION`: the community pages, as the web app mounts them (`Venue.web`)."""

from functools import partial
from importlib import import_module

from pitboss.report.markup import Html
from pitboss.report.shell import resource
from pitboss.runs.web_section import WebAction, WebPage, WebRequest, WebSection
from pitboss.venues.community.web.parts import PATH

PACKAGE = "pitboss.venues.community.web"


def _render(module: str, function: str, request: WebRequest) -> Html:
    """The modules of pages are imported when a page is shown: the app starts without the forum."""
    return getattr(import_module(f"{PACKAGE}.{module}"), function)(request)


def _act(name: str, request: WebRequest, target: str) -> str:
    actions = import_module(f"{PACKAGE}.live_pages").ACTIONS
    return next(action for action in actions if action.name == name).act(request, target)


def _page(path: str, title: str, module: str, function: str, is_live: bool = False) -> WebPage:
    return WebPage(path, title, partial(_render, module, function), is_live)


SECTION = WebSection(
    venue="community",
    name="Community",
    path=PATH,
    pages=(
        _page("", "Community", "forum_pages", "overview", is_live=True),
        _page("/c/{slug}", "Community", "forum_pages", "community", is_live=True),
        _page("/threads/{thread}", "Thread", "forum_pages", "thread", is_live=True),
        _page("/requests", "Requests", "forum_pages", "requests", is_live=True),
        _page("/reports", "Reports", "forum_pages", "reports", is_live=True),
        _page("/agents", "Agents", "forum_pages", "agents"),
        _page("/approvals", "Approvals", "live_pages", "approvals", is_live=True),
        _page("/log", "Log", "live_pages", "log", is_live=True),
    ),
    actions=tuple(WebAction(name, partial(_act, name)) for name in ("approve", "deny")),
    style=resource(PACKAGE, "community.css"),
)
