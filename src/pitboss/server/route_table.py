"""The routes of the server as their modules declare them, and what follows from them: scopes of tokens, names that are taken.

Routers are found by their place: every module of `api/routes` and of `pages` that has a `router`. The app itself is `app.py`.
"""

import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType

from fastapi import APIRouter
from fastapi.routing import APIRoute

from pitboss.core.errors import UserError
from pitboss.core.role import Role
from pitboss.server import pages
from pitboss.server.access.scopes import role_of, scope_of, scopes_of
from pitboss.server.api import routes

SKILL = "/skills/{name:path}"
"""Where a skill is shown, in the API and among the pages."""


def routers(package: ModuleType) -> Iterator[APIRouter]:
    """The routers of the modules of a package, by the names of the modules."""
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda module: module.name):
        router = getattr(import_module(f"{package.__name__}.{module.name}"), "router", None)
        if isinstance(router, APIRouter):
            yield router


def api_scopes() -> dict[str, Role]:
    """The scopes that a token may have, with the least role that can use each."""
    return scopes_of(api_routes())


@cache
def api_routes() -> tuple[APIRoute, ...]:
    """The routes of the API, with the role and scope that each needs in its description."""
    all_routes = _routes(routes)
    for route in all_routes:
        method = min(route.methods or {"GET"})
        needs = {"x-required-role": role_of(route), "x-required-scope": scope_of(method, route)}
        route.openapi_extra = {**(route.openapi_extra or {}), **needs}
    return all_routes


def check_skill_name(name: str) -> None:
    """Raise `UserError` if the address of a skill of this name is that of something else, such as `/skills/new`."""
    path = SKILL.replace("{name:path}", name)
    for family in (api_routes(), _page_routes()):
        first = next(
            (route for route in family if "GET" in (route.methods or ()) and route.path_regex.match(path)), None
        )
        if first is None or first.path != SKILL:
            raise UserError(
                f"a skill cannot be saved as {name!r}: that is an address of the server itself",
                "choose another name; a file with this name can still be run",
            )


@cache
def _page_routes() -> tuple[APIRoute, ...]:
    return _routes(pages)


def _routes(package: ModuleType) -> tuple[APIRoute, ...]:
    return tuple(route for router in routers(package) for route in router.routes if isinstance(route, APIRoute))
