"""The web server of a workspace as one ASGI app: the REST API, the pages and their static files.

Routers are found by their place (`route_table.py`), and those that venues name (`Venue.web`). What every request passes first is
`access/gate.py`.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from anyio.to_thread import current_default_thread_limiter
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute

from pitboss import __version__
from pitboss.bootstrap.accounts import Accounts
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import BudgetExceeded, InvariantError, TransientError, UserError
from pitboss.core.instant import Instant
from pitboss.server import pages
from pitboss.server.access.audit_retention import pruned_daily
from pitboss.server.access.credentials import Credentials
from pitboss.server.access.gate import Gate, Serving
from pitboss.server.access.scopes import require_scope
from pitboss.server.access.sign_in import SignIn
from pitboss.server.access.writes import API
from pitboss.server.api import routes
from pitboss.server.api.downloads import Downloads
from pitboss.server.api.empty_parameters import WithoutEmptyParameters
from pitboss.server.api.routes.chat import ChatDesk
from pitboss.server.api.run_events import RunFeeds
from pitboss.server.error_log import ErrorLog, log_failed_request
from pitboss.server.pages.problem_page import is_page, problem_page
from pitboss.server.pages.venue_pages import venue_router
from pitboss.server.problem import BUG, Problem, problem_of, problem_response, without_location
from pitboss.server.route_table import api_routes, api_scopes, check_skill_name, routers
from pitboss.store.audit_log import AuditLog

OPENAPI_PATH = f"{API}/openapi.json"
THREADS = 6
"""How many requests are worked on at once."""


def create_app(
    workspace: Workspace,
    sign_in: SignIn,
    serving: Serving | None = None,
    now: Callable[[], Instant] | None = None,
) -> FastAPI:
    """The app over an open workspace. `sign_in` has the start token, `now` is the clock for sessions, tokens and limits."""
    clock, serving = now or workspace.now, serving or Serving()
    accounts, audit = Accounts(workspace, clock, sign_in.random_hex), AuditLog(workspace.database, clock)
    credentials = Credentials(accounts, sign_in)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        del app
        # Each thread holds at most one connection to the database, and the pool has 15; more threads would only wait for each other.
        current_default_thread_limiter().total_tokens = THREADS
        async with pruned_daily(audit, clock, workspace.settings.audit_days):
            yield
        workspace.close()

    app = FastAPI(
        title="pitboss",
        version=__version__,
        openapi_url=OPENAPI_PATH,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        generate_unique_id_function=_operation_id,
        routes=all_routes(),
    )
    app.state.workspace = workspace
    app.state.credentials = credentials
    app.state.audit = audit
    app.state.serving = serving
    app.state.scopes = api_scopes()
    app.state.check_skill_name = check_skill_name  # here: a route cannot look at the table of all routes
    app.state.run_feeds, app.state.downloads, app.state.chat_desk = RunFeeds(), Downloads(), ChatDesk()
    app.router.redirect_slashes = False
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    for kind in (Problem, UserError, BudgetExceeded, TransientError, InvariantError):
        app.add_exception_handler(kind, _problem)
    app.add_middleware(WithoutEmptyParameters)
    app.add_middleware(Gate, credentials=credentials, audit=audit, serving=serving, now=clock, refuse=problem_reply)
    app.add_middleware(ErrorLog)
    return app


@cache
def all_routes() -> list[BaseRoute]:
    """The routes of every app of this process. Whichever app is asked first builds their validators, for all of them."""
    api_routes()  # writes into their descriptions what each needs
    whole = APIRouter(generate_unique_id_function=_operation_id, dependencies=[Depends(require_scope)])
    for router in routers(routes):
        whole.include_router(router, prefix=API)
    for router in (*routers(pages), venue_router()):
        whole.include_router(router, include_in_schema=False)
    whole.add_api_route("/health", health, include_in_schema=False)
    return whole.routes


def _operation_id(route: APIRoute) -> str:
    """The id of an operation that names none: its subject and the name of its function."""
    return "_".join([*(str(subject) for subject in route.tags[:1]), route.name])


async def health() -> dict[str, str]:
    """Whether the server answers. Needs no credentials."""
    return {"status": "ok", "version": __version__}


def problem_reply(scope: Any, problem: Problem, headers: dict[str, str] | None = None) -> Response:
    """A problem as a page for a browser, and as problem+json for a program or the script of a page.

    The database is not located: where the server keeps it is not for callers.
    """
    problem = without_location(problem, scope["app"].state.workspace.database.location)
    return problem_page(scope, problem) if is_page(scope) else problem_response(problem, headers)


async def _problem(request: Request, error: Exception) -> Response:
    problem = problem_of(error)
    if problem.status == BUG:
        log_failed_request(request.scope, error)
    return problem_reply(request.scope, problem)


async def _invalid(request: Request, error: Any) -> Response:
    """Input that does not have the declared form: one entry for each field."""
    errors = [
        {"path": ".".join(str(part) for part in entry["loc"] if part != "body"), "message": entry["msg"]}
        for entry in error.errors()
    ]
    first = errors[0] if errors else {"path": "", "message": "invalid input"}
    detail = f"{first['path']}: {first['message']}" if first["path"] else first["message"]
    return problem_reply(request.scope, Problem(422, "invalid_input", detail, errors=errors))


async def _http_error(request: Request, error: Any) -> Response:
    """Unknown paths and methods, and what the frameworks refuse themselves."""
    code = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}.get(error.status_code, "http_error")
    detail = "there is nothing at this address" if error.detail == "Not Found" else str(error.detail)
    problem = Problem(error.status_code, code, detail)
    return problem_reply(request.scope, problem, dict(error.headers or {}))
