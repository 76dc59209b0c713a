"""The HTTP transport for MCP servers: every connection it makes goes to an IP address that was checked, and to that one.

It sits under `httpx2.AsyncClient`, so that nothing above it (a redirect, an endpoint that a server names, a retry) can
get around it. The name is looked up here, its answers are judged by `address`, and the socket is opened to the judged
address itself: a name that answers differently a moment later is not asked again. TLS is still checked against the name,
and `Host` still says it. There are no proxies. How much is read back is not decided here but above, in `remote`.

*All* answers of a name have to be allowed, or none is used. Using only the good ones would be as safe, but a public
service does not answer with private addresses: a name that does is being turned against us or against our network, and a
refusal says so at once instead of depending on which answer came first.
"""

import socket
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import anyio
import httpcore2
import httpx2

from pitboss.tools.mcp.address import LOOPBACK, Resolve, check_host, is_loopback, judge, literal

CONNECT_S = 10.0
MOST_ADDRESSES = 16
TRIED = 4


class AddressRefused(httpx2.ConnectError):
    """The address is not one that may be connected to."""


class Outbound(httpx2.AsyncBaseTransport):
    """See the module. `loopback` opens this machine to the first origin that is asked for, and to no other."""

    def __init__(
        self, loopback: bool, resolve: Resolve | None, backend: Any = None, verify: ssl.SSLContext | None = None
    ) -> None:
        self._loopback = loopback
        self._home: tuple[str, str, int | None] | None = None
        trusted = verify or _trusted()
        sockets: Any = backend or httpcore2.AnyIOBackend()
        look_up = resolve or _look_up
        # One pool for each answer to "may this be our own machine?", so that a kept connection never changes sides.
        self._public = _pool(CheckedBackend(look_up, sockets, own=False), trusted)
        self._own = _pool(CheckedBackend(look_up, sockets, own=True), trusted) if loopback else None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; each hop of a redirect is one of its own."""
        pool = self._pool_for(request)
        with _translated():
            reply = await pool.handle_async_request(
                httpcore2.Request(
                    method=request.method,
                    url=httpcore2.URL(
                        scheme=request.url.raw_scheme,
                        host=request.url.raw_host,
                        port=request.url.port,
                        target=request.url.raw_path,
                    ),
                    headers=request.headers.raw,
                    content=request.stream,
                    # Not "sni_hostname": the name that is checked is the name that is connected to.
                    extensions={key: request.extensions[key] for key in ("timeout",) if key in request.extensions},
                )
            )
        assert isinstance(reply.stream, AsyncIterable)
        return httpx2.Response(
            status_code=reply.status, headers=reply.headers, stream=Body(reply.stream), extensions=reply.extensions
        )

    def _pool_for(self, request: httpx2.Request) -> httpcore2.AsyncConnectionPool:
        url = request.url
        if url.userinfo:
            raise AddressRefused("refused: a user or a password in an address")
        if url.scheme not in ("https", "http"):
            raise AddressRefused(f"refused: {url.scheme or 'no'} scheme")
        origin = (url.scheme, url.host, url.port)
        if self._own is not None:
            self._home = self._home or origin
            # Another port of this machine is another program: a redirect must not reach it.
            if origin == self._home and _names_this_machine(url.host):
                return self._own
        if url.scheme == "http":
            raise AddressRefused("refused: only https is allowed")
        return self._public

    async def aclose(self) -> None:
        """Close every connection."""
        await self._public.aclose()
        if self._own is not None:
            await self._own.aclose()


class CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Opens sockets to judged addresses. `own`: only to this machine; otherwise only to public addresses."""

    def __init__(self, resolve: Resolve, sockets: httpcore2.AsyncNetworkBackend, own: bool) -> None:
        self._resolve = resolve
        self._sockets = sockets
        self._own = own

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 – the form that the pool calls
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Look the host up, judge every answer, and connect to the first that takes the connection."""
        deadline = anyio.current_time() + (CONNECT_S if timeout is None else timeout)
        addresses = await self._judged(host, port, deadline)
        failure: Exception = httpcore2.ConnectError(f"{host} could not be reached")
        for position, address in enumerate(addresses):
            left = deadline - anyio.current_time()
            if left <= 0:
                raise httpcore2.ConnectTimeout(f"{host} did not answer in time")
            try:
                return await self._sockets.connect_tcp(
                    address, port, timeout=left / (len(addresses) - position), local_address=local_address,
                    socket_options=socket_options,
                )  # fmt: skip
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def connect_unix_socket(self, path: str, *_: Any, **__: Any) -> Any:
        """Never: a socket file is a door of this machine."""
        raise AddressRefused("refused: a socket file is no address")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await anyio.sleep(seconds)

    async def _judged(self, host: str, port: int, deadline: float) -> Sequence[str]:
        reason = check_host(host, loopback=self._own)
        if reason:
            raise AddressRefused(f"refused: {host} is {reason}")
        address = literal(host)
        found = [address] if address else await self._looked_up(host, port, deadline)
        for one in found:
            reason = judge(one)
            if self._own and not is_loopback(one):
                raise AddressRefused(f"refused: {host} is {one}, which is not this machine")
            if reason and not (self._own and reason == LOOPBACK):
                raise AddressRefused(f"refused: {host} is {one}, {reason}")
        return found[:TRIED]

    async def _looked_up(self, host: str, port: int, deadline: float) -> list[str]:
        try:
            with anyio.fail_after(max(0.0, deadline - anyio.current_time())):
                found = list(dict.fromkeys(await self._resolve(host, port)))
        except TimeoutError:
            raise httpcore2.ConnectTimeout(f"looking up {host} took too long") from None
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError(f"{host} has no address: {error}") from None
        if not found:
            raise httpcore2.ConnectError(f"{host} has no address")
        if len(found) > MOST_ADDRESSES:
            raise AddressRefused(f"refused: {host} has {len(found)} addresses")
        return [literal(one) or one for one in found]


class Body(httpx2.AsyncByteStream):
    """The body of an answer, with the errors that users of the client wait for."""

    def __init__(self, body: AsyncIterable[bytes]) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _translated():
            async for part in self._body:
                yield part

    async def aclose(self) -> None:
        """Give the connection back, or up."""
        close = getattr(self._body, "aclose", None)
        if close is not None:
            await close()


@cache
def _trusted() -> ssl.SSLContext:
    """The usual certificates, whatever the environment says. Reading them takes longer than a connection."""
    return httpx2.create_ssl_context(trust_env=False)


def _pool(backend: CheckedBackend, trusted: ssl.SSLContext) -> httpcore2.AsyncConnectionPool:
    return httpcore2.AsyncConnectionPool(
        ssl_context=trusted,
        max_connections=16,
        max_keepalive_connections=8,
        keepalive_expiry=30.0,
        http1=True,
        http2=False,
        retries=0,
        network_backend=backend,
    )


def _names_this_machine(host: str) -> bool:
    return host.lower().removesuffix(".") == "localhost" or is_loopback(literal(host) or "")


async def _look_up(host: str, port: int) -> Sequence[str]:
    rows = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(row[4][0]) for row in rows]


@contextmanager
def _translated() -> Iterator[None]:
    """Errors of the lower library as those that users of the upper one wait for; they have the same names."""
    try:
        yield
    except Exception as error:
        name = type(error).__name__
        known = getattr(httpx2, name, None) if getattr(httpcore2, name, None) is type(error) else None
        if known is None:
            raise
        raise known(str(error)) from error


def guarded_transport(
    loopback: bool = False,
    resolve: Resolve | None = None,
    *,
    backend: Any = None,
    verify: ssl.SSLContext | None = None,
) -> httpx2.AsyncBaseTransport:
    """A transport for `httpx2.AsyncClient` that connects to addresses allowed here and to no others, on every hop.

    `resolve` takes the place of the system's look-up, `backend` of the sockets, `verify` of the trusted certificates.
    """
    return Outbound(loopback, resolve, backend, verify)
