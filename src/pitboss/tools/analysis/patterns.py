"""Shapes that swings make: double tops, heads and shoulders, triangles, flags, and each of them upside down.

Every shape is described once, as the one that ends a rise or goes on with a fall, and is looked for on the chart and on
the chart upside down; so a mirrored market gives the mirrored answer. Only the newest swings are looked at: a pattern
is about now, not about somewhere in the window.

`fit`, 0 to 1, is how well the swings match the drawing: a product of terms that are 1 where the drawing is met exactly
and 0 at the edge of what still counts. It says nothing about what comes next; `rarity` says how unusual such a fit is.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pitboss.core.market import Floats
from pitboss.tools.analysis.swings import SwingChart, Turn, mirrored

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
    """One shape. `side` is where it points: −1 down, +1 up, 0 either way. Prices are logs, `places` are bars.

    `trigger` is the price whose break by a close confirms it, `void` the one whose break ends it, `target` the trigger
    less the height of the shape: where the book would measure to, not a forecast. A triangle that points nowhere is
    confirmed above `void` or below `trigger`.
    """

    family: str
    side: int
    stage: Stage
    fit: float
    places: tuple[int, ...]
    trigger: float
    void: float
    target: float

    @property
    def name(self) -> str:
        return _NAMES[self.family][self.side > 0]


def patterns(chart: SwingChart) -> list[Pattern]:
    """Every shape that the newest swings make, best fit first."""
    found = [shape for shape in (_double(chart), _shoulders(chart), _sloped(chart), _flag(chart)) if shape]
    turned = mirrored(chart)
    found += [
        _upside_down(shape) for shape in (_double(turned), _shoulders(turned), _sloped(turned), _flag(turned)) if shape
    ]
    found += [shape for shape in (_even(chart),) if shape]
    return sorted(found, key=lambda shape: (-shape.fit, FAMILIES.index(shape.family), shape.places))


def _upside_down(shape: Pattern) -> Pattern:
    return Pattern(
        shape.family, -shape.side, shape.stage, shape.fit, shape.places, -shape.trigger, -shape.void, -shape.target
    )


def _near(gap: float, edge: float) -> float:
    """1 where there is no gap, 0 where it is as wide as the edge or wider."""
    return max(0.0, 1.0 - abs(gap) / edge) if edge > 0 else 0.0


def _full(value: float, enough: float) -> float:
    """0 at nothing, 1 from `enough` on."""
    return min(1.0, max(0.0, value / enough)) if enough > 0 else 0.0


def _ending_high(chart: SwingChart, count: int) -> tuple[Turn, ...]:
    """The newest `count` turns up to the last high, if the last turn is that high or the low after it."""
    turns = chart.turns
    if turns and turns[-1].side < 0:
        turns = turns[:-1]
    return turns[-count:] if len(turns) >= count else ()


def _made(
    family: str, chart: SwingChart, fit: float, turns: tuple[Turn, ...], trigger: float, void: float, height: float
) -> Pattern | None:
    if fit <= 0 or chart.last > void:
        return None
    stage: Stage = "confirmed" if chart.last < trigger else "forming"
    places = tuple(turn.place for turn in turns)
    return Pattern(family, -1, stage, fit, places, trigger, void, trigger - height)


def _double(chart: SwingChart) -> Pattern | None:
    """Two highs at one price with a low between them, after a rise of at least the same height."""
    turns = _ending_high(chart, 3)
    if not turns:
        return None
    first, low, second = turns
    height = (first.price + second.price) / 2 - low.price
    before = _ending_high(chart, 4)
    # Without a swing before it the rise is unknown: the window begins in the middle of the shape.
    rise = _full(first.price - before[0].price, height) if before else 0.5
    fit = _near(first.price - second.price, 0.35 * height) * rise
    return _made("double", chart, fit, (first, low, second), low.price, max(first.price, second.price), height)


def _shoulders(chart: SwingChart) -> Pattern | None:
    """Three highs, the middle one highest, the outer two alike, over two lows alike: the neckline."""
    turns = _ending_high(chart, 5)
    if not turns:
        return None
    left, low, head, other, right = turns
    slope = (other.price - low.price) / (other.place - low.place)
    height = head.price - (low.price + slope * (head.place - low.place))
    if height <= 0 or head.price <= max(left.price, right.price):
        return None
    wide, narrow = head.place - left.place, right.place - head.place
    fit = (
        _near(left.price - right.price, 0.5 * height)
        * _near(other.price - low.price, 0.5 * height)
        * _full(head.price - max(left.price, right.price), 0.2 * height)
        * _full(min(wide, narrow) / max(wide, narrow), 0.5)
    )
    neckline = other.price + slope * (len(chart.close) - 1 - other.place)
    return _made("shoulders", chart, fit, (left, low, head, other, right), neckline, head.price, height)


def _sides(chart: SwingChart) -> tuple[tuple[Turn, ...], tuple[float, float], tuple[float, float], float] | None:
    """The newest five turns, a line (start, end) through their highs and one through their lows, how straight."""
    turns = chart.turns[-5:]
    if len(turns) < 5:
        return None
    start, end = turns[0].place, turns[-1].place
    lines: list[tuple[float, float]] = []
    bent = 0.0
    for side in (1, -1):
        points = [turn for turn in turns if turn.side == side]
        places, prices = np.array([turn.place for turn in points], float), np.array([turn.price for turn in points])
        slope, level = _line(places, prices)
        bent = max(bent, float(np.abs(prices - (level + slope * places)).max()))
        lines.append((level + slope * start, level + slope * end))
    upper, lower = lines
    gap = upper[0] - lower[0]
    if gap <= 0 or upper[1] <= lower[1]:
        return None
    return turns, upper, lower, _near(bent, 0.25 * gap)


def _line(places: Floats, prices: Floats) -> tuple[float, float]:
    middle = places.mean()
    slope = float(((places - middle) * (prices - prices.mean())).sum() / ((places - middle) ** 2).sum())
    return slope, float(prices.mean() - slope * middle)


def _sloped(chart: SwingChart) -> Pattern | None:
    """Falling highs over level lows: at least a third of the opening closed, and all of that from above."""
    found = _sides(chart)
    if found is None:
        return None
    turns, upper, lower, straight = found
    gap = upper[0] - lower[0]
    falls, drifts = (upper[0] - upper[1]) / gap, (lower[1] - lower[0]) / gap
    if falls < 1 / 3:
        return None
    fit = straight * _full(falls - 1 / 6, 1 / 3) * _near(drifts, 0.25)
    return _made("sloped", chart, fit, turns, lower[1], upper[1], gap)


def _even(chart: SwingChart) -> Pattern | None:
    """Falling highs over rising lows. It points nowhere until a close leaves it."""
    found = _sides(chart)
    if found is None:
        return None
    turns, upper, lower, straight = found
    gap = upper[0] - lower[0]
    falls, rises = (upper[0] - upper[1]) / gap, (lower[1] - lower[0]) / gap
    if falls <= 0 or rises <= 0:
        return None
    fit = straight * _full(min(falls, rises), 0.25) * _full(min(falls, rises) / max(falls, rises), 0.5)
    if fit <= 0:
        return None
    side = 1 if chart.last > upper[1] else -1 if chart.last < lower[1] else 0
    places = tuple(turn.place for turn in turns)
    edge, other = (upper[1], lower[1]) if side > 0 else (lower[1], upper[1])
    target = edge + (side or -1) * gap
    return Pattern("even", side, "confirmed" if side else "forming", fit, places, edge, other, target)


def _flag(chart: SwingChart) -> Pattern | None:
    """A fast, straight fall to the lowest low, and since then a short rest that takes back little of it."""
    count = len(chart.close)
    end = int(np.argmin(chart.low))
    longest = max(5, count // 4)
    rest = count - 1 - end
    if end < 3 or not 4 <= rest <= 2 * longest:
        return None
    begin = max(0, end - longest)
    start = begin + int(np.argmax(chart.high[begin:end]))
    pole = float(chart.high[start] - chart.low[end])
    if pole < 3 * chart.usual or rest > 3 * (end - start) + 4:
        return None
    travelled = float(np.abs(np.diff(chart.close[start : end + 1])).sum())
    back = float(chart.high[end + 1 :].max() - chart.low[end]) / pole
    fit = (
        _full(abs(float(chart.close[end] - chart.close[start])) / travelled if travelled else 0.0, 0.7)
        * _full(pole / chart.range, 0.6)
        * _full(0.62 - back, 0.62 - 0.38)
    )
    if fit <= 0:
        return None
    trigger, void = float(chart.low[end]), float(chart.low[end]) + 0.62 * pole
    if chart.last > void:
        return None
    return Pattern("flag", -1, "forming", fit, (start, end, count - 1), trigger, void, trigger - pole)
