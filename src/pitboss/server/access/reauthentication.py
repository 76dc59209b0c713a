"""Asking for a password once more, before something that a session or token alone should not do, such as trading with real money.

A caller without a password (the person at the machine itself, with the start token) is not asked for one.
"""

from fastapi import Request

from pitboss.server.access.caller import Caller
from pitboss.server.problem import Problem


def has_password(request: Request, caller: Caller) -> bool:
    """Whether the caller is a user with a password, and therefore has to give it once more."""
    user = request.app.state.credentials.accounts.users.get(caller.name)
    return user is not None and bool(user.password)


def require_password(request: Request, caller: Caller, password: str, purpose: str) -> None:
    """Refuse the request unless it holds the password of the caller, if there is one. `purpose` is for the message."""
    if not has_password(request, caller):
        return
    if not password:
        raise Problem(409, "confirmation_required", f"{purpose} needs your password once more", "send it as `password`")
    request.app.state.credentials.check_own_password(caller.name, password, request.state.address)
