"""A server over HTTP (streamable or SSE): the protocol library's client on a transport with limits.

The inner transport decides which addresses may be connected to. The library follows redirects only within the origin,
so the bearer token is never sent elsewhere. Proxies and environment variables are ignored.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import httpx2

from pitboss.tools.mcp.server_entry import ServerEntry, ServerLimits
from pitboss.tools.mcp.server_process import Meter

STREAM_IDLE_S = 300.0


class Bearer(Protocol):
    """A secret that is sent to the server."""

    def reveal(self) -> str: ...


class MeteredTransport(httpx2.AsyncBaseTransport):
    """Counts received data, bounds each response that is not a stream, and keeps the last refusal."""

    def __init__(
        self, inner: httpx2.AsyncBaseTransport, meter: Meter, limits: ServerLimits, entry: ServerEntry
    ) -> None:
        self._inner = inner
        self._meter = meter
        self._limits = limits
        # A server need not offer a stream (GET) or accept the end of a session (DELETE).
        self._optional = ("DELETE",) if entry.transport == "sse" else ("GET", "DELETE")
        self.refusal = ""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request within the limits."""
        if not self._meter.request():
            raise httpx2.ReadError("the server asks for ever more requests")
        try:
            response = await self._inner.handle_async_request(request)
        except httpx2.TransportError as error:
            self.refusal = f"it cannot be reached ({error or type(error).__name__})"
            raise
        if response.status_code >= 300 and not (response.status_code == 405 and request.method in self._optional):
            self.refusal = f"it answers {response.status_code}"
        if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            await response.aclose()
            self.refusal = "it packed its answer although it was asked not to"
            raise httpx2.RemoteProtocolError(self.refusal)
        streamed = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _MeteredBody(response.stream, self._meter, None if streamed else self._limits.line_bytes)
        return response

    async def aclose(self) -> None:
        """Close every connection."""
        await self._inner.aclose()


class _MeteredBody(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, meter: Meter, limit: int | None) -> None:
        self._inner = inner
        self._meter = meter
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for chunk in self._inner:
            count += len(chunk)
            if self._limit is not None and count > self._limit:
                self._meter.line_too_long()
                raise httpx2.ReadError("the answer is too long")
            if not self._meter.read(chunk):
                raise httpx2.ReadError("the server sends without being asked")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def http_streams(
    entry: ServerEntry, transport: MeteredTransport, bearer: Bearer | None, limits: ServerLimits
) -> AsyncIterator[tuple[Any, Any]]:
    """The pair of streams that a session reads and writes."""
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Accept-Encoding": "identity", "User-Agent": "pitboss"}
    if bearer:
        name = entry.secret_header or "Authorization"
        headers[name] = bearer.reveal() if entry.secret_header else f"Bearer {bearer.reveal()}"

    def client(*_: Any, **__: Any) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            transport=transport,
            headers=headers,
            timeout=httpx2.Timeout(limits.connect_s, read=STREAM_IDLE_S),
            trust_env=False,
            follow_redirects=False,
            max_redirects=3,
        )

    if entry.transport == "sse":
        async with sse_client(entry.url, sse_read_timeout=STREAM_IDLE_S, httpx_client_factory=client) as streams:
            yield streams
    else:
        async with (
            client() as http,
            streamable_http_client(entry.url, http_client=http, max_sse_event_size=limits.line_bytes) as streams,
        ):
            yield streams
