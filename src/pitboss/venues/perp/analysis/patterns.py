"""Chart patterns from swings: double tops, heads and shoulders, triangles, flags, and their mirror images.

Every pattern is described once, in its bearish form, and searched for on the chart and on the mirrored chart; so a
mirrored market gives the mirrored result. Only the newest swings are used: a pattern must be current.

`fit`, 0 to 1, is how well the swings match the pattern: a product of terms that are 1 for an exact match and 0 at the
tolerance. It does not predict the price; `pattern_rarity` says how unusual such a fit is.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pitboss.core.market import Floats
from pitboss.venues.perp.analysis.swings import SwingChart, Turn, mirrored

Stage = Literal["forming", "confirmed"]

_NAMES: dict[str, tuple[str, str]] = {
    "double": ("double top", "double bottom"),
    "shoulders": ("head and shoulders", "inverse head and shoulders"),
    "sloped": ("descending triangle", "ascending triangle"),
    "even": ("symmetrical triangle", "symmetrical triangle"),
    "flag": ("bear flag", "bull flag"),
}
FAMILIES = tuple(_NAMES)


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern. `side` is its direction: −1 down, +1 up, 0 undecided. Prices are logs, `indices` are those of bars.

    A close beyond `trigger` confirms it, a close beyond `void` invalidates it. `target` is the trigger less the height
    of the pattern: the textbook measure, not a forecast. An undecided triangle is confirmed above `void` or below
    `trigger`.
    """

    family: str
    side: int
    stage: Stage
    fit: float
    indices: tuple[int, ...]
    trigger: float
    void: float
    target: float

    @property
    def name(self) -> str:
        return _NAMES[self.family][self.side > 0]


def patterns(chart: SwingChart) -> list[Pattern]:
    """Every pattern of the newest swings, best fit first."""
    shapes = [find(chart) for find in (_double, _shoulders, _sloped, _flag, _even)]
    mirror = mirrored(chart)
    shapes += [shape and _mirrored(shape) for shape in (find(mirror) for find in (_double, _shoulders, _sloped, _flag))]
    return sorted(
        (shape for shape in shapes if shape),
        key=lambda shape: (-shape.fit, FAMILIES.index(shape.family), shape.indices),
    )


def _mirrored(shape: Pattern) -> Pattern:
    return Pattern(
        shape.family, -shape.side, shape.stage, shape.fit, shape.indices, -shape.trigger, -shape.void, -shape.target
    )


def _near(gap: float, edge: float) -> float:
    """1 for no gap, falling to 0 at a gap of `edge`."""
    return max(0.0, 1.0 - abs(gap) / edge) if edge > 0 else 0.0


def _full(value: float, enough: float) -> float:
    """`value / enough`, limited to 0 to 1."""
    return min(1.0, max(0.0, value / enough)) if enough > 0 else 0.0


def _ending_high(chart: SwingChart, count: int) -> tuple[Turn, ...]:
    """The newest `count` turns up to the last high, if the last turn is that high or the low after it."""
    turns = chart.turns
    if turns and turns[-1].side < 0:
        turns = turns[:-1]
    return turns[-count:] if len(turns) >= count else ()


def _bearish(
    family: str, chart: SwingChart, fit: float, turns: tuple[Turn, ...], trigger: float, void: float, height: float
) -> Pattern | None:
    if fit <= 0 or chart.last > void:
        return None
    stage: Stage = "confirmed" if chart.last < trigger else "forming"
    indices = tuple(turn.index for turn in turns)
    return Pattern(family, -1, stage, fit, indices, trigger, void, trigger - height)


def _double(chart: SwingChart) -> Pattern | None:
    """Two highs at the same price with a low between them, after a rise of at least the same height."""
    turns = _ending_high(chart, 3)
    if not turns:
        return None
    first, low, second = turns
    height = (first.price + second.price) / 2 - low.price
    before = _ending_high(chart, 4)
    # Without an earlier swing the rise is unknown: the window begins in the middle of the pattern.
    rise = _full(first.price - before[0].price, height) if before else 0.5
    fit = _near(first.price - second.price, 0.35 * height) * rise
    return _bearish("double", chart, fit, (first, low, second), low.price, max(first.price, second.price), height)


