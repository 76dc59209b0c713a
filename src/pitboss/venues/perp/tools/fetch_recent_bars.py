"""Tool `fetch_recent_bars`: recent bars of one symbol, newest first, at any interval that the run has."""

from collections.abc import Mapping
from typing import Any

from pitboss.core.instant import iso
from pitboss.prompt import render
from pitboss.tools.define import ToolContext, define_tool
from pitboss.venues.perp.tool_symbols import INTERVAL, SYMBOL, closed_bars, none_closed

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["symbol", "interval", "lookback"],
    "properties": {
        "symbol": SYMBOL,
        "interval": INTERVAL,
        "lookback": {"type": "integer", "minimum": 1, "maximum": 500, "description": "How many bars."},
    },
}


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return a table of closed bars; the bar that is still forming is never part of it."""
    symbol, interval = arguments["symbol"], arguments["interval"]
    bars = closed_bars(context.observation, symbol, interval, arguments["lookback"])
    if not len(bars):
        return none_closed(context.observation, symbol, interval)
    columns = (bars.open_at, bars.open, bars.high, bars.low, bars.close, bars.volume)
    rows = render.bar_rows(*(column.tolist() for column in columns))
    by = iso(context.observation.at)
    title = f"{symbol} {interval}, {len(rows)} closed bars by {by}, newest first, time is the bar's open"
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
