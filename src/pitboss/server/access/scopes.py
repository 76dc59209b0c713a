"""Scopes of tokens of the API: `AREA:read`, `AREA:write` and `admin`. They limit a token in addition to its role.

The scope of a route follows from the route: its area is its first tag, and it writes if its method does. Whatever needs the role
admin is in the one scope `admin`. A page has no tag and hence no scope: a token with scopes opens none. `AREA:write` includes
`AREA:read`, because a program that starts a run looks at it too.
"""

from collections.abc import Iterable
from typing import Any

from fastapi import Request

from pitboss.bootstrap.accounts import least_role
from pitboss.core.errors import UserError
from pitboss.core.role import ROLES, Role
from pitboss.core.suggestion import suggestion
from pitboss.server.access.caller import RequiredRole, caller_of
from pitboss.server.access.writes import API, is_write
from pitboss.server.problem import Problem

ADMIN = "admin"
READ, WRITE = ":read", ":write"


def role_of(route: Any) -> Role | None:
    """The role that a route requires, found in its dependencies; None for a route that needs no credentials."""
    roles: list[Role] = []
    pending = [route.dependant]
    while pending:
        dependant = pending.pop()
        if isinstance(dependant.call, RequiredRole):
            roles.append(dependant.call.role)
        pending += dependant.dependencies
    return max(roles, key=ROLES.index) if roles else None


def scope_of(method: str, route: Any) -> str | None:
    """The scope that a request to a route needs; None for a page."""
    if role_of(route) == "admin":
        return ADMIN
    if not route.tags:
        return None
    path = route.path if route.path.startswith(f"{API}/") else API + route.path
    return f"{route.tags[0]}{WRITE if is_write(method, path) else READ}"


def scopes_of(routes: Iterable[Any]) -> dict[str, Role]:
    """Every scope of some routes, sorted, with the least role that can use it."""
    scopes: dict[str, Role] = {}
    for route in routes:
        for method in route.methods:
            scope, role = scope_of(method, route), role_of(route)
            if scope is not None and role is not None:
                scopes[scope] = least_role(scopes.get(scope, role), role)
    return dict(sorted(scopes.items()))


def includes(scopes: Iterable[str], needed: str) -> bool:
    """Whether some scopes allow what needs a scope."""
    allowed = set(scopes)
    return needed in allowed or (needed.endswith(READ) and needed.removesuffix(READ) + WRITE in allowed)


def check_scopes(given: Iterable[str], offered: Iterable[str]) -> None:
    """Raise `UserError` for a scope that no route has."""
    if unknown := sorted(set(given) - set(offered)):
        raise UserError(f"there is no scope {unknown[0]!r}", suggestion(unknown[0], offered, "the scopes are"))


async def require_scope(request: Request) -> None:
    """A dependency of every route: refuses a token whose scopes do not include that of the route."""
    caller, route = caller_of(request), request.scope["route"]
    if caller is None or caller.scopes is None or role_of(route) is None:
        return
    needed = scope_of(request.method, route)
    if needed is None:
        raise Problem(403, "forbidden", "a token with scopes opens no pages", "use the API, or sign in")
    if not includes(caller.scopes, needed):
        scopes = ", ".join(sorted(caller.scopes))
        raise Problem(403, "forbidden", f"this needs the scope {needed}; the token has {scopes}")
