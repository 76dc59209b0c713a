"""Equity as records keep it: pieces of evenly spaced points, exact, without a text for every bar.

Between two events equity is what prices do not move plus what is held at each close, so a piece is its first instant,
its step, that base, and the closes' share of it as whole numbers:

- `[first_at, step_ms, base, count]`: nothing held, the same amount so many times;
- `[first_at, step_ms, base, decimals, [units, …]]`: base + units / 10^decimals, one for each point.

A year of 5m bars is a few thousand pieces instead of a hundred thousand pairs, and a coasting account costs nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from pitboss.core.instant import Instant
from pitboss.core.market import Floats, Ints
from pitboss.core.money import CONTEXT, text

Piece = Sequence[Any]
Curve = Sequence[Piece]

_FLAT = 4
_MOST_PLACES = 22
"""Powers of ten up to this one are floats themselves."""


def length(piece: Piece) -> int:
    """How many points a piece has."""
    return piece[3] if len(piece) == _FLAT else len(piece[4])


def points(curve: Curve) -> Iterator[tuple[Instant, str]]:
    """Every point, exactly."""
    for piece in curve:
        at, step, base = piece[:3]
        if len(piece) == _FLAT:
            for place in range(piece[3]):
                yield at + place * step, base
            continue
        fixed, decimals = Decimal(base), piece[3]
        for place, units in enumerate(piece[4]):
            yield at + place * step, text(CONTEXT.add(fixed, CONTEXT.scaleb(units, -decimals)))


def columns(curve: Curve) -> tuple[Ints, Floats]:
    """Instants and amounts as arrays, each amount the float nearest to the exact one."""
    sizes = np.array([length(piece) for piece in curve], np.int64)
    ends = np.cumsum(sizes)
    within = np.arange(int(sizes.sum())) - np.repeat(ends - sizes, sizes)
    first_at, step = (np.array([piece[column] for piece in curve], np.int64) for column in (0, 1))
    at = np.repeat(first_at, sizes) + within * np.repeat(step, sizes)
    usd = np.repeat(np.array([float(piece[2]) for piece in curve], np.float64), sizes)
    short: list[tuple[int, int, int]] = []  # base, factor of the units, common denominator's places
    together: list[int] = []
    chosen = np.zeros(len(curve), np.bool_)
    for place, piece in enumerate(curve):
        if len(piece) == _FLAT:
            continue
        _, _, base, decimals, units = piece
        whole, _, fraction = base.partition(".")
        known = len(fraction)
        places = decimals if decimals > known else known
        fixed, factor = int(whole + fraction) * 10 ** (places - known), 10 ** (places - decimals)
        if places <= _MOST_PLACES and abs(fixed) + factor * max(max(units), -min(units)) < 1 << 53:
            chosen[place] = True
            short.append((fixed, factor, places))
            together += units
        else:
            start = int(ends[place] - sizes[place])
            exact = Decimal(base)
            usd[start : start + len(units)] = [
                float(CONTEXT.add(exact, CONTEXT.scaleb(unit, -decimals))) for unit in units
            ]
    if short:  # one exact integer each, divided once: where both fit a float's digits the quotient is the nearest
        lengths = sizes[chosen]
        fixed, factor, places = (np.repeat(column, lengths) for column in np.array(short, np.int64).T)
        usd[np.repeat(chosen, sizes)] = (np.array(together, np.int64) * factor + fixed) / 10.0**places
    return at, usd


def join(curve: list[Piece], pieces: Iterable[Piece]) -> None:
    """Add pieces to a curve. What follows on with the same base becomes one piece, so that a curve looks the same
    however its stretches were cut."""
    for piece in pieces:
        if not curve or not _follows(curve[-1], piece):
            curve.append(piece)
            continue
        at, step, base, *rest = curve[-1]
        if len(piece) == _FLAT:
            curve[-1] = (at, step, base, rest[0] + piece[3])
        else:
            curve[-1] = (at, step, base, rest[0], rest[1] + piece[4])


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
    for place, piece in enumerate(curve):
        long = length(piece)
        if count < long:
            if not count:
                return curve[:place], curve[place:]
            return [*curve[:place], _cut(piece, 0, count)], [_cut(piece, count, long), *curve[place + 1 :]]
        count -= long
    return curve, ()


def _cut(piece: Piece, first: int, stop: int) -> Piece:
    at, step, base = piece[0] + first * piece[1], piece[1], piece[2]
    if len(piece) == _FLAT:
        return at, step, base, stop - first
    return at, step, base, piece[3], piece[4][first:stop]


def with_last(curve: Curve, amount: Decimal) -> Curve:
    """The same points, but for the amount of the last one."""
    rest, last = split(curve, sum(map(length, curve)) - 1)
    return [*rest, (last[0][0], last[0][1], text(amount), 1)]


def amounts(curve: Curve) -> Iterable[Decimal]:
    """Every amount, exactly."""
    return (Decimal(usd) for _, usd in points(curve))
