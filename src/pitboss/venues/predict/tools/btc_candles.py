"""One-minute BTC candles, closed ones only."""

from collections.abc import Mapping
from typing import Any

from pitboss.core.instant import iso
from pitboss.prompt import render
from pitboss.tools.define import ToolContext, define_tool
from pitboss.venues.predict.observation import mid_change
from pitboss.venues.predict.tool_market import observation_of

FEW, MOST = 60, 360
SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": [],
    "properties": {
        "minutes": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST,
            "description": f"How many minutes back; {FEW} when left out.",
        }
    },
}


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return a table, newest first; the minute still forming is never included."""
    observation = observation_of(context)
    minutes = arguments.get("minutes", FEW)
    bars = observation.candles(minutes)
    if bars is None or not len(bars):
        return f"no {observation.underlying} candles are known for the {minutes} minutes before {iso(observation.at)}"
    columns = (bars.open_at, bars.open, bars.high, bars.low, bars.close, bars.volume)
    rows = render.bar_rows(*(column.tolist() for column in columns))
    change = mid_change(bars)
    moved = "" if change is None else f", closes moved {render.percent(change)}"
    title = f"{observation.underlying} 1m, {len(rows)} closed bars by {iso(observation.at)}, newest first{moved}"
    return "\n".join((title, render.bar_header(), *reversed(rows)))


TOOL = define_tool(
    name="btc_candles",
    category="market_data",
    description="Get the last N minutes of BTC/USD one-minute candles, newest first.",
    ui_hint="The prompt shows the closes of the skill's window; this reaches further and has highs and lows.",
    schema=SCHEMA,
    example={"minutes": 120},
    look=look,
)
