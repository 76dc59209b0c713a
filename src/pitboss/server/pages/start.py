"""`/?token=…`: the one-time link that `pitboss serve` prints becomes a session."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from pitboss.server.access.gate import COOKIE
from pitboss.server.problem import Problem

router = APIRouter()


@router.get("/start")
def start(request: Request, token: str) -> Response:
    """Exchange the token of the link for a session cookie."""
    session = request.app.state.sign_in.exchange(token)
    if session is None:
        raise Problem(401, "unauthorized", "this link was used or is wrong", "start the server again for a new one")
    response = RedirectResponse("/", 303)
    response.set_cookie(COOKIE, session, httponly=True, samesite="strict", path="/")
    return response
