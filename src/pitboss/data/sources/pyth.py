"""Pyth Benchmarks: candles of oracle prices, through the form that charts are drawn from.

Bars of an oracle have no volume: it is 0 throughout. `BTC` is asked for as `Crypto.BTC/USD`; a name with a dot is asked
for as it is. The price of this moment is `data.hermes`. No account, no key.
"""

from typing import Any

from pitboss.core.errors import UserError
from pitboss.core.instant import SECOND_MS, Instant, interval_ms
from pitboss.data.fetch import Fetcher, MalformedReply, Query, Reply, WeightLimiter, address, host_of
from pitboss.data.reply_rows import MOST_ROWS, checked_bars
from pitboss.data.source import DataSource, DownloadRequest, Ranged, SourcePage, Task

URL = "https://benchmarks.pyth.network"
REQUESTS, WINDOW_S = 30, 10.0
MOST_BARS = 1_440
"""A day of minutes at once: the service names no limit, so ours is one that nobody minds."""
MOST_BYTES = 4 * 2**20
MOST_PRICE = 1e12
LATEST_S = 4_102_444_800
"""The year 2100: milliseconds taken for seconds lie far behind it."""
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
    """What the service calls it."""
    return symbol if "." in symbol else f"Crypto.{symbol}/USD"


async def plan(wanted: DownloadRequest, fetcher: Fetcher) -> list[Task]:
    """Bars of each symbol and interval."""
    SOURCE.kinds_of(wanted)
    base = address(wanted.base_url or URL)
    for interval in wanted.intervals:
        if interval not in RESOLUTIONS:
            raise UserError(f"pyth has no bars of {interval}", f"one of {', '.join(RESOLUTIONS)}")
    budget = fetcher.budget(REQUESTS, WINDOW_S)
    return [
        _candles(base, fetcher, budget, symbol, interval) for symbol in wanted.symbols for interval in wanted.intervals
    ]


def _candles(base: str, fetcher: Fetcher, budget: WeightLimiter, symbol: str, interval: str) -> Ranged:
    step = interval_ms(interval)

    async def page(from_at: Instant, to_at: Instant) -> SourcePage:
        def read(reply: Reply) -> SourcePage:
            rows = rows_of(reply.json(), host_of(base), name_of(symbol))
            # The newest bar may still be open; one that opens in the future cannot be at all.
            fit = [row for row in rows if from_at <= row["t"] < to_at and row["t"] + step <= reply.settled_at]
            return SourcePage(checked_bars(fit, interval, f"candles of {symbol}"))

        asked = {
            "symbol": name_of(symbol),
            "resolution": RESOLUTIONS[interval],
            "from": str(from_at // SECOND_MS),
            "to": str((to_at - 1) // SECOND_MS),
        }
        query = Query(f"{base}/v1/shims/tradingview/history", asked, most_bytes=MOST_BYTES)
        return await fetcher.ask(query, read, budget)

    return Ranged("bars", symbol, interval, step, MOST_BARS * step, page)


def rows_of(value: Any, host: str, name: str) -> list[dict[str, Any]]:
    """The bars of a reply with their times in milliseconds; none where the service has none."""
    said = value.get("s") if isinstance(value, dict) else None
    if said == "no_data":
        return []
    if said == "error":
        raise UserError(f"{host} has no candles of {name}: {_words(value.get('errmsg'))}", "check --symbols and --from")
    if said != "ok":
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
                raise MalformedReply(f"a candle has a value of {column!r} that cannot be")
    return [
        {"t": at * SECOND_MS, **{column: columns[column][place] for column in columns}}
        for place, at in enumerate(times)
    ]


def _column(value: dict[str, Any], name: str, length: int | None) -> list[Any]:
    found = value.get(name)
    if not isinstance(found, list) or len(found) > MOST_ROWS or (length is not None and len(found) != length):
        raise MalformedReply(f"the reply has no column {name!r} as long as the others")
    return found


def _words(told: Any) -> str:
    """What a stranger says went wrong, as it may be shown."""
    text = " ".join(told.split()) if isinstance(told, str) else ""
    return "".join(sign for sign in text if sign.isprintable())[:120] or "it does not say why"


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
