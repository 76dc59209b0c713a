"""Points drawn at random from some axes: the same seed draws the same points, and none of them twice."""

from collections.abc import Sequence
from math import prod

from numpy.random import PCG64, Generator  # noqa: TID251  seeded: same seed, same bytes

from pitboss.core.errors import UserError
from pitboss.sim.study.axis import Axis, NumberRange, Point
from pitboss.sim.study.grid import MOST_POINTS

TRIES = 50
"""How often a point may come up that is known already, before there are taken to be no more."""


def drawn(axes: Sequence[Axis], count: int, seed: int = 0) -> list[Point]:
    """So many different points, fewer if there are no more. A longer draw of the same seed begins with a shorter one."""
    if not 1 <= count <= MOST_POINTS:
        raise UserError(f"--random: {count} is not from 1 to {MOST_POINTS:,}", "for example --random 50")
    random = Generator(PCG64(seed))
    found: dict[tuple[str, ...], None] = {}
    known_in_a_row = 0
    most = min(count, size(axes))
    while len(found) < most and known_in_a_row < TRIES * max(most, 20):
        values = tuple(axis.draw(share) for axis, share in zip(axes, random.random(len(axes)).tolist(), strict=True))
        known_in_a_row = known_in_a_row + 1 if values in found else 0
        found[values] = None
    names = [axis.name for axis in axes]
    return [dict(zip(names, values, strict=True)) for values in found]


def size(axes: Sequence[Axis]) -> int:
    """How many different points can be drawn at most."""
    return prod(sum(part.count if isinstance(part, NumberRange) else 1 for part in axis.parts) for axis in axes)
