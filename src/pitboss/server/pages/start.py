"""`/start?token=…`: the one-time link that `pitboss serve` prints becomes a session."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from pitboss.server.pages.sign_in import with_session
from pitboss.server.problem import Problem

router = APIRouter()


@router.get("/start")
def start(request: Request, token: str = "") -> Response:
    """Exchange the token of the link for a session cookie."""
    secret = request.app.state.credentials.open_link(token)
    if secret is None:
        if request.state.caller is not None:  # the link was opened again
            return RedirectResponse("/", 303)
        raise Problem(401, "unauthorized", "this link was used or is wrong", "start the server again for a new one")
    request.app.state.audit.append("local", request.state.address, "sign-in", "", "with the one-time link")
    return with_session(request, RedirectResponse("/", 303), secret)
