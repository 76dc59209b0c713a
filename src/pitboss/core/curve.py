"""The stored form of an equity curve: pieces of evenly spaced points, exact, without one text per bar.

Between two events equity is a constant base plus the value of the open positions at each close. A piece holds its first
instant, its step, that base, and the positions' value at each close as integers:

- `[first_at, step_ms, base, count]`: no position, the same amount `count` times;
- `[first_at, step_ms, base, decimals, [units, …]]`: base + units / 10^decimals, one for each point.

A year of 5m bars is a few thousand pieces instead of a hundred thousand pairs; an account without positions takes
almost no space.
"""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np

from pitboss.core.instant import Instant
from pitboss.core.market import Floats, Ints
from pitboss.core.money import CONTEXT, text

Piece = Sequence[Any]
Curve = Sequence[Piece]

_FLAT = 4
"""Length of a piece without positions."""
_EXACT, _EXACT_PLACES = 2**53, 22
"""Integers below the first, and powers of ten up to the second, are exact as floats."""


def length(piece: Piece) -> int:
    """How many points a piece has."""
    return piece[3] if len(piece) == _FLAT else len(piece[4])


def points(curve: Curve) -> Iterator[tuple[Instant, str]]:
    """Every point, exactly."""
    for piece in curve:
        at, step, base = piece[:3]
        if len(piece) == _FLAT:
            for index in range(piece[3]):
                yield at + index * step, base
            continue
        fixed, decimals = Decimal(base), piece[3]
        for index, units in enumerate(piece[4]):
            yield at + index * step, text(CONTEXT.add(fixed, CONTEXT.scaleb(units, -decimals)))


def last_point(curve: Curve) -> tuple[Instant, str] | None:
    """The last point, exactly; None of an empty curve."""
    size = length(curve[-1]) if curve else 0
    return next(points([_slice(curve[-1], size - 1, size)])) if size else None


def columns(curve: Curve) -> tuple[Ints, Floats]:
    """Instants and amounts as arrays, each amount the float nearest to the exact one."""
    sizes = np.array([length(piece) for piece in curve], np.int64)
    ends = np.cumsum(sizes)
    index_in_piece = np.arange(int(sizes.sum())) - np.repeat(ends - sizes, sizes)
    first_at, step = (np.array([piece[column] for piece in curve], np.int64) for column in (0, 1))
    at = np.repeat(first_at, sizes) + index_in_piece * np.repeat(step, sizes)
    usd = np.repeat(np.array([float(piece[2]) for piece in curve], np.float64), sizes)
    valued = [piece for piece in curve if len(piece) != _FLAT]
    if valued:
        usd[np.repeat(np.array([len(piece) != _FLAT for piece in curve], np.bool_), sizes)] = _valued(valued)
    return at, usd


def _valued(pieces: Curve) -> Floats | list[float]:
    """The amounts of pieces with positions: (fixed + factor × units) / 10^places."""
    fractions = [_fraction(piece[2], piece[3]) for piece in pieces]
    if all(abs(fixed) < _EXACT and places <= _EXACT_PLACES for fixed, _, places in fractions):
        # The quotient of two exact floats is the nearest float too, and all are divided at once.
        sizes = [len(piece[4]) for piece in pieces]
        fixed, factor, places = (
            np.repeat(np.array(column, np.float64), sizes) for column in zip(*fractions, strict=True)
        )
        # read as integers, which takes half the time of reading them as floats
        units = np.fromiter(chain.from_iterable(piece[4] for piece in pieces), np.int64, sum(sizes))
        if (np.abs(fixed) + factor * np.abs(units) < _EXACT).all():
            return (fixed + factor * units) / np.array([10.0**power for power in range(_EXACT_PLACES + 1)])[
                places.astype(np.int64)
            ]
    amounts: list[float] = []
    for piece, (fixed, factor, places) in zip(pieces, fractions, strict=True):
        divisor = 10**places
        # Python divides integers of any size to the nearest float, at a tenth of the cost of a sum of Decimals.
        amounts += [(fixed + factor * unit) / divisor for unit in piece[4]]
    return amounts


@lru_cache(maxsize=4)  # the pieces before and after a tick often have the same base
def _fraction(base: str, decimals: int) -> tuple[int, int, int]:
    """The base and a unit of a piece, both in 10^-places, and these places."""
    integer, _, fraction = base.partition(".")
    places = max(decimals, len(fraction))
    return int(integer + fraction) * 10 ** (places - len(fraction)), 10 ** (places - decimals), places


def join(curve: list[Piece], pieces: Iterable[Piece]) -> None:
    """Append pieces to a curve. Adjacent pieces with the same base are merged, so that equal curves have equal pieces
    however they were split."""
    for piece in pieces:
        if not curve or not _follows(curve[-1], piece):
            curve.append(piece)
            continue
        at, step, base, *values = curve[-1]
        if len(piece) == _FLAT:
            curve[-1] = (at, step, base, values[0] + piece[3])
        else:
            curve[-1] = (at, step, base, values[0], values[1] + piece[4])


def _follows(last: Piece, piece: Piece) -> bool:
    return (
        len(last) == len(piece)
        and last[1] == piece[1]
        and last[2] == piece[2]
        and last[0] + length(last) * last[1] == piece[0]
        and (len(piece) == _FLAT or last[3] == piece[3])
    )


def split(curve: Curve, count: int) -> tuple[Curve, Curve]:
    """The first `count` points and the rest."""
    for number, piece in enumerate(curve):
        size = length(piece)
        if count < size:
            if not count:
                return curve[:number], curve[number:]
            return [*curve[:number], _slice(piece, 0, count)], [_slice(piece, count, size), *curve[number + 1 :]]
        count -= size
    return curve, ()


def _slice(piece: Piece, first: int, stop: int) -> Piece:
    at, step, base = piece[0] + first * piece[1], piece[1], piece[2]
    if len(piece) == _FLAT:
        return at, step, base, stop - first
    return at, step, base, piece[3], piece[4][first:stop]


def with_last(curve: Curve, amount: Decimal) -> Curve:
    """The curve with the amount of its last point replaced."""
    rest, last = split(curve, sum(map(length, curve)) - 1)
    return [*rest, (last[0][0], last[0][1], text(amount), 1)]


def amounts(curve: Curve) -> Iterable[Decimal]:
    """Every amount, exactly."""
    return (Decimal(usd) for _, usd in points(curve))
