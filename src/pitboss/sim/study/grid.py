"""Every combination of the values of some axes, in the order in which they were written, the last one turning fastest."""

from collections.abc import Sequence
from itertools import product
from math import prod

from pitboss.core.errors import UserError
from pitboss.sim.study.axis import Axis, Point

MOST_POINTS = 100_000


def grid(axes: Sequence[Axis]) -> list[Point]:
    """All points. No axis gives the one point that varies nothing."""
    values = [axis.every() for axis in axes]
    count = prod(map(len, values))
    if count > MOST_POINTS:
        raise UserError(
            f"a grid of {count:,} points is too large", f"at most {MOST_POINTS:,}; draw some with --random 100"
        )
    names = [axis.name for axis in axes]
    return [dict(zip(names, chosen, strict=True)) for chosen in product(*values)]
