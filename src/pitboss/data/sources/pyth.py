"""Pyth Benchmarks: candles of oracle prices, through its TradingView interface.

Bars of an oracle have no volume: it is 0 throughout. `BTC` is requested as `Crypto.BTC/USD`; a name with a dot is used as
it is. Current prices are in `data.hermes`. No account, no key.
"""

from typing import Any

import polars as pl

from pitboss.core.errors import UserError
from pitboss.core.instant import SECOND_MS, Instant, interval_ms
from pitboss.data.fetch import Fetcher, MalformedReply, Query, Reply, WeightLimiter, address, host_of
from pitboss.data.reply_rows import MOST_ROWS, checked_bars
from pitboss.data.source import DataSource, DownloadRequest, Ranged, Task

URL = "https://benchmarks.pyth.network"
REQUESTS, WINDOW_S = 30, 10.0
MOST_BARS = 1_440
"""A day of minutes per request: the service documents no limit, so a modest one is used."""
MOST_BYTES = 4 * 2**20
MOST_PRICE = 1e12
LATEST_S = 4_102_444_800
"""The year 2100: milliseconds taken for seconds lie far beyond it."""
RESOLUTIONS = {
    "1m": "1",
    "5m": "5",
    "15m": "15",
    "30m": "30",
    "1h": "60",
    "2h": "120",
    "4h": "240",
    "12h": "720",
    "1d": "1D",
}
_COLUMNS = ("o", "h", "l", "c")


def name_of(symbol: str) -> str:
    """The name of a symbol at the service."""
    return symbol if "." in symbol else f"Crypto.{symbol}/USD"


async def plan(request: DownloadRequest, fetcher: Fetcher) -> list[Task]:
    """Bars of each symbol and interval."""
    SOURCE.kinds_of(request)
    base = address(request.base_url or URL)
    for interval in request.intervals:
        if interval not in RESOLUTIONS:
            raise UserError(f"pyth has no bars of {interval}", f"one of {', '.join(RESOLUTIONS)}")
    budget = fetcher.budget(REQUESTS, WINDOW_S)
    return [
        _candles(base, fetcher, budget, symbol, interval)
        for symbol in request.symbols
        for interval in request.intervals
    ]


def _candles(base: str, fetcher: Fetcher, budget: WeightLimiter, symbol: str, interval: str) -> Ranged:
    step = interval_ms(interval)

    async def page(from_at: Instant, to_at: Instant) -> pl.DataFrame:
        def parse(reply: Reply) -> pl.DataFrame:
            rows = rows_of(reply.json(), host_of(base), name_of(symbol))
            # the newest bar may still be open
            fit = [row for row in rows if from_at <= row["t"] < to_at and row["t"] + step <= reply.settled_at]
            return checked_bars(fit, interval, f"candles of {symbol}")

        params = {
            "symbol": name_of(symbol),
            "resolution": RESOLUTIONS[interval],
            "from": str(from_at // SECOND_MS),
            "to": str((to_at - 1) // SECOND_MS),
        }
        query = Query(f"{base}/v1/shims/tradingview/history", params, most_bytes=MOST_BYTES)
        return await fetcher.ask(query, parse, budget)

    return Ranged("bars", symbol, interval, step, MOST_BARS * step, page)


def rows_of(value: Any, host: str, name: str) -> list[dict[str, Any]]:
    """The bars of a reply with their times in milliseconds; none where the service has none."""
    status = value.get("s") if isinstance(value, dict) else None
    if status == "no_data":
        return []
    if status == "error":
        raise UserError(
            f"{host} has no candles of {name}: {_printable(value.get('errmsg'))}", "check --symbols and --from"
        )
    if status != "ok":
        raise MalformedReply("the reply says neither ok nor no_data")
    times = _column(value, "t", None)
    columns = {column: _column(value, column, len(times)) for column in _COLUMNS}
    columns["v"] = _column(value, "v", len(times)) if value.get("v") is not None else [0] * len(times)
    for at in times:
        if isinstance(at, bool) or not isinstance(at, int) or not 0 < at <= LATEST_S:
            raise MalformedReply("a candle has no time in seconds")
    for column, cells in columns.items():
        for cell in cells:
            if isinstance(cell, bool) or not isinstance(cell, int | float) or not abs(cell) < MOST_PRICE:
                raise MalformedReply(f"a candle has an impossible value of {column!r}")
    return [
        {"t": at * SECOND_MS, **{column: columns[column][index] for column in columns}}
        for index, at in enumerate(times)
    ]


def _column(value: dict[str, Any], name: str, length: int | None) -> list[Any]:
    column = value.get(name)
    if not isinstance(column, list) or len(column) > MOST_ROWS or (length is not None and len(column) != length):
        raise MalformedReply(f"the reply has no column {name!r} as long as the others")
    return column


def _printable(message: Any) -> str:
    """The error message of the service in a form that is safe to show."""
    text = " ".join(message.split()) if isinstance(message, str) else ""
    return "".join(character for character in text if character.isprintable())[:120] or "no reason given"


SOURCE = DataSource(
    "pyth",
    "pyth",
    "candles of oracle prices, from a minute to a day",
    ("bars",),
    ("bars",),
    ("symbols", "interval", "from"),
    plan,
    {"base-url": URL},
)
