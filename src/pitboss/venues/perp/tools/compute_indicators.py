"""Tool `compute_indicators`: indicators of one symbol over closed bars: now, one bar before, and the 20-bar range.

They are computed over at most the newest 2,000 bars, so that an answer costs the same at the end of a long run as at
its beginning. What older bars would add to the slowest indicator is far below the precision shown.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pitboss.core.instant import DAY_MS, iso
from pitboss.core.market import Bars, Floats
from pitboss.prompt import render
from pitboss.tools.define import ToolContext, define_tool
from pitboss.venues.perp.analysis.indicators import KINDS, IndicatorSpec, columns_of, offer, read_names
from pitboss.venues.perp.analysis.points import moment
from pitboss.venues.perp.tool_symbols import INTERVAL, SYMBOL, closed_bars, none_closed

MOST_BARS = 2_000
RANGE = 20

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["symbol", "interval", "indicators"],
    "properties": {
        "symbol": SYMBOL,
        "interval": INTERVAL,
        "indicators": {
            "type": "string",
            "minLength": 2,
            "maxLength": 200,
            "description": (
                f"Up to 12 names with commas between them, with a period of 2 to 200 where one is taken: {offer()}."
            ),
        },
    },
}


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return one line for each line of each indicator."""
    symbol, interval = arguments["symbol"], arguments["interval"]
    specs = read_names(arguments["indicators"])
    bars = closed_bars(context.observation, symbol, interval, MOST_BARS)
    if not len(bars):
        return none_closed(context.observation, symbol, interval)
    columns = columns_of(bars)
    lines = [
        f"{symbol} {interval}, {len(bars)} closed bars used, the last opened {moment(int(bars.open_at[-1]))},"
        f" close {render.price(float(bars.close[-1]))}, by {iso(context.observation.at)}",
        f"name now (one bar before; lowest to highest of the last {RANGE} bars)",
    ]
    with np.errstate(all="ignore"):
        for spec in specs:
            for part, column in KINDS[spec.kind].lines(columns, spec.period).items():
                name = f"{spec.name} {part}" if part else spec.name
                formatter = render.price if KINDS[spec.kind].unit and "%" not in part else _number
                lines.append(f"{name} {_line(column, spec, bars, formatter)}")
    lines += [f"({note})" for note in _notes(specs, bars)]
    return "\n".join(lines)


def _line(column: Floats, spec: IndicatorSpec, bars: Bars, formatter: Callable[[float], str]) -> str:
    last = float(column[-1])
    if not np.isfinite(last):
        return f"n/a: {_why(column, spec, bars)}"
    before = float(column[-2]) if len(column) > 1 else float("nan")
    recent = column[-RANGE:]
    recent = recent[np.isfinite(recent)]
    short = "" if len(recent) == RANGE else f" of only {len(recent)}"
    return f"{formatter(last)} ({formatter(before)}; {formatter(float(recent.min()))} to {formatter(float(recent.max()))}{short})"


def _why(column: Floats, spec: IndicatorSpec, bars: Bars) -> str:
    if np.isfinite(column).any():
        return "nothing traded or moved"
    if spec.name == "vwap":
        return "the day began before the first bar"
    return f"not enough history for it, or nothing moved, in {len(bars)} closed bars"


def _notes(specs: list[IndicatorSpec], bars: Bars) -> list[str]:
    notes: list[str] = []
    if any(spec.kind == "obv" for spec in specs):
        notes.append(f"obv counts from {render.time(int(bars.open_at[0]))}: only its changes mean something")
    if any(spec.name == "vwap" for spec in specs) and bars.interval_ms >= DAY_MS:
        notes.append("vwap of a day bar is its own mean price; ask for vwap20 instead")
    return notes


def _number(x: float) -> str:
    """Format an oscillator or a percentage; four significant digits exceed its precision."""
    return render.volume(x)


TOOL = define_tool(
    name="compute_indicators",
    category="market_data",
    description=(
        "Compute indicators of a symbol you trade over closed bars: the value now, the one before and the range of the "
        f"last 20 bars. There are {offer()}."
    ),
    ui_hint="So that the agent need not do arithmetic on bars, which models do badly.",
    schema=SCHEMA,
    example={"symbol": "BTC", "interval": "1h", "indicators": "rsi14, ema50, macd, bollinger, atr14, adx14, vwap"},
    look=look,
)
