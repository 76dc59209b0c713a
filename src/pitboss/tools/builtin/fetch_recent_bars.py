"""Recent price bars of one symbol, newest first, at any interval that the run has."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from pitboss.core.errors import ToolFailed
from pitboss.core.instant import iso
from pitboss.prompt import render
from pitboss.tools.define import ToolContext, define_tool

INTERVALS = ("1m", "5m", "15m", "1h", "4h", "1d")

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["symbol", "interval", "lookback"],
    "properties": {
        "symbol": {
            "type": "string",
            "minLength": 1,
            "maxLength": 64,
            "description": "One of the symbols you trade, such as BTC.",
        },
        "interval": {"type": "string", "enum": list(INTERVALS), "description": "Length of one bar."},
        "lookback": {"type": "integer", "minimum": 1, "maximum": 500, "description": "How many bars."},
    },
}


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """A table of closed bars; the bar that is still forming is never part of it."""
    symbol, interval = arguments["symbol"], arguments["interval"]
    observation = context.observation
    symbols = observation.skill.context.sorted_symbols
    if symbol not in symbols:
        close = get_close_matches(symbol.upper(), symbols, 1)
        offer = f"did you mean {close[0]}?" if close else f"symbols: {', '.join(symbols)}"
        raise ToolFailed(f"{symbol!r} is not one of your symbols; {offer}")
    view = observation.view
    if not view.has_bars(symbol, interval):
        known = [name for name in INTERVALS if view.has_bars(symbol, name)]
        offer = f"available: {', '.join(known)}" if known else "there are none at any interval"
        raise ToolFailed(f"there are no {interval} bars of {symbol}; {offer}")
    bars = view.bars(symbol, interval, arguments["lookback"])
    if not len(bars):
        return f"{symbol} {interval}: no bar has closed by {iso(view.at)}"
    columns = (bars.open_at, bars.open, bars.high, bars.low, bars.close, bars.volume)
    rows = render.bar_rows(*(column.tolist() for column in columns))
    title = f"{symbol} {interval}, {len(rows)} closed bars by {iso(view.at)}, newest first, time is the bar's open"
    return "\n".join((title, render.bar_header(), *reversed(rows)))


TOOL = define_tool(
    name="fetch_recent_bars",
    category="market_data",
    description="Get the most recent closed OHLCV bars of a symbol you trade, newest first.",
    ui_hint="To read price action at an interval or over a span that the prompt does not show.",
    schema=SCHEMA,
    example={"symbol": "BTC", "interval": "1h", "lookback": 24},
    look=look,
)
