"""A client for Hyperliquid's public data: bounded in time and size, read only, without a key or an account.

`/info` takes a POST with a `type` and is documented by Hyperliquid. The leaderboard is a file of some 25 MB on another
host in an undocumented format: it is read leniently, row by row, and cached for a minute. Failures are raised as
`ToolFailed` with one line for the model.
"""

import asyncio
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson

from pitboss.core.errors import ToolFailed

if TYPE_CHECKING:
    import httpx2

INFO_URL = "https://api.hyperliquid.xyz"
STATS_URL = "https://stats-data.hyperliquid.xyz/Mainnet"
TIMEOUT_S = 8.0
STATS_TIMEOUT_S = 15.0
MAX_BYTES = 8 * 2**20
MAX_LEADERBOARD_BYTES = 96 * 2**20
LEADERBOARD_CACHE_S = 60.0
"""How long the leaderboard is cached: it is large and changes little in a minute."""
WINDOWS = ("day", "week", "month", "allTime")
MAX_NAME_CHARS = 32


class HyperliquidClient:
    """A client of both hosts. `now` is the wall clock in ms, `elapsed` a monotonic clock in seconds."""

    def __init__(
        self,
        info_url: str,
        stats_url: str,
        now: Callable[[], int],
        elapsed: Callable[[], float],
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.now = now
        self._info = f"{info_url.rstrip('/').removesuffix('/info')}/info"
        self._stats = f"{stats_url.rstrip('/').removesuffix('/leaderboard')}/leaderboard"
        self._elapsed = elapsed
        self._max_bytes = max_bytes
        self._client: httpx2.AsyncClient | None = None
        self._board: tuple[float, list[Trader]] | None = None
        self._fetching = asyncio.Lock()

    async def ask(self, kind: str, **body: Any) -> Any:
        """Send one request to the info endpoint."""
        return await self._fetch("POST", self._info, self._max_bytes, TIMEOUT_S, {"type": kind, **body})

    async def markets(self) -> dict[str, Mapping[str, Any]]:
        """Every listed perp with its current state, by symbol."""
        reply = await self.ask("metaAndAssetCtxs")
        try:
            universe, states = reply[0]["universe"], reply[1]
            return {
                asset["name"]: state
                for asset, state in zip(universe, states, strict=True)
                if not asset.get("isDelisted") and isinstance(state, dict)
            }
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            raise ToolFailed("Hyperliquid's list of markets came in a form that is not known") from None

    async def traders(self) -> "list[Trader]":
        """The leaderboard."""
        async with self._fetching:  # concurrent requests share one download
            if self._board is None or self._elapsed() - self._board[0] > LEADERBOARD_CACHE_S:
                reply = await self._fetch("GET", self._stats, MAX_LEADERBOARD_BYTES, STATS_TIMEOUT_S)
                self._board = self._elapsed(), read_leaderboard(reply)
            return self._board[1]

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    async def _fetch(self, method: str, url: str, max_bytes: int, timeout_s: float, body: Any = None) -> Any:
        import httpx2

        host = urlsplit(url).netloc.rpartition("@")[2]
        if self._client is None:
            self._client = httpx2.AsyncClient(
                trust_env=False, follow_redirects=False, headers={"User-Agent": "pitboss-hyperliquid-info"}
            )
        content = None if body is None else orjson.dumps(body)
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._client.stream(method, url, content=content, headers=headers, timeout=timeout_s) as response,
            ):
                if response.status_code != 200:
                    raise ToolFailed(_status(host, response.status_code))
                data = bytearray()
                async for part in response.aiter_bytes():
                    data += part
                    if len(data) > max_bytes:
                        raise ToolFailed(f"{host} sent more than {max_bytes} bytes; nothing of it was read")
            return orjson.loads(data)
        except (TimeoutError, httpx2.TimeoutException):
            raise ToolFailed(f"{host} did not answer in {timeout_s:g} s; try again later") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ToolFailed(f"{host} could not be reached ({type(error).__name__}); try again later") from None
        except orjson.JSONDecodeError:
            raise ToolFailed(f"{host} sent something that is not JSON") from None


class Trader:
    """One row of the leaderboard."""

    __slots__ = ("account_value", "address", "name", "windows")

    def __init__(
        self, address: str, name: str, account_value: Decimal, windows: Mapping[str, Mapping[str, Decimal]]
    ) -> None:
        self.address = address
        self.name = name
        self.account_value = account_value
        self.windows = windows


def read_leaderboard(reply: Any) -> list[Trader]:
    """The readable rows; a reply without any is an error."""
    rows = reply.get("leaderboardRows") if isinstance(reply, dict) else reply
    traders = [trader for row in rows if (trader := _trader(row))] if isinstance(rows, list) else []
    if not traders:
        raise ToolFailed("the leaderboard came in a form that is not known")
    return traders


def number(value: Any) -> Decimal | None:
    """A decimal string or number as a Decimal; None for anything else."""
    try:
        exact = Decimal(str(value)) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
    except InvalidOperation:
        return None
    return exact if exact is not None and exact.is_finite() and abs(exact.adjusted()) < 30 else None


def _trader(row: Any) -> Trader | None:
    if not isinstance(row, dict) or not isinstance(row.get("ethAddress"), str):
        return None
    pairs = row.get("windowPerformances")
    pairs = list(pairs.items()) if isinstance(pairs, dict) else pairs
    windows: dict[str, dict[str, Decimal]] = {}
    for pair in pairs if isinstance(pairs, list) else ():
        if isinstance(pair, list | tuple) and len(pair) == 2 and pair[0] in WINDOWS and isinstance(pair[1], dict):
            windows[pair[0]] = {
                key: figure for key in ("pnl", "roi", "vlm") if (figure := number(pair[1].get(key))) is not None
            }
    address, value = row["ethAddress"].lower(), number(row.get("accountValue"))
    if not windows or value is None or not address.isascii() or not address.isalnum() or len(address) > 66:
        return None
    name = row.get("displayName")
    # The name is untrusted text.
    clean = "".join(c for c in name if c.isalnum() or c in " ._-")[:MAX_NAME_CHARS] if isinstance(name, str) else ""
    return Trader(address, clean.strip(), value, windows)


def _status(host: str, status: int) -> str:
    if status == 429:
        return f"{host} says that too much was asked (429); wait a minute"
    if status in (400, 422):
        return f"{host} did not understand the question ({status})"
    return f"{host} answers {status}; try again later"
