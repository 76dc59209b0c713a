"""The HTTP transport for MCP servers: every connection goes to exactly the IP address that was checked.

It sits below `httpx2.AsyncClient`, so that a redirect, an endpoint named by a server or a retry cannot bypass it. The
name is resolved here, the addresses are checked by `address`, and the socket is opened to the checked address itself, so
a name that resolves differently a moment later has no effect. TLS verification and `Host` still use the name. There are
no proxies. Limits on what is read are in `http_client`.

*All* addresses of a name must be allowed, or none is used. Using only the allowed ones would be as safe, but a public
service does not resolve to private addresses: such a name indicates an attack, and refusing it does not depend on the
order of the addresses.
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

from pitboss.core.plain_http import names_this_machine
from pitboss.tools.mcp.address import (
    LOOPBACK,
    Resolve,
    blocked_reason,
    check_host,
    is_loopback,
    literal,
)

CONNECT_S = 10.0
MAX_ADDRESSES = 16
MAX_ATTEMPTS = 4


class AddressRefused(httpx2.ConnectError):
    """The address may not be connected to."""


class CheckedTransport(httpx2.AsyncBaseTransport):
    """A transport for `httpx2.AsyncClient` that connects to allowed addresses only, on every hop.

    `loopback` allows this machine, for the first origin requested only. `resolve` replaces the system's resolver,
    `backend` the sockets, `verify` the trusted certificates.
    """

    def __init__(
        self,
        loopback: bool = False,
        resolve: Resolve | None = None,
        *,
        backend: Any = None,
        verify: ssl.SSLContext | None = None,
    ) -> None:
        self._loopback = loopback
        self._home: tuple[str, str, int | None] | None = None
        trusted = verify or _trusted()
        sockets: Any = backend or httpcore2.AnyIOBackend()
        look_up = resolve or _look_up
        # Separate pools for public and loopback addresses, so that a kept connection is never used for the other kind.
        self._public = _pool(CheckedBackend(look_up, sockets, own=False), trusted)
        self._own = _pool(CheckedBackend(look_up, sockets, own=True), trusted) if loopback else None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; each hop of a redirect is a separate request."""
        pool = self._pool_for(request)
        with _translated_errors():
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
                    # "sni_hostname" is left out: TLS must be verified against the name that is connected to.
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
            # Another port of this machine is another program, which a redirect must not reach.
            if origin == self._home and names_this_machine(url.host):
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
    """Opens sockets to checked addresses. `own`: only to this machine; otherwise only to public addresses."""

    def __init__(self, resolve: Resolve, sockets: httpcore2.AsyncNetworkBackend, own: bool) -> None:
        self._resolve = resolve
        self._sockets = sockets
        self._own = own

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 – the signature that the pool expects
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Resolve the host, check every address, and connect to the first that accepts the connection."""
        deadline = anyio.current_time() + (CONNECT_S if timeout is None else timeout)
        addresses = await self._checked_addresses(host, port, deadline)
        failure: Exception = httpcore2.ConnectError(f"{host} could not be reached")
        for position, address in enumerate(addresses):
            remaining_s = deadline - anyio.current_time()
            if remaining_s <= 0:
                raise httpcore2.ConnectTimeout(f"{host} did not answer in time")
            try:
                return await self._sockets.connect_tcp(
                    address, port, timeout=remaining_s / (len(addresses) - position), local_address=local_address,
                    socket_options=socket_options,
                )  # fmt: skip
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def connect_unix_socket(self, path: str, *_: Any, **__: Any) -> Any:
        """Always refused: a socket file belongs to this machine."""
        raise AddressRefused("refused: a socket file is no address")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await anyio.sleep(seconds)

    async def _checked_addresses(self, host: str, port: int, deadline: float) -> Sequence[str]:
        reason = check_host(host, loopback=self._own)
        if reason:
            raise AddressRefused(f"refused: {host} is {reason}")
        address = literal(host)
        addresses = [address] if address else await self._resolved(host, port, deadline)
        for resolved in addresses:
            reason = blocked_reason(resolved)
            if self._own and not is_loopback(resolved):
                raise AddressRefused(f"refused: {host} is {resolved}, which is not this machine")
            if reason and not (self._own and reason == LOOPBACK):
                raise AddressRefused(f"refused: {host} is {resolved}, {reason}")
        return addresses[:MAX_ATTEMPTS]

    async def _resolved(self, host: str, port: int, deadline: float) -> list[str]:
        try:
            with anyio.fail_after(max(0.0, deadline - anyio.current_time())):
                addresses = list(dict.fromkeys(await self._resolve(host, port)))
        except TimeoutError:
            raise httpcore2.ConnectTimeout(f"looking up {host} took too long") from None
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError(f"{host} has no address: {error}") from None
        if not addresses:
            raise httpcore2.ConnectError(f"{host} has no address")
        if len(addresses) > MAX_ADDRESSES:
            raise AddressRefused(f"refused: {host} has {len(addresses)} addresses")
        return [literal(address) or address for address in addresses]


class Body(httpx2.AsyncByteStream):
    """A response body that raises the errors of `httpx2`."""

    def __init__(self, body: AsyncIterable[bytes]) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _translated_errors():
            async for part in self._body:
                yield part

    async def aclose(self) -> None:
        """Return the connection to the pool or close it."""
        close = getattr(self._body, "aclose", None)
        if close is not None:
            await close()


@cache
def _trusted() -> ssl.SSLContext:
    """The default certificates, ignoring the environment. Cached, because reading them takes longer than connecting."""
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


async def _look_up(host: str, port: int) -> Sequence[str]:
    rows = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(row[4][0]) for row in rows]


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Raise errors of `httpcore2` as those of `httpx2`, which have the same names."""
    try:
        yield
    except Exception as error:
        name = type(error).__name__
        translated = getattr(httpx2, name, None) if getattr(httpcore2, name, None) is type(error) else None
        if translated is None:
            raise
        raise translated(str(error)) from error
