"""Swings: the turning points of a chart, their trend, and the levels at which price repeatedly turns.

Everything is in log prices, so that a chart at ten times the price has the same swings, and every rule is symmetrical:
the mirrored chart has the mirrored swings. A swing is confirmed only after price has reversed by the threshold, so every
swing is known by the last bar given.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pitboss.core.market import Bars, Floats

REVERSAL_RANGES = 2.0
REVERSAL_SHARE = 1 / 8
"""A reversal is at least twice the mean range of a bar and an eighth of the range of the chart: a longer lookback counts
larger swings only."""

_LEVEL_SHARE = 1 / 4
"""Turning points within a quarter of a reversal of each other are at the same level."""

_TREND_TURNS = 6


@dataclass(frozen=True, slots=True)
class Turn:
    """A confirmed turning point: `side` +1 for a high, −1 for a low; `price` is a log."""

    index: int
    side: int
    price: float


@dataclass(frozen=True, slots=True, eq=False)
class SwingChart:
    """Bars as log prices. `usual` is the mean range of a bar; `turns` alternate between highs and lows, oldest first."""

    high: Floats
    low: Floats
    close: Floats
    usual: float
    reversal: float
    turns: tuple[Turn, ...]

    @property
    def last(self) -> float:
        return float(self.close[-1])

    @property
    def range(self) -> float:
        return float(self.high.max() - self.low.min())


@dataclass(frozen=True, slots=True)
class PriceLevel:
    """A log price at which swings ended. `hold_rate` is the share of visits that turned there instead of crossing."""

    price: float
    touches: int
    last_index: int
    hold_rate: float


def chart_of(bars: Bars) -> SwingChart:
    """The chart of at least two bars."""
    # Divided by the last close first: logs of nearly equal numbers are most precise around 1.
    high, low, close = (np.log(column / bars.close[-1]) for column in (bars.high, bars.low, bars.close))
    before = close[:-1]
    usual = float(np.mean(np.maximum(high[1:], before) - np.minimum(low[1:], before)))
    reversal = max(REVERSAL_RANGES * usual, REVERSAL_SHARE * float(high.max() - low.min()))
    turns = _turns(high.tolist(), low.tolist(), reversal) if reversal > 0 else ()
    return SwingChart(high, low, close, usual, reversal, turns)


def mirrored(chart: SwingChart) -> SwingChart:
    """The chart with prices negated."""
    turns = tuple(replace(turn, side=-turn.side, price=-turn.price) for turn in chart.turns)
    return replace(chart, high=-chart.low, low=-chart.high, close=-chart.close, turns=turns)


def _turns(high: Sequence[float], low: Sequence[float], reversal: float) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    side = 0  # of the current leg: +1 rising, −1 falling, 0 until the first reversal
    top = bottom = 0
    for index in range(1, len(high)):
        if side == 0:
            rise, fall = high[index] - low[bottom], high[top] - low[index]
            if max(rise, fall) >= reversal and rise != fall:
                side = 1 if rise > fall else -1
                turns.append(Turn(bottom, -1, low[bottom]) if side > 0 else Turn(top, 1, high[top]))
                top = bottom = index
            else:
                top = index if high[index] > high[top] else top
                bottom = index if low[index] < low[bottom] else bottom
        elif side > 0:
            if high[index] > high[top]:
                top = index
            elif high[top] - low[index] >= reversal:
                turns.append(Turn(top, 1, high[top]))
                side, bottom = -1, index
        elif low[index] < low[bottom]:
            bottom = index
        elif high[index] - low[bottom] >= reversal:
            turns.append(Turn(bottom, -1, low[bottom]))
            side, top = 1, index
    return tuple(turns)


def trend(chart: SwingChart) -> tuple[str, float]:
    """A description of the newest turns, and the share of their steps that agree with it."""
    steps: list[tuple[int, float]] = []
    turns = chart.turns
    for later, earlier in zip(reversed(turns), reversed(turns[:-2]), strict=False):
        steps.append((later.side, later.price - earlier.price))
    steps = steps[: _TREND_TURNS - 2]
    highs, lows = [step for side, step in steps if side > 0], [step for side, step in steps if side < 0]
    if not highs or not lows:
        return "too few swings to tell a trend", 0.0
    up, down = sum(step > 0 for _, step in steps) / len(steps), sum(step < 0 for _, step in steps) / len(steps)
    if highs[0] > 0 and lows[0] > 0:
        return "higher highs and higher lows", up
    if highs[0] < 0 and lows[0] < 0:
        return "lower highs and lower lows", down
    agree = sum((step > 0) == (side * highs[0] > 0) for side, step in steps) / len(steps)
    if highs[0] > 0 and lows[0] < 0:
        return "higher highs and lower lows (widening)", agree
    if highs[0] < 0 and lows[0] > 0:
        return "lower highs and higher lows (narrowing)", agree
    return "equal swings", max(0.0, 1 - up - down)


def levels(chart: SwingChart) -> list[PriceLevel]:
    """Levels with at least two turning points, lowest first."""
    ordered = sorted(chart.turns, key=lambda turn: turn.price)
    groups: list[list[Turn]] = []
    for turn in ordered:
        if groups and turn.price - groups[-1][-1].price <= _LEVEL_SHARE * chart.reversal:
            groups[-1].append(turn)
        else:
            groups.append([turn])
    return [_level(chart, group) for group in groups if len(group) > 1]


def _level(chart: SwingChart, group: list[Turn]) -> PriceLevel:
    price = float(np.mean([turn.price for turn in group]))
    first = min(turn.index for turn in group)
    above = chart.close[first:] > price
    crossings = int(np.count_nonzero(above[1:] != above[:-1]))
    return PriceLevel(price, len(group), max(turn.index for turn in group), len(group) / (len(group) + crossings))
