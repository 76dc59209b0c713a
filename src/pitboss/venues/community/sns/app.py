"""The forum server as an ASGI app: HTTP around the handlers of `routes/`, and the OpenAPI document.

`make_app` is what the platform's server calls in each of its processes (`Venue.routes`).
"""

from typing import TYPE_CHECKING, Any

from pitboss.venues.community.sns.serve_options import SnsOptions
from pitboss.venues.community.sns.sns_server import RateLimits, SnsServer

if TYPE_CHECKING:
    from fastapi import FastAPI, Request, Response

    from pitboss.terminal.workspace_options import WorkspaceOptions
    from pitboss.venues.community.sns.routes.route_table import SnsRoute

MAX_BODY_BYTES = 1 << 20
MAX_CONTRACT_BYTES = 8 << 20
"""Contracts come with their source."""
DATABASE_FILE = "community.db"
THREADS = 8
"""How many requests a process works on at once; each needs a connection to the database."""
DROPPED = 4
"""A body of up to so many times the limit is read to its end before it is refused."""
OPENAPI_PATH = "/api/openapi.json"


def make_app(place: "WorkspaceOptions", options: SnsOptions) -> "FastAPI":
    """The app on the database of the command line: `--db`, or a file in the workspace."""
    from pitboss.bootstrap.machine import SystemClock, random_hex

    origin = read_origin(options.origin)
    return app_of(open_server(place, options, SystemClock(), random_hex), origin)


def read_origin(text: str) -> str:
    """A web origin: scheme, host and port. Raises `UserError` for anything else, `*` included."""
    from pitboss.core.errors import UserError
    from pitboss.venues.community.addresses import split_address

    parts = split_address(text, "--origin")
    if text and (parts.scheme not in ("http", "https") or text != f"{parts.scheme}://{parts.netloc}" or "*" in text):
        raise UserError(f"--origin: {text[:100]!r} is not a web origin", "for example https://forum.example")
    return text


def open_server(place: "WorkspaceOptions", options: SnsOptions, clock: Any, random_hex: Any) -> SnsServer:
    """The server of a workspace, with its database open."""
    from pitboss.core.errors import UserError
    from pitboss.store.database import open_tables
    from pitboss.venues.community.github_client import web_host
    from pitboss.venues.community.settings import CommunitySettings
    from pitboss.venues.community.sns.contract_lookup import open_lookup
    from pitboss.venues.community.sns.credential_store import CredentialStore
    from pitboss.venues.community.sns.server_key import open_server_key
    from pitboss.venues.community.sns.tables import metadata

    limit = options.rate_limit
    if limit < 0:
        raise UserError(f"--rate-limit: {limit} is below zero", "0 allows any number of requests")
    settings = place.settings()
    home = settings.home
    home.mkdir(parents=True, exist_ok=True)
    key = open_server_key(home, random_hex)
    lookup = open_lookup(settings)
    github_host = web_host(CommunitySettings.of(settings).github_api_url)
    database = open_tables(place.db or home / DATABASE_FILE, metadata, THREADS)
    return SnsServer(
        database,
        CredentialStore(random_hex, key),
        clock,
        random_hex,
        allows_v1=options.v1 == "on",
        limits=RateLimits(limit, 10 * limit, RateLimits().login if limit else 0),
        lookup=lookup,
        github_host=github_host,
    )


def app_of(server: SnsServer, origin: str = "") -> "FastAPI":
    """The app around a server. Pages of `origin` may call it from a browser; without one none may."""
    from anyio import CapacityLimiter
    from fastapi import FastAPI
    from starlette.exceptions import HTTPException

    from pitboss.venues.community.sns.routes.route_table import ROUTES

    app = FastAPI(title="Community forum (SNS)", version="2", openapi_url=OPENAPI_PATH, docs_url=None, redoc_url=None)
    limiter = CapacityLimiter(THREADS)
    for route in ROUTES:
        app.add_api_route(
            route.path,
            _endpoint(server, route, limiter),
            methods=[route.method],
            response_model=None,
            summary=(route.handler.__doc__ or "").strip(),
            operation_id=route.handler.__name__,
            responses=_responses(route),
            openapi_extra=_openapi(route),
        )
    app.add_exception_handler(HTTPException, _http_error)
    app.router.redirect_slashes = False
    if origin:
        from starlette.middleware.cors import CORSMiddleware

        names = ("content-type", "authorization", *dict.fromkeys((*_RUNNER, *_SIGNED)))
        app.add_middleware(
            CORSMiddleware,
            allow_origins=[origin],
            allow_methods=["GET", "POST", "PATCH", "DELETE", "OPTIONS"],
            allow_headers=list(names),
            expose_headers=["Retry-After", "Idempotent-Replay"],
        )
    return app


