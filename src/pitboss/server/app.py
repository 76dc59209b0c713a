"""The web server of a workspace as one ASGI app: the REST API, the pages and their static files.

Routers are found by their place: every module of `api/routes` and of `pages` that has a `router`, and those that venues name
(`Venue.web`). What every request passes first is `access/gate.py`.
"""

import pkgutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from pitboss import __version__
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import BudgetExceeded, InvariantError, TransientError, UserError
from pitboss.server import pages
from pitboss.server.access.gate import Gate
from pitboss.server.access.sign_in import SignIn
from pitboss.server.api import routes
from pitboss.server.api.downloads import Downloads
from pitboss.server.api.run_events import RunFeeds
from pitboss.server.problem import Problem, problem_response, show_problem

API = "/api"
OPENAPI_PATH = f"{API}/openapi.json"


def create_app(workspace: Workspace, sign_in: SignIn) -> FastAPI:
    """The app over an open workspace. `sign_in` knows the credentials that are accepted."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        del app
        yield
        workspace.close()

    app = FastAPI(
        title="pitboss",
        version=__version__,
        openapi_url=OPENAPI_PATH,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.workspace = workspace
    app.state.sign_in = sign_in
    app.state.run_feeds, app.state.downloads = RunFeeds(), Downloads()
    app.router.redirect_slashes = False
    for router in routers(routes):
        app.include_router(router, prefix=API)
    for router in routers(pages):
        app.include_router(router, include_in_schema=False)
    app.add_api_route("/health", health, include_in_schema=False)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    for kind in (Problem, UserError, BudgetExceeded, TransientError, InvariantError, Exception):
        app.add_exception_handler(kind, show_problem)
    app.add_middleware(Gate, sign_in=sign_in)
    return app


def routers(package: ModuleType) -> Iterator[APIRouter]:
    """The routers of the modules of a package, by the names of the modules."""
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda module: module.name):
        router = getattr(import_module(f"{package.__name__}.{module.name}"), "router", None)
        if isinstance(router, APIRouter):
            yield router


async def health() -> dict[str, str]:
    """Whether the server answers. Needs no credentials."""
    return {"status": "ok", "version": __version__}


async def _invalid(request: Any, error: Any) -> Any:
    """Input that does not have the declared form: one entry for each field."""
    del request
    errors = [
        {"path": ".".join(str(part) for part in entry["loc"] if part != "body"), "message": entry["msg"]}
        for entry in error.errors()
    ]
    first = errors[0] if errors else {"path": "", "message": "invalid input"}
    detail = f"{first['path']}: {first['message']}" if first["path"] else first["message"]
    return problem_response(Problem(422, "invalid_input", detail, errors=errors))


async def _http_error(request: Any, error: Any) -> Any:
    """Unknown paths and methods."""
    del request
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "http_error")
    return problem_response(Problem(error.status_code, code, str(error.detail)), dict(error.headers or {}))
