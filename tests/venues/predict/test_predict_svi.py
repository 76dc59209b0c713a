"""Fair values against the specification's vectors, real surfaces, and a slow reference of sixty digits."""

import itertools
import json
from decimal import Decimal, localcontext
from math import inf, nan
from pathlib import Path
from random import Random
from typing import get_args

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pitboss.core.errors import UserError
from pitboss.venues.predict.svi import (
    FLOAT,
    Fair,
    Generation,
    Svi,
    fair,
    falls_with_strike,
    flat,
    from_units,
    price,
    up_units,
)

GENERATIONS: tuple[Generation, ...] = get_args(Generation)
SMILE = Svi(0.0004, 0.01, -0.2, 0.0, 0.01)
SHORT = Svi(0.00002, 0.002, -0.3, 0.001, 0.004)
VECTORS = [
    (63_000, SMILE, 0.000511242, 0.128875203, 0.551271801),
    (63_500, SMILE, 0.000501175, -0.222727734, 0.411873707),
    (66_000, SMILE, 0.000758188, -1.588131350, 0.056128320),
    (60_000, SHORT, 0.000157997, 4.127449178, 0.999981660),
    (63_200, SHORT, 0.000028846, -0.002685433, 0.498928668),
]
REFERENCE = Path(__file__).parents[3].parent / "shared" / "data" / "predict" / "svi_reference_v2.json"
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")


def normal(x: Decimal) -> Decimal:
    """The normal distribution by its series, summed until nothing is added any more."""
    if abs(x) > 14:
        return Decimal(int(x > 0))
    term = total = x
    n = 1
    while abs(term) > Decimal("1e-70"):
        n += 2
        term = term * x * x / n
        total += term
    return Decimal("0.5") + total * (-x * x / 2).exp() / (2 * PI).sqrt()


def slow(generation: Generation, forward: float, strike: float, svi: Svi) -> tuple[Decimal, Decimal, Decimal]:
    """The formula as it is written, with seventy-five digits: up, w, d2."""
    with localcontext() as context:
        context.prec = 75
        a, b, rho, m, sigma = map(Decimal, (svi.a, svi.b, svi.rho, svi.m, svi.sigma))
        k = (Decimal(strike) / Decimal(forward)).ln()
        root = ((k - m) ** 2 + sigma**2).sqrt()
        w = a + b * (rho * (k - m) + root)
        d2 = -(k + w / 2) / w.sqrt()
        up = normal(d2)
        if generation == "v2" and b:
            slope = b * (rho + (k - m) / root)
            up -= (-d2 * d2 / 2).exp() / (2 * PI).sqrt() * slope / (2 * w.sqrt())
        return up, w, d2


SURFACES = st.builds(
    lambda base, b, rho, m, sigma: Svi(base, b, rho, m, sigma),
    st.floats(-9, -2).map(lambda power: 10**power),
    st.floats(-6, -1).map(lambda power: 10**power),
    st.floats(-0.95, 0.95),
    st.floats(-0.05, 0.05),
    st.floats(-4, -0.5).map(lambda power: 10**power),
)


@pytest.mark.parametrize(("strike", "svi", "w", "d2", "up"), VECTORS)
def test_the_vectors_of_the_specification_come_out_to_eight_digits(
    strike: float, svi: Svi, w: float, d2: float, up: float
) -> None:
    found = fair("v1", 63_200, strike, svi)
    assert found.w == pytest.approx(w, abs=1e-9)
    assert found.d2 == pytest.approx(d2, abs=1e-9)
    assert found.up == pytest.approx(up, abs=1e-9)
    assert found.down == pytest.approx(1 - up, abs=1e-9)


