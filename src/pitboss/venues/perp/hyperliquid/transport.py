"""How requests reach the exchange: the protocol, and its implementation over HTTP. It knows nothing of what they say."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

from aiohttp import ClientError, ClientSession, ClientTimeout

MAINNET_URL = "https://api.hyperliquid.xyz"
TESTNET_URL = "https://api.hyperliquid-testnet.xyz"
MOST_REPLY_BYTES = 16 * 1024 * 1024
"""A longer reply is cut off and cannot be read: no reply of the exchange is so long."""


class ExchangeTransport(Protocol):
    """Sends one request. Raises `TimeoutError` or `OSError` if there is no reply; any status is a reply."""

    async def post(self, path: str, body: dict[str, Any], timeout_s: float) -> tuple[int, str]: ...


class ExchangeHttpTransport:
    """`ExchangeTransport` over one HTTP session. Redirects are not followed: a signed body goes to one host alone."""

    def __init__(self, session: ClientSession, url: str) -> None:
        self._session = session
        self._url = url.rstrip("/")

    async def post(self, path: str, body: dict[str, Any], timeout_s: float) -> tuple[int, str]:
        """Send one request and return status and text."""
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._session.post(self._url + path, json=body, allow_redirects=False) as reply,
            ):
                content = await reply.content.read(MOST_REPLY_BYTES)
                while len(content) < MOST_REPLY_BYTES and (more := await reply.content.read(MOST_REPLY_BYTES)):
                    content += more
                return reply.status, content.decode("utf-8", "replace")
        except ClientError as error:
            raise ConnectionError(type(error).__name__) from None


@asynccontextmanager
async def open_transport(url: str) -> AsyncIterator[ExchangeHttpTransport]:
    """Open a session for the duration of the block."""
    async with ClientSession(timeout=ClientTimeout(total=None)) as session:
        yield ExchangeHttpTransport(session, url)