def _shoulders(chart: SwingChart) -> Pattern | None:
    """Three highs, the middle one highest and the outer two alike, over two similar lows, which form the neckline."""
    turns = _ending_high(chart, 5)
    if not turns:
        return None
    left_shoulder, low, head, second_low, right_shoulder = turns
    slope = (second_low.price - low.price) / (second_low.index - low.index)
    height = head.price - (low.price + slope * (head.index - low.index))
    if height <= 0 or head.price <= max(left_shoulder.price, right_shoulder.price):
        return None
    left_width, right_width = head.index - left_shoulder.index, right_shoulder.index - head.index
    fit = (
        _near(left_shoulder.price - right_shoulder.price, 0.5 * height)
        * _near(second_low.price - low.price, 0.5 * height)
        * _full(head.price - max(left_shoulder.price, right_shoulder.price), 0.2 * height)
        * _full(min(left_width, right_width) / max(left_width, right_width), 0.5)
    )
    neckline = second_low.price + slope * (len(chart.close) - 1 - second_low.index)
    return _bearish("shoulders", chart, fit, turns, neckline, head.price, height)


def _sides(chart: SwingChart) -> tuple[tuple[Turn, ...], tuple[float, float], tuple[float, float], float] | None:
    """The newest five turns, a line (start, end) through their highs and one through their lows, and their straightness."""
    turns = chart.turns[-5:]
    if len(turns) < 5:
        return None
    start, end = turns[0].index, turns[-1].index
    lines: list[tuple[float, float]] = []
    bent = 0.0
    for side in (1, -1):
        points = [turn for turn in turns if turn.side == side]
        indices, prices = np.array([turn.index for turn in points], float), np.array([turn.price for turn in points])
        slope, level = _line(indices, prices)
        bent = max(bent, float(np.abs(prices - (level + slope * indices)).max()))
        lines.append((level + slope * start, level + slope * end))
    upper, lower = lines
    gap = upper[0] - lower[0]
    if gap <= 0 or upper[1] <= lower[1]:
        return None
    return turns, upper, lower, _near(bent, 0.25 * gap)


def _line(indices: Floats, prices: Floats) -> tuple[float, float]:
    middle = indices.mean()
    slope = float(((indices - middle) * (prices - prices.mean())).sum() / ((indices - middle) ** 2).sum())
    return slope, float(prices.mean() - slope * middle)


def _sloped(chart: SwingChart) -> Pattern | None:
    """Falling highs over level lows: the gap narrowed by at least a third, all of it from above."""
    sides = _sides(chart)
    if sides is None:
        return None
    turns, upper, lower, straight = sides
    gap = upper[0] - lower[0]
    falls, drifts = (upper[0] - upper[1]) / gap, (lower[1] - lower[0]) / gap
    if falls < 1 / 3:
        return None
    fit = straight * _full(falls - 1 / 6, 1 / 3) * _near(drifts, 0.25)
    return _bearish("sloped", chart, fit, turns, lower[1], upper[1], gap)


def _even(chart: SwingChart) -> Pattern | None:
    """Falling highs over rising lows. Undecided until a close leaves it."""
    sides = _sides(chart)
    if sides is None:
        return None
    turns, upper, lower, straight = sides
    gap = upper[0] - lower[0]
    falls, rises = (upper[0] - upper[1]) / gap, (lower[1] - lower[0]) / gap
    if falls <= 0 or rises <= 0:
        return None
    fit = straight * _full(min(falls, rises), 0.25) * _full(min(falls, rises) / max(falls, rises), 0.5)
    if fit <= 0:
        return None
    side = 1 if chart.last > upper[1] else -1 if chart.last < lower[1] else 0
    indices = tuple(turn.index for turn in turns)
    trigger, void = (upper[1], lower[1]) if side > 0 else (lower[1], upper[1])
    target = trigger + (side or -1) * gap
    return Pattern("even", side, "confirmed" if side else "forming", fit, indices, trigger, void, target)


def _flag(chart: SwingChart) -> Pattern | None:
    """A fast, straight fall to the lowest low, followed by a short consolidation that retraces little of it."""
    count = len(chart.close)
    end = int(np.argmin(chart.low))
    longest = max(5, count // 4)
    pause = count - 1 - end
    if end < 3 or not 4 <= pause <= 2 * longest:
        return None
    begin = max(0, end - longest)
    start = begin + int(np.argmax(chart.high[begin:end]))
    pole = float(chart.high[start] - chart.low[end])
    if pole < 3 * chart.usual or pause > 3 * (end - start) + 4:
        return None
    path_length = float(np.abs(np.diff(chart.close[start : end + 1])).sum())
    retraced = float(chart.high[end + 1 :].max() - chart.low[end]) / pole
    fit = (
        _full(abs(float(chart.close[end] - chart.close[start])) / path_length if path_length else 0.0, 0.7)
        * _full(pole / chart.range, 0.6)
        * _full(0.62 - retraced, 0.62 - 0.38)
    )
    if fit <= 0:
        return None
    trigger, void = float(chart.low[end]), float(chart.low[end]) + 0.62 * pole
    if chart.last > void:
        return None
    return Pattern("flag", -1, "forming", fit, (start, end, count - 1), trigger, void, trigger - pole)
