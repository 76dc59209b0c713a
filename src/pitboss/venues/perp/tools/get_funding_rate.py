"""Tool `get_funding_rate`: the last known funding rate of one symbol, its cost, and its history.

With a positive rate longs pay shorts. A row's rate is for its own interval (one hour on Hyperliquid) and was settled at
the row's time; the next rate is not known before its own time and is not estimated here.
"""

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
    "required": ["symbol"],
    "properties": {"symbol": SYMBOL, "hours": HOURS},
}

_HOURS_A_YEAR = 24 * 365
_EXAMPLE_USD = 1_000


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return the last rate in words and numbers, then a table if history is requested."""
    observation = context.observation
    symbol = listed(observation, arguments["symbol"])
    rates = known_points(observation.view, "funding", symbol)
    if rates is None:
        return f"{symbol}: the funding series {why_none(observation.view, 'funding', symbol)}; no rate is known"
    hours = (rates.step_ms() or HOUR_MS) / HOUR_MS
    lines = [*_now(observation, symbol, rates, hours), *_position_cost(observation, symbol, rates.last / hours)]
    history_hours = arguments.get("hours", 0)
    if history_hours:
        lines += _history(observation, rates, history_hours, hours)
    return "\n".join(lines)


def _now(observation: Observation, symbol: str, rates: KnownPoints, hours: float) -> list[str]:
    rate, per_hour = rates.last, rates.last / hours
    old = observation.at - rates.last_at
    stale = f", which is {render.age(old)} old" if old > 2 * hours * HOUR_MS else ""
    return [
        f"{symbol} funding, last known {_rate(rate)} for {render.age(round(hours * HOUR_MS))}"
        f" at {iso(rates.last_at)}{stale}; {_payer(rate)}",
        f"annualised {render.percent(100 * per_hour * _HOURS_A_YEAR)}; a {_EXAMPLE_USD} USD long"
        f" {_flow(per_hour * _EXAMPLE_USD)} an hour at this rate, a short the opposite; the next rate is not known yet",
    ]


def _position_cost(observation: Observation, symbol: str, per_hour: float) -> list[str]:
    position = observation.world.positions.get(symbol)
    mark = observation.world.marks.get(symbol)
    if position is None or mark is None:
        return []
    notional = float(abs(position.size) * mark)
    side = "long" if position.size > 0 else "short"
    flow = _flow(per_hour * notional * position.side)
    return [f"your {side} of {render.amount(notional)} USD {flow} an hour at this rate"]


def _history(observation: Observation, rates: KnownPoints, history_hours: int, hours: float) -> list[str]:
    span = rates.since(observation.at - history_hours * HOUR_MS)
    if span is None:
        return [f"no rate in the last {history_hours}h"]
    mean = sum(span.value) / len(span.value)
    summary = (
        f"last {history_hours}h: {len(span.value)} rates, mean {_rate(mean)}"
        f" (annualised {render.percent(100 * mean / hours * _HOURS_A_YEAR)}),"
        f" from {_rate(min(span.value))} to {_rate(max(span.value))},"
        f" sum {_rate(sum(span.value))}, {sum(rate > 0 for rate in span.value)} of them paid by longs"
    )
    rows = [f"{moment(at)} {_rate(rate)}" for at, rate in zip(span.at, span.value, strict=True)]
    return [summary, *table("time(UTC) rate, newest first", rows)]


def _rate(rate: float) -> str:
    return f"{render.price(100 * rate)}%"


def _payer(rate: float) -> str:
    if rate == 0:
        return "nobody pays"
    return "longs pay shorts" if rate > 0 else "shorts pay longs"


def _flow(usd: float) -> str:
    return f"{'pays' if usd > 0 else 'receives'} {render.amount(abs(usd))} USD" if usd else "pays nothing"


TOOL = define_tool(
    name="get_funding_rate",
    category="market_data",
    description=(
        "Get the last known funding rate of a symbol you trade, annualised and in USD an hour, and up to a week of "
        "its history. Positive: longs pay shorts."
    ),
    ui_hint="For carry strategies, and to know what holding a position costs.",
    schema=SCHEMA,
    example={"symbol": "BTC", "hours": 24},
    look=look,
)
