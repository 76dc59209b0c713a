"""The pages that venues add to the app (`runs/web_section.py`), each in the frame of every page. `app.py` mounts them.

With `?part=content` a page gives its content alone, which `live.js` puts in place of the old one.
"""

from collections.abc import Callable

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from pitboss.report.markup import tag
from pitboss.runs.web_section import PageNotFound, WebPage, WebRequest, WebSection, web_sections
from pitboss.server.access.caller import Caller, OwnWorkspace, Viewer
from pitboss.server.pages.frame import app_page
from pitboss.server.problem import Problem

PART, CONTENT = "part", "content"
MOST_VALUE = 200


def _handler(section: WebSection, page: WebPage) -> Callable[..., Response]:
    def show(request: Request, caller: Viewer, workspace: OwnWorkspace) -> Response:
        values = {**request.query_params, **request.path_params}
        part = values.pop(PART, "")
        if any(len(value) > MOST_VALUE for value in values.values()):
            raise Problem(422, "invalid_input", "a value of the address is too long")
        try:
            content = page.render(WebRequest(workspace, caller.owner, caller.may("operator"), values))
        except PageNotFound as error:
            raise Problem(404, "not_found", str(error) or "there is no such page") from None
        if part == CONTENT:
            return HTMLResponse(content)
        live = tag("span", hidden=True, data_live=_own_address(request)) if page.is_live else None
        return _page(caller, section, page, content, live)

    return show


def _own_address(request: Request) -> str:
    query = request.url.include_query_params(**{PART: CONTENT}).query
    return f"{request.url.path}?{query}"


def _page(caller: Caller, section: WebSection, page: WebPage, *content: object) -> HTMLResponse:
    scripts = ("live.js",) if page.is_live or section.actions else ()
    return app_page(caller, page.title, section.path, *content, scripts=scripts, style=section.style)


def venue_router() -> APIRouter:
    """The pages of all installed venues."""
    router = APIRouter()
    for section in web_sections():
        for page in section.pages:
            router.add_api_route(f"{section.path}{page.path}", _handler(section, page), methods=["GET"])
    return router
