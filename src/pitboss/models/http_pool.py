"""One HTTP session per event loop for all clients, so that connections are reused. It holds no policy.

The session keeps no cookies, reads no proxy from the environment and sets no time limits: those belong to the client.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

import aiohttp

IDLE_S = 60.0
AGENT = "pitboss"

_sessions: "WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession]" = WeakKeyDictionary()
_users: "WeakKeyDictionary[asyncio.AbstractEventLoop, int]" = WeakKeyDictionary()


def session() -> aiohttp.ClientSession:
    """The session of the running loop, opened at its first use."""
    loop = asyncio.get_running_loop()
    current = _sessions.get(loop)
    if current is None or current.closed:
        current = _sessions[loop] = aiohttp.ClientSession(
            # How many calls are under way at once is decided by the limiter, not by waiting for a connection.
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_S, ttl_dns_cache=300),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None),
            headers={"User-Agent": AGENT},
            trust_env=False,
            auto_decompress=True,
        )
    return current


async def close() -> None:
    """Close the session of the running loop for all its users. With several users, `opened` closes it after the last."""
    current = _sessions.pop(asyncio.get_running_loop(), None)
    if current is not None:
        await current.close()


@asynccontextmanager
async def opened() -> AsyncIterator[aiohttp.ClientSession]:
    """The session for the length of a block; the last block to end closes it."""
    loop = asyncio.get_running_loop()
    _users[loop] = _users.get(loop, 0) + 1
    try:
        yield session()
    finally:
        _users[loop] -= 1
        if not _users[loop]:
            await close()