def _endpoint(server: SnsServer, route: "SnsRoute", limiter: Any) -> Any:
    import anyio.to_thread
    from fastapi import Request, Response

    from pitboss.venues.community.sns.api_call import ApiCall

    most = MAX_CONTRACT_BYTES if route.path.startswith("/api/contracts") else MAX_BODY_BYTES

    async def endpoint(request: Request) -> Response:
        body = await _body(request, most)
        if body is None:
            return _response(413, f'{{"error":"The body must be {most} bytes or fewer"}}', {"Connection": "close"})
        query = request.scope["query_string"]
        path = request.scope["raw_path"] + (b"?" + query if query else b"")
        call = ApiCall(
            request.method,
            path.decode("latin-1"),
            request.client.host if request.client else "",
            dict(request.headers),
            dict(request.query_params),
            {name: str(value) for name, value in request.path_params.items()},
            body,
        )
        is_login = route.access == "login"
        reply = await anyio.to_thread.run_sync(server.answer, route.handler, call, is_login, limiter=limiter)
        return _response(reply.status, reply.text, reply.headers)

    return endpoint


async def _body(request: "Request", most: int) -> bytes | None:
    """The body, or None if it is too long.

    Of one that is too long some more is read and dropped: a client that is still sending when the connection is closed
    does not get to read the answer.
    """
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or int(length[:12]) > DROPPED * most:
        return None
    content, size = bytearray(), 0
    async for part in request.stream():
        size += len(part)
        if size <= most:
            content += part
        elif size > DROPPED * most:
            return None
    return bytes(content) if size <= most else None


def _response(status: int, text: str, headers: Any) -> "Response":
    from fastapi import Response

    own = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **headers}
    return Response(text.encode("utf-8", "replace"), status, own, "application/json")


async def _http_error(request: "Request", error: Any) -> "Response":
    """Unknown paths and methods, in the form of all errors."""
    import json

    del request
    return _response(error.status_code, json.dumps({"error": str(error.detail)}), error.headers or {})


def _responses(route: "SnsRoute") -> dict[int | str, dict[str, Any]]:
    from pitboss.venues.community.sns import schemas

    errors = sorted({*route.errors, 405, 413, 429, 500, 503})
    return {200: {"model": route.reply}, **{status: {"model": schemas.ErrorReply} for status in errors}}


_RUNNER = ("x-agent-id", "x-runner-token", "x-agent-protocol", "x-agent-key-id")
_SIGNED = ("x-agent-nonce", "x-agent-timestamp", "x-agent-signature", "idempotency-key")


def _openapi(route: "SnsRoute") -> dict[str, Any]:
    headers = [
        *(_RUNNER if "runner" in route.access or "signed" in route.access else ()),
        *(("x-agent-timestamp", "x-agent-signature") if "runner" in route.access else ()),
        *(_SIGNED if "signed" in route.access else ()),
        *(("authorization",) if "owner" in route.access else ()),
    ]
    parameters = [_parameter("header", name) for name in headers if name != "authorization"]
    parameters += [_parameter("query", name) for name in route.query]
    parameters += [_parameter("path", "id", required=True)] if "{id}" in route.path else []
    extra: dict[str, Any] = {"parameters": parameters}
    if "owner" in route.access:
        parameters.append(_parameter("header", "authorization"))
    if route.body is not None:
        schema = route.body.model_json_schema(ref_template="#/components/schemas/{model}")
        schema = _inlined(schema, schema.pop("$defs", {}))
        extra["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return extra


def _parameter(place: str, name: str, required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": place, "required": required, "schema": {"type": "string"}}


def _inlined(schema: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inlined(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    return {key: _inlined(value, definitions) for key, value in schema.items()}
