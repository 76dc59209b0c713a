"""The grid of a study: every combination of the values of its axes, with the last axis varying fastest."""

from collections.abc import Sequence
from itertools import product
from math import prod

from pitboss.core.errors import UserError
from pitboss.sim.study.axis import Axis, Point

MAX_POINTS = 100_000


def grid(axes: Sequence[Axis]) -> list[Point]:
    """All points. Without axes there is one point, which changes nothing."""
    values = [axis.grid_values() for axis in axes]
    count = prod(map(len, values))
    if count > MAX_POINTS:
        raise UserError(
            f"a grid of {count:,} points is too large", f"at most {MAX_POINTS:,}; use --random 100 for a sample"
        )
    names = [axis.name for axis in axes]
    return [dict(zip(names, combination, strict=True)) for combination in product(*values)]
