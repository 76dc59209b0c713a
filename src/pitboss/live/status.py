"""The status endpoint of a live run: `GET /status` and `GET /health`, JSON only, read only.

It listens on loopback by default and then accepts only loopback host names, which prevents DNS rebinding by a web page.
It sends no CORS header and bounds the size of a response. The caller supplies the document; secrets are redacted last.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson

from pitboss.core.errors import UserError

if TYPE_CHECKING:
    from aiohttp import web

MOST_BYTES = 256 * 1024
FEED = "actionFeed"
"""The key of the list that is shortened if the document is too long; its newest entries come first."""

HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}

ReadDocument = Callable[[], Mapping[str, Any]]


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def content(document: Mapping[str, Any], redact: Callable[[str], str]) -> bytes:
    """The body of a response: redacted, and at most `MOST_BYTES` long."""
    feed = list(document.get(FEED, ()))
    while True:
        shortened = {**document, FEED: feed} if FEED in document else document
        data = redact(orjson.dumps(shortened, default=str, option=orjson.OPT_NON_STR_KEYS).decode()).encode()
        if len(data) <= MOST_BYTES:
            return data
        if not feed:
            return orjson.dumps({"error": "the document is too long"})
        feed = feed[: len(feed) // 2]


@asynccontextmanager
async def serving(
    status: ReadDocument, health: ReadDocument, host: str, port: int, redact: Callable[[str], str] = str
) -> AsyncIterator[str]:
    """Serve both paths for the duration of the `with` block; yields the address."""
    from aiohttp import web

    def reply(document: Mapping[str, Any], status: int = 200, **more: str) -> web.Response:
        return web.Response(
            body=content(document, redact), status=status, content_type="application/json", headers={**HEADERS, **more}
        )

    paths = {"/status": status, "/health": health}

    async def answer(request: web.BaseRequest) -> web.Response:
        if is_loopback(host) and not is_local_name(request.headers.get("Host", "")):
            return reply({"error": "this host name is not allowed"}, 403)
        read_document = paths.get(request.path)
        if read_document is None:
            return reply({"error": "unknown path: there are /status and /health"}, 404)
        if request.method not in ("GET", "HEAD"):
            return reply({"error": "only GET"}, 405, Allow="GET, HEAD")
        document = read_document()
        return reply(document, 200 if document.get("ok", True) else 503)

    server = web.ServerRunner(web.Server(answer, access_log=None, keepalive_timeout=15.0), shutdown_timeout=1.0)
    await server.setup()
    try:
        site = web.TCPSite(server, host, port)
        try:
            await site.start()
        except OSError as error:
            raise UserError(
                f"the status endpoint cannot listen on {host}:{port} ({error.strerror or error})",
                "choose another with --port; 0 takes any that is free",
            ) from None
        yield _address(server)
    finally:
        await server.cleanup()


def is_local_name(name: str) -> bool:
    """Whether the `Host` of a request is a name of this machine."""
    try:
        return is_loopback(urlsplit(f"//{name}").hostname or "")
    except ValueError:
        return False


def _address(server: "web.ServerRunner") -> str:
    host, port = server.addresses[0][:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
