"""`Caller`: who sends a request, what its role allows, and the workspace bounded to what it owns.

A route names the role that it needs as the type of a parameter (`Viewer`, `Author`, `Operator`, `Admin`), and takes `OwnWorkspace`
instead of the whole workspace: every query of it is bounded by the caller's owner.
"""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.role import ROLES, Role
from pitboss.server.problem import Problem


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request."""

    name: str
    """The user, for the audit log."""
    owner: str
    """Whose rows it may see: the value of their column `owner`."""
    role: Role
    csrf: str = ""
    """What a form of this session must send back; empty for a caller with a token."""
    token_id: str = ""
    """The token of the API that it uses, if any."""
    scopes: frozenset[str] | None = None
    """What that token is limited to (`access/scopes.py`); None for whatever its role allows."""

    def may(self, role: Role) -> bool:
        """Whether the role of the caller includes another one."""
        return ROLES.index(self.role) >= ROLES.index(role)


def caller_of(request: Request) -> Caller | None:
    """The caller, as the gate has found it; None for a request without credentials."""
    return getattr(request.state, "caller", None)


@dataclass(frozen=True, slots=True)
class RequiredRole:
    """A dependency that gives the caller if it has a role, and refuses the request otherwise."""

    role: Role

    async def __call__(self, request: Request) -> Caller:  # no thread is needed for so little
        caller = caller_of(request)
        if caller is None:
            raise Problem(
                401, "unauthorized", "this needs a session or a token", "sign in, or send `Authorization: Bearer TOKEN`"
            )
        if not caller.may(self.role):
            raise Problem(403, "forbidden", f"this needs the role {self.role}; {caller.name} is {caller.role}")
        return caller


Viewer = Annotated[Caller, Depends(RequiredRole("viewer"))]
Author = Annotated[Caller, Depends(RequiredRole("author"))]
Operator = Annotated[Caller, Depends(RequiredRole("operator"))]
Admin = Annotated[Caller, Depends(RequiredRole("admin"))]


async def _own_workspace(request: Request, caller: Viewer) -> Workspace:
    workspace: Workspace = request.app.state.workspace
    return workspace.owned_by(caller.owner)


OwnWorkspace = Annotated[Workspace, Depends(_own_workspace)]
"""The workspace with every query bounded to the rows of the caller."""
