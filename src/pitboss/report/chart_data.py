"""The data of a chart as the scripts of a page read it: series as differences of integers, in one compact JSON text.

A figure carries it as `data-chart`. `chart_drawing.js` draws any part of its time from it; the drawing in the markup shows all of it,
for readers without scripts.
"""

import json
import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pitboss.report.series import Floats, downsample

PRICE_DIGITS = 6
"""Significant digits of prices."""


def chart_json(start: float, end: float, panes: Sequence[Mapping[str, Any]], **more: Any) -> str:
    """The JSON text of a chart."""
    return json.dumps({"start": int(start), "end": int(end), "panes": panes, **more}, separators=(",", ":"))


def line_data(name: str, style: str, at: Floats, values: Floats, columns: int, *, area: bool = False) -> dict[str, Any]:
    """A curve, downsampled to about three points for each of `columns`, with every extreme."""
    keep = downsample(at, values, float(at[0]), float(at[-1]), columns)
    packed = pack_points(at[keep], values[keep])
    return {"name": name, "style": style, "series": packed, **({"area": True} if area else {})}


def pack_points(at: Floats, values: Floats, digits: int = 2) -> dict[str, Any]:
    """Instants and values, the values to `digits` decimals."""
    times, unit = _steps(at)
    scaled = _integers(values * 10**digits)
    return {
        "first": int(at[0]),
        "unit": unit,
        "scale": 10**digits,
        "at": times,
        "values": np.diff(scaled, prepend=0).tolist(),
    }


def pack_bars(bars: Floats, step: float) -> dict[str, Any]:
    """Rows `(open_at, open, high, low, close)`: each open as a difference to the close before, high and low to the body.

    Steps between instants are pairs of a count and a step, because nearly all are equal.
    """
    steps, unit = _steps(bars[:, 0])
    scale = 10 ** price_places(float(bars[:, 2].max()))
    opened, high, low, close = _integers(bars[:, 1:].T * scale)
    before = np.concatenate(([0], close[:-1]))
    return {
        "first": int(bars[0, 0]),
        "unit": unit,
        "step": int(step),
        "scale": scale,
        "at": [number for value, run in groupby(steps) for number in (len(list(run)), value)],
        "open": (opened - before).tolist(),
        "high": (high - np.maximum(opened, close)).tolist(),
        "low": (np.minimum(opened, close) - low).tolist(),
        "close": (close - opened).tolist(),
    }


def _integers(values: Floats) -> NDArray[Any]:
    """The values rounded to integers: Python's own, of any size, where 64 bits are too few."""
    rounded = np.rint(values)
    if np.abs(rounded).max(initial=0) < 2**62:  # a difference of two fits too
        return rounded.astype(np.int64)
    return np.array([int(value) for value in rounded.flat], dtype=object).reshape(rounded.shape)


def price_places(highest: float) -> int:
    """Decimals that give prices up to `highest` their significant digits."""
    return max(0, PRICE_DIGITS - 1 - math.floor(math.log10(highest))) if highest > 0 else 0


def _steps(at: Floats) -> tuple[list[int], int]:
    """Differences between instants, the first 0, in the largest unit of milliseconds that divides them all."""
    steps: NDArray[np.int64] = np.diff(at.astype(np.int64), prepend=int(at[0]))
    unit = int(np.gcd.reduce(steps)) or 1
    return (steps // unit).tolist(), unit
