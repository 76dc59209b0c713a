"""`/sign-in` and `/sign-out`: a name and a password become a session, and the end of it."""

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from pitboss.report.markup import Html, tag
from pitboss.server.access.gate import COOKIE, form_field, session_of
from pitboss.server.pages.components import field, notice, text_input
from pitboss.server.pages.frame import plain_page
from pitboss.server.pages.problem_page import local_path
from pitboss.server.problem import Problem

router = APIRouter()
MOST_NAME = 100
"""Characters of a name that are read: more than the name of a user can have."""


@router.get("/sign-in")
def sign_in_form(request: Request, next: str = "/") -> Response:
    """The page with the form."""
    if request.state.caller is not None:
        return RedirectResponse(local_path(next), 303)
    return _page(request, next)


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Exchange a name and a password for a session cookie. A session that was there ends: the secret is always a new one."""
    from anyio.to_thread import run_sync

    body = await request.body()
    name, password = form_field(body, "name").strip().lower()[:MOST_NAME], form_field(body, "password")
    wanted = local_path(form_field(body, "next"))
    return await run_sync(_sign_in, request, name, password, wanted)


def _sign_in(request: Request, name: str, password: str, wanted: str) -> Response:
    state, address = request.app.state, request.state.address
    try:
        secret = state.credentials.sign_in(name, password, address)
    except Problem as problem:
        state.audit.append(name, address, "sign-in refused", "", problem.detail)
        return _page(request, wanted, problem, name)
    if before := session_of(request.headers):
        state.credentials.sign_out(before)
    state.audit.append(name, address, "sign-in")
    return with_session(request, RedirectResponse(wanted, 303), secret)


@router.post("/sign-out")
def sign_out(request: Request) -> Response:
    """End the session."""
    if request.state.caller is not None:
        request.app.state.credentials.sign_out(session_of(request.headers))
        request.app.state.audit.append(request.state.caller.name, request.state.address, "sign-out")
    response = RedirectResponse("/sign-in", 303)
    response.delete_cookie(COOKIE, path="/")
    return response


def with_session(request: Request, response: Response, secret: str) -> Response:
    """The response with the cookie of a session, which no script can read and no other site can send."""
    secure: Any = request.app.state.serving.https
    response.set_cookie(COOKIE, secret, httponly=True, samesite="strict", path="/", secure=secure)
    return response


def _page(request: Request, wanted: str, problem: Problem | None = None, name: str = "") -> HTMLResponse:
    has_users = request.app.state.credentials.accounts.users.can_sign_in()
    content = _form(wanted, problem, name) if has_users else _no_users()
    card = tag("section", tag("h1", "Sign in"), content, class_="sign-in")
    return plain_page("Sign in", card, styles=("settings.css",), status=200 if problem is None else problem.status)


def _form(wanted: str, problem: Problem | None, name: str) -> Html:
    refusal = " ".join(text for text in (problem.detail, problem.hint) if text) if problem else ""
    return tag(
        "form",
        notice(refusal[:1].upper() + refusal[1:] + ".", tone="bad") if refusal else None,
        tag("input", type="hidden", name="next", value=local_path(wanted)),
        field("name", "Name", text_input("name", name, autocomplete="username", required=True, autofocus=True)),
        field(
            "password",
            "Password",
            text_input("password", type="password", autocomplete="current-password", required=True),
        ),
        tag("button", "Sign in", type="submit", class_="primary"),
        tag("p", "At the machine itself the link that ", tag("code", "pitboss serve"), " prints opens the app too."),
        method="post",
        action="/sign-in",
        class_="stack",
    )


def _no_users() -> Html:
    return tag(
        "div",
        tag("p", "Open the link that ", tag("code", "pitboss serve"), " printed when it started. It works once."),
        tag(
            "p",
            "There are no users with a password here. ",
            tag("code", "pitboss users add NAME --role admin"),
            " adds one, who signs in on this page.",
        ),
        class_="stack",
    )