def test_every_reference_point_of_the_newer_pricing_is_within_its_tolerance() -> None:
    if not REFERENCE.exists():
        pytest.skip("the real surfaces are not here")
    scenarios = json.loads(REFERENCE.read_text())["scenarios"]
    assert len(scenarios) > 0
    for scenario in scenarios:
        sign = {
            name: -scenario[f"svi_{name}_magnitude"]
            if scenario[f"svi_{name}_is_negative"]
            else scenario[f"svi_{name}_magnitude"]
            for name in ("rho", "m")
        }
        svi = from_units(scenario["svi_a"], scenario["svi_b"], sign["rho"], sign["m"], scenario["svi_sigma"])
        assert falls_with_strike("v1", svi)
        assert falls_with_strike("v2", svi)
        for point in scenario["points"]:
            forward, lower, higher = scenario["forward"] / FLOAT, point["lower"], point["higher"]
            above_lower = 1.0 if lower == "-inf" else fair("v2", forward, lower / FLOAT, svi).up
            above_higher = 0.0 if higher == "+inf" else fair("v2", forward, higher / FLOAT, svi).up
            assert abs((above_lower - above_higher) * FLOAT - point["reference"]) <= point["tolerance"], point


@settings(max_examples=80)
@given(st.sampled_from(GENERATIONS), SURFACES, st.floats(30_000, 150_000), st.floats(-4, 4))
def test_the_price_agrees_with_seventy_five_digits_to_a_trillionth(
    generation: Generation, svi: Svi, forward: float, deviations: float
) -> None:
    at_money = price(generation, forward, forward, svi)
    assume(isinstance(at_money, Fair))
    assert isinstance(at_money, Fair)
    strike = forward * (1 + deviations * at_money.w**0.5 / 2)
    assume(strike > 1)
    up, w, d2 = slow(generation, forward, strike, svi)
    found = fair(generation, forward, strike, svi)
    assert abs(Decimal(found.w) - w) <= abs(w) * Decimal("1e-12")
    assert abs(Decimal(found.d2) - d2) <= Decimal("1e-10")
    assert abs(Decimal(found.up) - min(Decimal(1), max(Decimal(0), up))) <= Decimal("1e-11")


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("seconds", [1, 10, 60, 180, 600])
def test_seconds_and_minutes_from_expiry_the_price_keeps_its_digits(generation: Generation, seconds: int) -> None:
    variance = 0.25 * seconds / 31_536_000
    svi = Svi(variance * 0.6, variance * 4, -0.3, 0.0002, 0.1)
    rng = Random(seconds)
    for _ in range(50):
        forward = rng.uniform(60_000, 70_000)
        strike = forward * (1 + rng.gauss(0, 2) * variance**0.5)
        up, _, _ = slow(generation, forward, strike, svi)
        assert abs(Decimal(fair(generation, forward, strike, svi).up) - up) < Decimal("1e-13")


def test_where_the_wing_nearly_cancels_the_variance_keeps_its_digits() -> None:
    svi = Svi(0.0, 0.5, 0.999999999, 0.0, 1e-5)
    _, w, _ = slow("v1", 100_000, 50_000, svi)
    assert abs(Decimal(fair("v1", 100_000, 50_000, svi).w) / w - 1) < Decimal("1e-9")


@given(st.sampled_from(GENERATIONS), SURFACES, st.floats(30_000, 150_000), st.floats(20_000, 200_000))
def test_up_and_down_together_are_one_and_both_are_probabilities(
    generation: Generation, svi: Svi, forward: float, strike: float
) -> None:
    found = price(generation, forward, strike, svi)
    if isinstance(found, Fair):
        assert found.up + found.down == pytest.approx(1, abs=1e-15)
        assert 0 <= found.up <= 1
        assert 0 <= found.down <= 1


