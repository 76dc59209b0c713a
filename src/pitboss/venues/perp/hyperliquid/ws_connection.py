"""One WebSocket connection to the exchange, over aiohttp: text messages, bounded in size, with a bounded time to connect.

No redirects, no proxies from the environment. Every failure is a `ConnectionError`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit, urlunsplit

if TYPE_CHECKING:
    import aiohttp

CONNECT_S = 10.0
CLOSE_S = 2.0
MOST_MESSAGE_BYTES = 2**18
"""A candle, a context or a best bid and ask has a few hundred bytes."""
MOST_SNAPSHOT_BYTES = 2**22
"""The streams of an account begin with its last 2,000 fills, each of which has about 400 bytes."""


class TextSocket(Protocol):
    """A connection that sends and receives texts. All methods raise `ConnectionError` once it is broken."""

    async def send(self, text: str) -> None:
        """Send one message."""
        ...

    async def receive(self) -> str:
        """Wait for the next message; raises when the other side has closed."""
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...


Connect = Callable[[], Awaitable[TextSocket]]


def stream_url(base_url: str) -> str:
    """Return the address of the WebSocket of an exchange's base address."""
    parts = urlsplit(base_url.rstrip("/"))
    return urlunsplit(parts._replace(scheme="wss" if parts.scheme == "https" else "ws", path=f"{parts.path}/ws"))


@asynccontextmanager
async def open_connector(base_url: str, most_bytes: int = MOST_MESSAGE_BYTES) -> AsyncIterator[Connect]:
    """Open the client for the duration of the block and give the function that connects."""
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_S, sock_connect=CONNECT_S)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as session:

        async def connect() -> TextSocket:
            try:
                async with asyncio.timeout(CONNECT_S):
                    socket = await session.ws_connect(
                        stream_url(base_url),
                        max_msg_size=most_bytes,
                        autoping=True,
                    )
            except TimeoutError:
                raise ConnectionError("no connection in time") from None
            except (aiohttp.ClientError, OSError, ValueError) as error:
                raise ConnectionError(f"no connection ({type(error).__name__})") from None
            return AiohttpSocket(socket)

        yield connect


class AiohttpSocket:
    """A `TextSocket` over aiohttp."""

    def __init__(self, socket: "aiohttp.ClientWebSocketResponse") -> None:
        self._socket = socket

    async def send(self, text: str) -> None:
        """Send one message."""
        import aiohttp

        try:
            async with asyncio.timeout(CONNECT_S):
                await self._socket.send_str(text)
        except TimeoutError:
            raise ConnectionError("a message could not be sent in time") from None
        except (aiohttp.ClientError, OSError, RuntimeError) as error:
            raise ConnectionError(f"a message could not be sent ({type(error).__name__})") from None

    async def receive(self) -> str:
        """Wait for the next text. Binary messages are given as an empty text, which no message of the exchange is."""
        import aiohttp

        message = await self._socket.receive()
        if message.type is aiohttp.WSMsgType.TEXT:
            return str(message.data)
        if message.type is aiohttp.WSMsgType.BINARY:
            return ""
        if message.type is aiohttp.WSMsgType.ERROR or self._socket.close_code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG:
            raise ConnectionError("the connection broke, or a message was too large")
        raise ConnectionError("the exchange closed the connection")

    async def close(self) -> None:
        """Close the connection, within a bounded time."""
        import aiohttp

        try:
            async with asyncio.timeout(CLOSE_S):
                await self._socket.close()
        except (TimeoutError, aiohttp.ClientError, OSError):
            return
