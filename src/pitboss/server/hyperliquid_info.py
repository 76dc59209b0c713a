"""An MCP server for Hyperliquid's public market data: funding, open interest, leaderboard, positions of top traders.

    python -m pitboss.server.hyperliquid_info                      stdio, as the catalogue starts it
    python -m pitboss.server.hyperliquid_info --transport http     streamable HTTP on 127.0.0.1:8000/mcp

HYPERLIQUID_INFO_URL and HYPERLIQUID_STATS_URL select another network. It only reads; it has no key and no account.
Its definitions are pinned in the catalogue: a change of a schema or a description changes the pins there, which a test
checks. The schemas are written by hand for that reason, so that no library version changes them.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pitboss.core import codec
from pitboss.core.errors import ToolFailed, UserError
from pitboss.core.instant import HOUR_MS
from pitboss.core.money import exact, text
from pitboss.core.suggestion import did_you_mean, nearest_spelling
from pitboss.server.hyperliquid_client import INFO_URL, STATS_URL, WINDOWS, HyperliquidClient, Trader, number
from pitboss.server.tool_server import known_tools_only, plain_logs, serve
from pitboss.tools import arguments as shape

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

NAME, VERSION = "hyperliquid-info", "1.0.0"
"""The version of the definitions. It changes with them, not with every release."""

HOURS_A_YEAR = 24 * 365
MAX_LATEST = 24
MAX_POSITIONS = 5
CONCURRENCY = 4
LATEST = 253_402_300_799_999
"""The last millisecond of the year 9999, the last that can be written as a date."""
COUNT = {"type": "integer", "minimum": 1}

SCHEMAS: Mapping[str, dict[str, Any]] = {
    "funding": {
        "type": "object",
        "properties": {
            "symbol": {"type": "string", "minLength": 1, "maxLength": 32, "description": "A perp, such as BTC."},
            "hours": {**COUNT, "maximum": 480, "description": "How far back to look; 24 when left out."},
        },
        "required": ["symbol"],
        "additionalProperties": False,
    },
    "open_interest": {
        "type": "object",
        "properties": {
            "symbol": {
                "type": "string", "minLength": 1, "maxLength": 32,
                "description": "A perp, such as BTC; left out or all: the largest.",
            },
            "count": {**COUNT, "maximum": 100, "description": "How many of the largest; 20 when left out."},
        },
        "additionalProperties": False,
    },
    "leaderboard": {
        "type": "object",
        "properties": {
            "window": {
                "type": "string", "enum": list(WINDOWS),
                "description": "Over which time; day when left out.",
            },
            "count": {**COUNT, "maximum": 50, "description": "How many traders; 10 when left out."},
        },
        "additionalProperties": False,
    },
    "top_traders": {
        "type": "object",
        "properties": {"count": {**COUNT, "maximum": 20, "description": "How many traders; 5 when left out."}},
        "additionalProperties": False,
    },
}  # fmt: skip

DESCRIPTIONS: Mapping[str, str] = {
    "funding": "Funding of a Hyperliquid perp: the present hourly rate and premium, and the rates of the last hours.",
    "open_interest": "Open interest on Hyperliquid in coins and USD: of one perp, or of the largest ones.",
    "leaderboard": "Hyperliquid traders with the highest profit over a window: account value, profit, return, volume.",
    "top_traders": "What the traders with the highest profit of the month hold on Hyperliquid now, and the sum of it.",
}


def create(client: HyperliquidClient) -> "MCPServer":
    """The server on a client, which it closes at its end."""
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.tools import Tool
    from mcp_types import ToolAnnotations

    plain_logs()

    @asynccontextmanager
    async def closing(_: Any) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await client.close()

    async def funding(symbol: Any = None, hours: Any = 24) -> str:
        return await _answer("funding", {"symbol": symbol, "hours": hours}, lambda a: _funding(client, **a))

    async def open_interest(symbol: Any = "all", count: Any = 20) -> str:
        return await _answer("open_interest", {"symbol": symbol, "count": count}, lambda a: _open_interest(client, **a))

    async def leaderboard(window: Any = "day", count: Any = 10) -> str:
        return await _answer("leaderboard", {"window": window, "count": count}, lambda a: _leaderboard(client, **a))

    async def top_traders(count: Any = 5) -> str:
        return await _answer("top_traders", {"count": count}, lambda a: _top_traders(client, **a))

    reads = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=True)
    tools = [
        Tool.from_function(
            function, description=DESCRIPTIONS[function.__name__], annotations=reads, structured_output=False
        ).model_copy(update={"parameters": SCHEMAS[function.__name__]})
        for function in (funding, open_interest, leaderboard, top_traders)
    ]
    server = MCPServer(
        NAME,
        title="Hyperliquid market facts",
        version=VERSION,
        tools=tools,
        lifespan=closing,
        log_level="WARNING",
        subscriptions=False,
    )
    server.middleware.append(known_tools_only(frozenset(SCHEMAS)))
    return server


async def _answer(tool: str, arguments: dict[str, Any], work: Callable[[dict[str, Any]], Awaitable[Any]]) -> str:
    """Check the arguments, do the work, and return the result as canonical JSON."""
    from mcp.server.mcpserver.exceptions import ToolError

    try:
        plain = {name: Decimal(repr(value)) if isinstance(value, float) else value for name, value in arguments.items()}
        checked = shape.check(SCHEMAS[tool], {name: value for name, value in plain.items() if value is not None})
        return codec.dumps(await work(checked)).decode()
    except ToolFailed as error:
        raise ToolError(str(error)) from None


async def _funding(client: HyperliquidClient, symbol: str, hours: int) -> dict[str, Any]:
    markets = await client.markets()
    name = _listed_symbol(symbol, markets)
    rows = await client.ask("fundingHistory", coin=name, startTime=client.now() - hours * HOUR_MS)
    if not isinstance(rows, list):
        raise ToolFailed("Hyperliquid's funding history came in a form that is not known")
    rates = sorted(
        (row["time"], rate)
        for row in rows
        if isinstance(row, dict)
        and isinstance(row.get("time"), int)
        and 0 <= row["time"] <= LATEST
        and (rate := number(row.get("fundingRate"))) is not None
    )
    state = markets[name]
    rate = number(state.get("funding"))
    return {
        "symbol": name,
        "now": {
            "hourly_rate": _text(rate),
            "yearly_pct": _text(rate * HOURS_A_YEAR * 100, 2) if rate is not None else None,
            "premium": _text(number(state.get("premium"))),
            "mark_px": _text(number(state.get("markPx"))),
            "oracle_px": _text(number(state.get("oraclePx"))),
        },
        "history": {"hours": hours, **_summary([rate for _, rate in rates]), "latest": _latest(rates)},
    }  # fmt: skip


@exact
def _summary(rates: Sequence[Decimal]) -> dict[str, Any]:
    if not rates:
        return {"payments": 0}
    total = sum(rates, Decimal(0))
    return {
        "payments": len(rates),
        "sum": _text(total, 10),
        "mean": _text(total / len(rates), 10),
        "lowest": _text(min(rates)),
        "highest": _text(max(rates)),
    }


def _latest(rows: Sequence[tuple[int, Decimal]]) -> list[list[Any]]:
    # Funding is paid a few milliseconds after the hour; the hour is shown.
    return [[_hour(at), _text(rate)] for at, rate in reversed(rows[-MAX_LATEST:])]


async def _open_interest(client: HyperliquidClient, symbol: str, count: int) -> dict[str, Any]:
    markets = await client.markets()
    if symbol.lower() != "all":
        name = _listed_symbol(symbol, markets)
        return {"symbol": name, **dict(zip(_COLUMNS[1:], _sizes(name, markets[name])[1:], strict=True))}
    rows = sorted((_sizes(name, state) for name, state in markets.items()), key=_largest)
    total = sum((Decimal(row[2]) for row in rows if row[2] is not None), Decimal(0))
    return {"markets": len(rows), "total_usd": _text(total, 0), "columns": _COLUMNS, "rows": rows[:count]}


_COLUMNS = ("symbol", "open_interest", "open_interest_usd", "day_volume_usd", "mark_px", "hourly_funding")


def _sizes(name: str, state: Mapping[str, Any]) -> list[Any]:
    size, mark = number(state.get("openInterest")), number(state.get("markPx"))
    worth = size * mark if size is not None and mark is not None else None
    volume, funding = number(state.get("dayNtlVlm")), number(state.get("funding"))
    return [name, _text(size), _text(worth, 0), _text(volume, 0), _text(mark), _text(funding)]


def _largest(row: Sequence[Any]) -> tuple[Decimal, str]:
    return (-Decimal(row[2]) if row[2] is not None else Decimal(1), row[0])


async def _leaderboard(client: HyperliquidClient, window: str, count: int) -> dict[str, Any]:
    rows = [
        [rank, trader.address, trader.name, _text(trader.account_value, 0)]
        + [_text(trader.windows[window].get(key), digits) for key, digits in (("pnl", 0), ("roi", 4), ("vlm", 0))]
        for rank, trader in enumerate(_most_profitable(await client.traders(), window)[:count], 1)
    ]
    columns = ("rank", "address", "name", "account_value_usd", "pnl_usd", "roi", "volume_usd")
    return {"window": window, "columns": columns, "rows": rows}


def _most_profitable(traders: Sequence[Trader], window: str) -> list[Trader]:
    ranked = [trader for trader in traders if "pnl" in trader.windows.get(window, {})]
    return sorted(ranked, key=lambda trader: (-trader.windows[window]["pnl"], trader.address))


async def _top_traders(client: HyperliquidClient, count: int) -> dict[str, Any]:
    traders = _most_profitable(await client.traders(), "month")[:count]
    slots = asyncio.Semaphore(CONCURRENCY)

    async def positions(trader: Trader) -> list[list[Any]] | None:
        async with slots:
            try:
                return _positions(await client.ask("clearinghouseState", user=trader.address))
            except ToolFailed:
                return None  # an unreadable account is left out

    books = await asyncio.gather(*(positions(trader) for trader in traders))
    net: dict[str, Decimal] = {}
    for book in books:
        for symbol, worth, *_ in book or ():
            net[symbol] = net.get(symbol, Decimal(0)) + Decimal(worth)
    return {
        "window": "month",
        "net_usd": [[symbol, _text(worth, 0)] for symbol, worth in sorted(net.items(), key=lambda item: (-abs(item[1]), item[0]))],
        "position_columns": ("symbol", "signed_usd", "leverage", "entry_px", "unrealized_usd"),
        "traders": [
            {
                "address": trader.address,
                "account_value_usd": _text(trader.account_value, 0),
                "pnl_usd": _text(trader.windows["month"]["pnl"], 0),
                **({"positions": book[:MAX_POSITIONS], "held": len(book)} if book is not None else {"positions": None}),
            }
            for trader, book in zip(traders, books, strict=True)
        ],
    }  # fmt: skip


def _positions(reply: Any) -> list[list[Any]]:
    rows: list[list[Any]] = []
    items = reply.get("assetPositions") if isinstance(reply, dict) else None
    for item in items if isinstance(items, list) else ():
        position = item.get("position") if isinstance(item, dict) else None
        if not isinstance(position, dict) or not isinstance(position.get("coin"), str):
            continue
        size, worth = number(position.get("szi")), number(position.get("positionValue"))
        if not size or worth is None:
            continue
        leverage = position.get("leverage")
        rows.append(
            [
                position["coin"][:32],
                _text(worth if size > 0 else -worth, 0),
                _text(number(leverage.get("value"))) if isinstance(leverage, dict) else None,
                _text(number(position.get("entryPx"))),
                _text(number(position.get("unrealizedPnl")), 0),
            ]
        )
    return sorted(rows, key=lambda row: (-abs(Decimal(row[1])), row[0]))


def _listed_symbol(symbol: str, markets: Mapping[str, Any]) -> str:
    names = {name.lower(): name for name in markets}
    listed = symbol if symbol in markets else names.get(symbol.strip().lower())
    if listed is None:
        hint = did_you_mean(nearest_spelling(symbol, markets), "")
        raise ToolFailed(f"no perp {symbol!r} is listed" + (f"; {hint}" if hint else ""))
    return listed


@exact
def _text(value: Decimal | None, digits: int | None = None) -> str | None:
    if value is None:
        return None
    return text(value if digits is None else round(value, digits))


def _hour(at_ms: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(at_ms // HOUR_MS * 3_600, UTC).strftime("%Y-%m-%dT%H:%MZ")


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until the client disconnects."""
    parser = argparse.ArgumentParser(
        prog="python -m pitboss.server.hyperliquid_info",
        description="An MCP server for Hyperliquid's public market facts. Reads only; needs no key.",
        epilog="HYPERLIQUID_INFO_URL and HYPERLIQUID_STATS_URL set other addresses than the main network's.",
    )
    parser.add_argument("--transport", choices=("stdio", "http"), default="stdio", help="transport of the MCP protocol")
    parser.add_argument("--host", default="127.0.0.1", help="address of this machine to listen on, for http")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on, for http")
    options = parser.parse_args(argv)

    from pitboss.bootstrap.machine import SystemClock, environment, stopwatch

    client = HyperliquidClient(
        environment("HYPERLIQUID_INFO_URL") or INFO_URL,
        environment("HYPERLIQUID_STATS_URL") or STATS_URL,
        SystemClock().now,
        stopwatch,
    )
    try:
        address = (options.host, options.port) if options.transport == "http" else None
        serve(create(client), address, lambda message: sys.stderr.write(f"{message}\n"))
    except UserError as error:
        parser.error(f"{error.message}; {error.hint}")


if __name__ == "__main__":
    main()
