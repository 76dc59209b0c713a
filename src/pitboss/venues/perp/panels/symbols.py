"""The table of symbols: what each of them contributed."""

from collections.abc import Mapping, Sequence

import numpy as np

from pitboss.report import figures
from pitboss.report.markup import Html, tag
from pitboss.report.source import Plain, RunReport, instant, number
from pitboss.report.table import LEFT, RIGHT, gain_or_loss, table

COLUMNS = (
    ("Symbol", LEFT),
    ("Trades", RIGHT),
    ("Won", RIGHT),
    ("Result", RIGHT),
    ("Best trade", RIGHT),
    ("Worst trade", RIGHT),
    ("Mean time held", RIGHT),
    ("Fees", RIGHT),
    ("Funding", RIGHT),
    ("Price change", RIGHT),
)


def symbol_section(report: RunReport) -> Html:
    """One row for each symbol of the run, then the sums; trades that are still open count at the last price."""
    trades: dict[str, list[Plain]] = {symbol: [] for symbol in sorted(report.prices)}
    for trade in report.trades:
        trades.setdefault(str(trade.get("symbol")), []).append(trade)
    if not trades:
        return tag("p", "Nothing was traded.", class_="note")
    rows = [_row(symbol, each, _price_change(report.prices, symbol)) for symbol, each in trades.items()]
    if len(rows) > 1:
        rows.append(_row("All", report.trades, None))
    return table("Results by symbol", COLUMNS, rows, style="by-symbol", stacks=True)


def _row(symbol: str, trades: Sequence[Plain], change: float | None) -> tuple[object, ...]:
    results = [result for trade in trades if (result := number(trade.get("pnl_usd"))) is not None]
    closed = [trade for trade in trades if instant(trade.get("closed_at")) is not None]
    won = sum((number(trade.get("pnl_usd")) or 0.0) > 0 for trade in closed)
    durations = [_duration(trade) for trade in closed]
    return (
        symbol,
        figures.count(len(trades)),
        figures.share(won / len(closed), 0) if closed else figures.NONE,
        _usd(sum(results)) if trades else figures.NONE,
        _usd(max(results)) if results else figures.NONE,
        _usd(min(results)) if results else figures.NONE,
        figures.span(sum(durations) / len(durations)) if durations else figures.NONE,
        figures.usd(_sum(trades, "fees_usd")),
        figures.usd(_sum(trades, "funding_usd")),
        figures.NONE if change is None else gain_or_loss(figures.percent(change, signed=True), figures.tone(change)),
    )


def _usd(value: float) -> Html:
    return gain_or_loss(figures.usd(value, signed=True), figures.tone(value))


def _sum(trades: Sequence[Plain], name: str) -> float:
    return sum(number(trade.get(name)) or 0.0 for trade in trades)


def _duration(trade: Plain) -> int:
    opened, closed = instant(trade.get("opened_at")), instant(trade.get("closed_at"))
    return 0 if opened is None or closed is None else closed - opened


def _price_change(prices: Mapping[str, object], symbol: str) -> float | None:
    bars = np.asarray(prices.get(symbol, ()), dtype=np.float64).reshape(-1, 5)
    bars = bars[np.isfinite(bars).all(axis=1)]
    return 100.0 * (float(bars[-1, 4]) / float(bars[0, 1]) - 1.0) if len(bars) and bars[0, 1] else None
