"""Small scenes for the reference's own tests: a few 5m bars beginning at 00:55 UTC (so the second bar opens on the hour),
every symbol marked at the close of one flat bar before, and caps so wide that only the rule under test can speak.
"""

from decimal import Decimal
from typing import Any

from reference.perp import Result, run

MINUTE = 60_000
BASE = 5 * MINUTE
HOUR = 60 * MINUTE
DAY = 24 * HOUR
MIDNIGHT = 20_000 * DAY
T0 = MIDNIGHT + 55 * MINUTE

WIDE: dict[str, Any] = {
    "max_position_pct": 1_000_000,
    "max_total_exposure_pct": 1_000_000,
    "max_leverage": 40,
    "max_orders_per_hour": 1000,
    "daily_loss_halt_pct": 100,
    "drawdown_halt_pct": 100,
    "price_band_pct": 50,
    "max_data_age_s": 1_000_000,
}
Quad = tuple[float, float, float, float] | None  # open, high, low, close; None = the bar is missing
FREE = {"maker_bps": "0", "taker_bps": "0", "slippage_bps_per_million": "0", "penalty_bps": "0"}


def flat(price: float) -> Quad:
    return (price, price, price, price)


def propose(action: str, symbol: str = "SOL", **more: Any) -> dict[str, Any]:
    return {"action": action, "symbol": symbol, "reason": "test", **more}


def scene(
    decisions: dict[int, Any],
    start: float | dict[str, float] = 100.0,
    risk: dict[str, Any] | None = None,
    first: int = T0,
    funding: dict[str, list[tuple[int, float]]] | None = None,
    every: int = 1,
    symbols: list[str] | None = None,
    **quads: Any,
) -> Result:
    """`SOL=[...]`, `DOGE=[...]`: bars from `first` on. `decisions` by number of the base bar they precede. Anything else
    in lower case goes to `run` as it is.
    """
    bars = {name: value for name, value in quads.items() if name.isupper()}
    more = {name: value for name, value in quads.items() if not name.isupper()}
    symbols = symbols if symbols is not None else sorted(bars)
    count = max(len(rows) for rows in bars.values())
    series = {}
    for symbol, rows in bars.items():
        mark = start[symbol] if isinstance(start, dict) else start
        series[symbol] = [(first - BASE, mark, mark, mark, mark)]
        series[symbol] += [(first + i * BASE, *quad) for i, quad in enumerate(rows) if quad is not None]
    return run(
        skill={"context": {"symbols": symbols, "bars_interval": "5m"}, "risk": {**WIDE, **(risk or {})}},
        bars=series,
        base_ms=BASE,
        funding=funding or {},
        from_ms=first,
        to_ms=first + count * BASE,
        tick_ms=every * BASE,
        decisions={first + i * BASE: value for i, value in decisions.items()},
        **more,
    )


def fill_rows(result: Result) -> list[tuple[str, str, str, Decimal, Decimal]]:
    """(symbol, reason, side, size, price) of every fill."""
    return [(f["symbol"], f["reason"], f["side"], f["size"], f["price"]) for f in result.fills]


def codes(result: Result) -> list[str | None]:
    """The code of every verdict, or its outcome where there is none."""
    return [code or outcome for _, outcome, code in result.verdicts]


def last(result: Result) -> Decimal:
    return result.equity[-1][1]
