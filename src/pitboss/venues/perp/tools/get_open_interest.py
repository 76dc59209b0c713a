"""Tool `get_open_interest`: the venue's open interest and its change, in coins as the venue reports it."""

from collections.abc import Mapping
from typing import Any

from pitboss.core.instant import HOUR_MS, iso
from pitboss.prompt import render
from pitboss.tools.define import ToolContext, define_tool
from pitboss.venues.perp.analysis.points import HOURS, KnownPoints, known_points, moment, table, why_none
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.tool_symbols import SYMBOL, listed

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": [],
    "properties": {
        "symbol": SYMBOL | {"description": "One of the symbols you trade; left out for a line on each of them."},
        "hours": HOURS,
    },
}


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return one line per symbol, then a table if the history of one symbol is requested."""
    observation, history_hours = context.observation, arguments.get("hours", 0)
    if "symbol" not in arguments:
        return "\n".join(_line(observation, symbol) for symbol in observation.skill.context.sorted_symbols)
    symbol = listed(observation, arguments["symbol"])
    lines = [_line(observation, symbol)]
    interest = known_points(observation.view, "open_interest", symbol)
    if history_hours and interest is not None:
        lines += _history(observation, interest, history_hours)
    return "\n".join(lines)


def _line(observation: Observation, symbol: str) -> str:
    interest = known_points(observation.view, "open_interest", symbol)
    if interest is None:
        why = why_none(observation.view, "open_interest", symbol)
        return f"{symbol}: the open interest series {why}; nothing is known"
    old = observation.at - interest.last_at
    stale = f", which is {render.age(old)} old" if old > 2 * (interest.step_ms() or HOUR_MS) else ""
    mark = observation.world.marks.get(symbol)
    worth = "" if mark is None else f" (about {render.volume(interest.last * float(mark))} USD at the mark)"
    return (
        f"{symbol} open interest {render.volume(interest.last)} coins{worth} at {iso(interest.last_at)}{stale};"
        f" 1h: {_change(interest, 1)}, 24h: {_change(interest, 24)}"
    )


def _change(interest: KnownPoints, hours: int) -> str:
    """Return the change between the last value and the one known `hours` before it."""
    earlier = interest.before(interest.last_at - hours * HOUR_MS)
    if earlier is None:
        return "unknown, the series is shorter"
    if earlier == 0:
        return "from nothing" if interest.last else "no change"
    change = render.percent(100 * (interest.last / earlier - 1))
    return change if change.startswith("-") or change == "0%" else f"+{change}"


def _history(observation: Observation, interest: KnownPoints, history_hours: int) -> list[str]:
    span = interest.since(observation.at - history_hours * HOUR_MS)
    if span is None:
        return [f"no value in the last {history_hours}h"]
    summary = (
        f"last {history_hours}h: {len(span.value)} values, from {render.volume(min(span.value))}"
        f" to {render.volume(max(span.value))}, mean {render.volume(sum(span.value) / len(span.value))}"
    )
    rows = [f"{moment(at)} {render.volume(value)}" for at, value in zip(span.at, span.value, strict=True)]
    return [summary, *table("time(UTC) coins, newest first", rows)]


TOOL = define_tool(
    name="get_open_interest",
    category="market_data",
    description=(
        "Get the open interest of a symbol you trade, or of all of them, with its change over 1 and 24 hours, and up "
        "to a week of its history."
    ),
    ui_hint="To see whether a move is made by new positions or by closing ones.",
    schema=SCHEMA,
    example={"symbol": "BTC", "hours": 24},
    look=look,
)
