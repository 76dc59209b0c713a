"""A problem as a page of the app, for browsers; a request without a session is sent to the page to sign in."""

from typing import Any
from urllib.parse import quote

from fastapi import Response
from fastapi.responses import RedirectResponse
from starlette.datastructures import Headers

from pitboss.bootstrap.redact import REDACTOR
from pitboss.report.markup import tag
from pitboss.server.access.caller import Caller
from pitboss.server.pages.components import link_button, notice, page_head
from pitboss.server.pages.frame import app_page, plain_page
from pitboss.server.problem import TITLES, Problem, retry_headers

PROGRAMS = ("/api/", "/static/", "/health")
"""Paths that only programs ask for."""
OPEN = frozenset({"/sign-in", "/start"})


def is_page(scope: Any) -> bool:
    """Whether a request is that of a browser for a page, and not of a program or the script of a page."""
    headers = Headers(scope=scope)
    is_fetched = headers.get("sec-fetch-dest", "") == "empty" or "application/json" in headers.get("accept", "")
    return not scope["path"].startswith(PROGRAMS) and not is_fetched


def problem_page(scope: Any, problem: Problem) -> Response:
    """The page of a problem; a request without a session is redirected to the page to sign in."""
    caller: Caller | None = scope.get("state", {}).get("caller")
    if problem.status == 401 and scope["path"] not in OPEN and scope["method"] == "GET":
        return RedirectResponse(sign_in_path(scope), 303)
    title = TITLES.get(problem.status, "Error")
    content = (
        page_head(title),
        notice(
            tag("p", tag("strong", REDACTOR.redact(problem.detail)), class_="sentence"),
            tag("p", REDACTOR.redact(problem.hint), class_="sentence") if problem.hint else None,
            tag("p", tag("span", f"{problem.status} {problem.code}", class_="muted")),
            tone="bad",
        ),
        tag("p", link_button("Go to the first page", "/"), class_="after"),
    )
    page = (
        plain_page(title, *content, status=problem.status)
        if caller is None
        else app_page(caller, title, "", *content, status=problem.status)
    )
    page.headers.update(retry_headers(problem))
    return page


def sign_in_path(scope: Any) -> str:
    """The address of the page to sign in, with where to go afterwards."""
    query = scope.get("query_string", b"").decode("latin-1")
    wanted = scope["path"] + (f"?{query}" if query else "")
    return "/sign-in" if wanted == "/" else f"/sign-in?next={quote(wanted, safe='')}"


def local_path(wanted: str) -> str:
    """Where to go after signing in: a path of this server, whatever was asked for."""
    is_local = wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and wanted.isprintable()
    return wanted if is_local and len(wanted) <= 2_000 else "/"