@settings(max_examples=300)
@given(st.sampled_from(GENERATIONS), SURFACES, st.floats(50_000, 120_000), st.integers(0, 2**32))
def test_under_a_surface_that_is_taken_the_price_never_rises_with_the_strike(
    generation: Generation, svi: Svi, forward: float, seed: int
) -> None:
    if not falls_with_strike(generation, svi):
        return
    rng = Random(seed)
    near = fair(generation, forward, forward, svi).w ** 0.5
    strikes = [forward * (1 + rng.uniform(-5, 5) * near) for _ in range(40)]
    strikes += [forward * (1 + svi.m + rng.gauss(0, 2) * svi.sigma) for _ in range(40)]
    strikes += [rng.uniform(50_000, 150_000) for _ in range(40)]
    ups = [fair(generation, forward, strike, svi).up for strike in sorted(strikes) if strike > 0]
    assert all(later <= earlier + 1e-9 for earlier, later in itertools.pairwise(ups))


def test_a_surface_that_is_no_distribution_is_seen() -> None:
    hockey = Svi(1e-7, 0.4, 0.0, 0.02, 0.0005)
    ups = [fair("v1", 100_000, strike, hockey).up for strike in range(101_000, 104_000, 50)]
    assert any(later > earlier + 1e-6 for earlier, later in itertools.pairwise(ups))
    assert not falls_with_strike("v1", hockey)
    assert not falls_with_strike("v2", hockey)


@pytest.mark.parametrize(
    "svi",
    [
        Svi(0.0, 0.0, 0.0, 0.0, 0.0),
        Svi(-1.0, 0.01, 0.0, 0.0, 0.01),
        Svi(0.001, -0.01, 0.0, 0.0, 0.01),
        Svi(0.001, 0.01, 1.5, 0.0, 0.01),
        Svi(nan, 0.01, 0.0, 0.0, 0.01),
        Svi(0.001, inf, 0.0, 0.0, 0.01),
    ],
)
def test_a_surface_that_cannot_be_priced_everywhere_is_not_taken(svi: Svi) -> None:
    assert not falls_with_strike("v1", svi)
    assert not falls_with_strike("v2", svi)


@pytest.mark.parametrize(
    ("forward", "strike", "svi", "words"),
    [
        (0.0, 63_000.0, SMILE, "forward"),
        (-5.0, 63_000.0, SMILE, "forward"),
        (nan, 63_000.0, SMILE, "forward"),
        (inf, 63_000.0, SMILE, "forward"),
        (63_000.0, 0.0, SMILE, "strike"),
        (63_000.0, nan, SMILE, "strike"),
        (63_000.0, 63_500.0, Svi(0.01, 0.01, 3.0, 0.2, 0.0001), "bracket"),
        (63_000.0, 63_000.0, flat(0.0), "variance"),
        (63_000.0, 63_000.0, flat(-1e-9), "variance"),
        (63_000.0, 63_000.0, flat(nan), "finite"),
    ],
)
def test_what_has_no_price_is_the_askers_error_and_says_which(
    forward: float, strike: float, svi: Svi, words: str
) -> None:
    for generation in GENERATIONS:
        with pytest.raises(UserError, match=words):
            fair(generation, forward, strike, svi)


@given(*[st.floats(allow_nan=True, allow_infinity=True)] * 7, st.sampled_from(GENERATIONS))
def test_any_seven_floats_get_a_price_or_a_reason(
    a: float, b: float, rho: float, m: float, sigma: float, forward: float, strike: float, generation: Generation
) -> None:
    found = price(generation, forward, strike, Svi(a, b, rho, m, sigma))
    assert isinstance(found, str) or 0 <= found.up <= 1
    falls_with_strike(generation, Svi(a, b, rho, m, sigma))


def test_the_edge_to_integers_rounds_to_the_nearest_billionth() -> None:
    assert up_units("v1", 63_200 * FLOAT, 63_000 * FLOAT, SMILE) == round(fair("v1", 63_200, 63_000, SMILE).up * 1e9)
    assert up_units("v1", 0, 63_000 * FLOAT, SMILE) == "zero_forward"
    assert up_units("v1", 63_200 * FLOAT, 0, SMILE) == "bad_strike"
