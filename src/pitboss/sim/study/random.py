"""Random points of a study: the same seed gives the same points, without duplicates."""

from collections.abc import Sequence
from math import prod

from numpy.random import PCG64, Generator  # noqa: TID251  seeded: same seed, same bytes

from pitboss.core.errors import UserError
from pitboss.sim.study.axis import Axis, NumberRange, Point
from pitboss.sim.study.grid import MAX_POINTS

TRIES = 50
"""Consecutive duplicates per requested point after which no further point is assumed to exist."""


def random_points(axes: Sequence[Axis], count: int, seed: int = 0) -> list[Point]:
    """`count` different points, fewer if there are no more. A larger sample of the same seed begins with a smaller one."""
    if not 1 <= count <= MAX_POINTS:
        raise UserError(f"--random: {count} is not between 1 and {MAX_POINTS:,}", "for example --random 50")
    random = Generator(PCG64(seed))
    points: dict[tuple[str, ...], None] = {}
    duplicates_in_a_row = 0
    most = min(count, point_count(axes))
    while len(points) < most and duplicates_in_a_row < TRIES * max(most, 20):
        values = tuple(axis.draw(share) for axis, share in zip(axes, random.random(len(axes)).tolist(), strict=True))
        duplicates_in_a_row = duplicates_in_a_row + 1 if values in points else 0
        points[values] = None
    names = [axis.name for axis in axes]
    return [dict(zip(names, values, strict=True)) for values in points]


def point_count(axes: Sequence[Axis]) -> int:
    """The largest number of different points."""
    return prod(sum(part.count if isinstance(part, NumberRange) else 1 for part in axis.parts) for axis in axes)
