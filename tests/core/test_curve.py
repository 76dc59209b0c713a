"""Equity as records keep it: pieces give back exactly the points they stand for, whole, cut, or as columns."""

from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pitboss.core import codec
from pitboss.core.curve import amounts, columns, join, last_point, length, points, split, with_last
from pitboss.core.money import CONTEXT, text

STEP = 300_000
money = st.one_of(st.decimals("-1e7", "1e7", places=places) for places in (2, 8, 30)).map(text)
flat = st.tuples(money, st.integers(1, 9))
held = st.tuples(money, st.integers(0, 8), st.lists(st.integers(-(10**15), 10**15), min_size=1, max_size=9))
Point = tuple[int, Decimal]


@st.composite
def curves(draw: st.DrawFn) -> tuple[list[Any], list[Point]]:
    """Pieces with holes between them, and the same points one by one."""
    at = draw(st.integers(0, 10**12))
    pieces: list[Any] = []
    plain: list[Point] = []
    for piece in draw(st.lists(st.one_of(flat, held), max_size=6)):
        pieces.append([at, STEP, *piece])
        base, *rest = piece
        units = [0] * piece[1] if len(rest) == 1 else piece[2]
        decimals = 0 if len(rest) == 1 else piece[1]
        for unit in units:
            plain.append((at, CONTEXT.add(Decimal(base), CONTEXT.scaleb(Decimal(unit), -decimals))))
            at += STEP
        at += draw(st.integers(0, 2)) * STEP
    return pieces, plain


@given(curves())
def test_pieces_stand_for_exactly_their_points_after_storage_too(made: tuple[list[Any], list[Point]]) -> None:
    pieces, plain = made
    kept = codec.loads(codec.dumps(pieces))
    assert [(at, Decimal(usd)) for at, usd in points(kept)] == plain
    assert list(amounts(kept)) == [usd for _, usd in plain]
    assert sum(map(length, kept)) == len(plain)
    assert last_point(kept) == (list(points(kept))[-1] if plain else None)


@given(curves(), st.integers(0, 60))
def test_a_cut_curve_is_the_same_points_in_two_parts(made: tuple[list[Any], list[Point]], count: int) -> None:
    pieces, plain = made
    first, rest = split(pieces, count)
    assert [at for at, _ in points(first)] == [at for at, _ in plain[:count]]
    assert [*points(first), *points(rest)] == list(points(pieces))


@given(curves())
def test_columns_are_the_points_as_nearest_floats(made: tuple[list[Any], list[Point]]) -> None:
    pieces, plain = made
    at, usd = columns(pieces)
    assert at.tolist() == [at for at, _ in plain]
    assert usd.tolist() == [float(usd) for _, usd in plain]


@given(curves(), st.decimals("-1e6", "1e6", places=4))
def test_only_the_last_amount_changes(made: tuple[list[Any], list[Point]], usd: Decimal) -> None:
    pieces, plain = made
    if plain:
        found = [(at, Decimal(amount)) for at, amount in points(with_last(pieces, usd))]
        assert found == [*plain[:-1], (plain[-1][0], usd)]


@given(curves(), st.lists(st.integers(0, 60), max_size=5))
def test_a_curve_looks_the_same_however_it_was_cut(made: tuple[list[Any], list[Point]], cuts: list[int]) -> None:
    pieces, _ = made
    whole: list[Any] = []
    join(whole, pieces)
    parts: list[Any] = []
    rest: Any = pieces
    taken = 0
    for cut in sorted(cuts):
        part, rest = split(rest, cut - taken)
        taken = cut
        join(parts, part)
    join(parts, rest)
    assert codec.dumps(parts) == codec.dumps(whole)
    assert list(points(whole)) == list(points(pieces))
