"""The stand-in's opinion of one chart: a score with the numbers behind it. Simple, causal, and not advice.

There are two methods: with the move (averages, momentum, breakout, the regime tag, headlines) and against it (the
position of the price in its range). A positive score is up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from statistics import fmean

from pitboss.prompt import render
from pitboss.venues.perp.standin.prompt_reader import PromptBar, PromptChart

FAST, SLOW, CHANNEL, ATR_BARS = 10, 30, 20, 14
STRONG = 4.0
"""The score at which conviction is 1."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """A score and its reasons; `range_usd` is the mean true range of a bar, used for stops."""

    score: float
    price: float
    range_usd: float
    facts: tuple[str, ...]

    @property
    def side(self) -> int:
        """+1 up, −1 down, 0 neither."""
        return (self.score > 0) - (self.score < 0)

    @property
    def conviction(self) -> float:
        """From 0 to 1."""
        return min(1.0, abs(self.score) / STRONG)


def with_the_move(chart: PromptChart, mood: float, wider: Sequence[PromptBar]) -> Opinion | None:
    """Score trend, momentum and breakout of the bars, adjusted by regime, higher timeframe and headlines."""
    rows = chart.rows
    if len(rows) <= SLOW:
        return None
    price, usual = rows[-1].close, usual_range(rows)
    if price <= 0 or usual <= 0:
        return None
    fast, slow = (fmean([row.close for row in rows[-count:]]) for count in (FAST, SLOW))
    score, facts = 0.0, [f"close {render.price(price)}"]
    gap = (fast - slow) / usual
    if abs(gap) > 0.5:
        score += 1.0 if gap > 0 else -1.0
    facts.append(f"mean of {FAST} bars {render.price(fast)} against {render.price(slow)} of {SLOW}")
    move = price / rows[-CHANNEL - 1].close - 1
    if abs(move) * price > 2 * usual:
        score += 1.0 if move > 0 else -1.0
    facts.append(f"{render.percent(move * 100)} in {CHANNEL} bars")
    top = max(row.high for row in rows[-CHANNEL - 1 : -1])
    bottom = min(row.low for row in rows[-CHANNEL - 1 : -1])
    if price > top or price < bottom:
        score += 1.5 if price > top else -1.5
        facts.append(f"close {'above' if price > top else 'below'} the {CHANNEL}-bar channel")
    score += {"trend_up": 0.5, "trend_down": -0.5}.get(chart.regime, 0.0)
    facts.append(f"regime {chart.regime}")
    if abs(mood) > 0.3:
        score += 0.5 if mood > 0 else -0.5
        facts.append(f"headlines {render.volume(mood)}")
    return Opinion(score + _wider(wider, facts), price, usual, tuple(facts))


def against_the_move(chart: PromptChart) -> Opinion | None:
    """Score the close in the range of all bars shown: long near the bottom, short near the top, never in a trend."""
    rows = chart.rows
    if len(rows) <= SLOW:
        return None
    price, usual = rows[-1].close, usual_range(rows)
    top, bottom = max(row.high for row in rows), min(row.low for row in rows)
    if top <= bottom or price <= 0 or usual <= 0:
        return None
    position = (price - bottom) / (top - bottom)
    facts = [
        f"close {render.price(price)} at {render.percent(position * 100)} of the range "
        f"{render.price(bottom)} to {render.price(top)} of {len(rows)} bars",
        f"regime {chart.regime}",
    ]
    score = 3.0 if position < 0.1 else -3.0 if position > 0.9 else (0.5 - position) * 2
    if chart.regime == "trend_up":
        score = max(score, 0.0)
    if chart.regime == "trend_down":
        score = min(score, 0.0)
    return Opinion(score, price, usual, tuple(facts))


def usual_range(rows: Sequence[PromptBar]) -> float:
    """Return the mean true range of the last bars."""
    pairs = list(zip(rows[-ATR_BARS - 1 : -1], rows[-ATR_BARS:], strict=True))
    return fsum(max(now.high, old.close) - min(now.low, old.close) for old, now in pairs) / ATR_BARS


def _wider(rows: Sequence[PromptBar], facts: list[str]) -> float:
    if len(rows) < FAST:
        return 0.0
    change = rows[-1].close / rows[-FAST].close - 1 if rows[-FAST].close > 0 else 0.0
    facts.append(f"{render.percent(change * 100)} over {FAST} wider bars")
    return 0.5 if change > 0.01 else -0.5 if change < -0.01 else 0.0
