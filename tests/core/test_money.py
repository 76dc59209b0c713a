"""Exact arithmetic: rounding toward less, and no caller's context leaks in."""

from decimal import ROUND_UP, Context, Decimal, getcontext, localcontext
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.money import CONTEXT, decimal, exact, round_down, round_up

STEPS = st.integers(0, 8).map(lambda places: Decimal(1).scaleb(-places))
VALUES = st.decimals(min_value=-(10**12), max_value=10**12, allow_nan=False, places=6)


@given(VALUES, STEPS)
def test_rounding_lands_on_the_step_next_to_the_value(value: Decimal, step: Decimal) -> None:
    with localcontext(CONTEXT):
        down, up = round_down(value, step), round_up(value, step)
    assert Fraction(down) <= Fraction(value) <= Fraction(up)
    assert Fraction(value) - Fraction(down) < Fraction(step)
    assert Fraction(up) - Fraction(value) < Fraction(step)
    assert (Fraction(down) / Fraction(step)).denominator == 1
    assert (Fraction(up) / Fraction(step)).denominator == 1


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_enters_by_its_shortest_text(value: float) -> None:
    assert decimal(value) == Decimal(repr(value))
    assert float(decimal(value)) == value


def test_an_exact_function_computes_the_same_under_any_context() -> None:
    @exact
    def third() -> tuple[Decimal, int, str]:
        return Decimal(1) / 3, getcontext().prec, getcontext().rounding

    expected = third()
    assert expected == (Decimal("0." + "3" * 60), 60, "ROUND_HALF_EVEN")
    for context in (Context(prec=3), Context(prec=60, rounding=ROUND_UP), Context(prec=200)):
        with localcontext(context):
            assert third() == expected
            assert getcontext().prec == context.prec


def test_the_callers_context_comes_back_after_an_error() -> None:
    @exact
    def fails() -> None:
        raise ZeroDivisionError

    with localcontext(Context(prec=7)):
        try:
            fails()
        except ZeroDivisionError:
            assert getcontext().prec == 7
