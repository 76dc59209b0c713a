"""Tool `analyze_chart_pattern`: the trend of the swings, the patterns they form, levels, and the newest candles.

Swings and patterns are implemented in `analysis.swings` and `analysis.patterns`; a pattern's confidence is
the share of such patterns on charts of a random walk that fit worse, see `analysis.pattern_rarity`. Candles are
TA-Lib's. Nothing here is a forecast, and the answer states that.
"""

from collections.abc import Mapping
from math import exp
from typing import Any

from pitboss.core.instant import iso
from pitboss.core.market import Bars
from pitboss.prompt import render
from pitboss.tools.define import ToolContext, define_tool
from pitboss.venues.perp.analysis import pattern_rarity
from pitboss.venues.perp.analysis.candles import WARM_UP, candles
from pitboss.venues.perp.analysis.patterns import Pattern, patterns
from pitboss.venues.perp.analysis.points import moment
from pitboss.venues.perp.analysis.swings import PriceLevel, SwingChart, chart_of, levels, trend
from pitboss.venues.perp.tool_symbols import INTERVAL, SYMBOL, closed_bars, none_closed

FEWEST = 20
_NEWEST_CANDLES = 5
_TURNS_SHOWN = 8
_LEVELS_A_SIDE = 3

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["symbol", "interval", "lookback"],
    "properties": {
        "symbol": SYMBOL,
        "interval": INTERVAL,
        "lookback": {
            "type": "integer",
            "minimum": FEWEST,
            "maximum": 500,
            "description": "How many bars to look at; the more, the larger the swings that count.",
        },
    },
}


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return trend, swings, patterns, levels and candles."""
    observation, symbol, interval = context.observation, arguments["symbol"], arguments["interval"]
    all_bars = closed_bars(observation, symbol, interval, arguments["lookback"] + WARM_UP)
    if not len(all_bars):
        return none_closed(observation, symbol, interval)
    bars = all_bars.slice(max(0, len(all_bars) - arguments["lookback"]), len(all_bars))
    title = (
        f"{symbol} {interval}, {len(bars)} closed bars by {iso(observation.at)}, close"
        f" {render.price(float(bars.close[-1]))}"
    )
    if len(bars) < FEWEST:
        return f"{title}: too few bars to tell a pattern, {FEWEST} are needed"
    chart = chart_of(bars)
    if not chart.usual:
        return f"{title}: the price does not move, there is no pattern"
    lines = [title, *_swings(chart, bars), *_shapes(chart, bars), *_levels(chart, bars)]
    return "\n".join((*lines, *_candles(all_bars, len(bars))))


def _swings(chart: SwingChart, bars: Bars) -> list[str]:
    description, agreement = trend(chart)
    share = f", {agreement:.0%} of the newest swings agree" if agreement else ""
    lines = [
        f"trend: {description}{share}; a swing is a move back of {render.percent(100 * (exp(chart.reversal) - 1))}"
    ]
    if chart.turns:
        newest = [
            f"{'high' if turn.side > 0 else 'low'} {_price(turn.price, bars)} {_when(turn.index, bars)}"
            for turn in reversed(chart.turns[-_TURNS_SHOWN:])
        ]
        lines.append(f"swings, newest first: {'; '.join(newest)}")
    return lines


def _shapes(chart: SwingChart, bars: Bars) -> list[str]:
    shapes = patterns(chart)
    if not shapes:
        return ["patterns: none in the newest swings"]
    title = "patterns (confidence: share of chance patterns of the kind that fit worse; not a forecast):"
    return [title, *(_shape(shape, bars) for shape in shapes)]


def _shape(shape: Pattern, bars: Bars) -> str:
    certain = pattern_rarity.confidence(shape.family, len(bars), shape.fit)
    common = pattern_rarity.chance(shape.family, len(bars))
    points = {-1: "bearish", 0: "either way", 1: "bullish"}[shape.side]
    trigger, void, target = (_price(price, bars) for price in (shape.trigger, shape.void, shape.target))
    if shape.side == 0:
        ends = f"leaves it above {void} or below {trigger}"
    else:
        under, over = ("below", "above") if shape.side < 0 else ("above", "below")
        confirmation = "confirmed by the close" if shape.stage == "confirmed" else "confirmed by a close"
        ends = f"{confirmation} {under} {trigger}, void {over} {void}, measured to {target}"
    return (
        f"- {shape.name}, {points}, {shape.stage}: confidence {certain:.2f}, fit {shape.fit:.2f}"
        f" (chance draws one on {common:.0%} of charts); {_when(shape.indices[0], bars)} to"
        f" {_when(shape.indices[-1], bars)}; {ends}"
    )


def _levels(chart: SwingChart, bars: Bars) -> list[str]:
    price_levels = levels(chart)
    above = [level for level in price_levels if level.price > chart.last][:_LEVELS_A_SIDE]
    below = [level for level in reversed(price_levels) if level.price <= chart.last][:_LEVELS_A_SIDE]
    if not above and not below:
        return ["levels: no price at which two swings ended"]
    return [f"resistance: {_side(above, bars)}", f"support: {_side(below, bars)}"]


def _side(price_levels: list[PriceLevel], bars: Bars) -> str:
    descriptions = [
        f"{_price(level.price, bars)} ({level.touches} swings, last {_when(level.last_index, bars)},"
        f" held {level.hold_rate:.0%} of visits)"
        for level in price_levels
    ]
    return "; ".join(descriptions) or "none"


def _candles(all_bars: Bars, window: int) -> list[str]:
    newest = candles(all_bars, window, _NEWEST_CANDLES)
    if not newest:
        return [f"candles: none on the last {_NEWEST_CANDLES} bars"]
    lines = [
        f"- {_when(candle.index, all_bars)} {candle.name}, {candle.direction}, {candle.count} in {window} bars"
        for candle in newest
    ]
    return [f"candles that ended on the last {_NEWEST_CANDLES} bars, newest first:", *lines]


def _price(log_price: float, bars: Bars) -> str:
    return render.price(float(bars.close[-1]) * exp(log_price))


def _when(index: int, bars: Bars) -> str:
    return moment(int(bars.open_at[index]))


TOOL = define_tool(
    name="analyze_chart_pattern",
    category="market_data",
    description=(
        "Look for chart patterns of a symbol you trade over closed bars: trend of the swings, double tops and bottoms, "
        "head and shoulders, triangles, flags, support and resistance, candle patterns, each with what would confirm it."
    ),
    ui_hint="For strategies in words such as breakout or failed high; shapes also appear by chance, and it tells how often.",
    schema=SCHEMA,
    example={"symbol": "BTC", "interval": "1h", "lookback": 120},
    look=look,
)
