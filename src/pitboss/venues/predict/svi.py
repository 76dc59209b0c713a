"""Fair value of a binary contract from a volatility surface, in both generations of the protocol's pricing.

This is the only module of the venue that computes with floats: `price` uses them, and `up_units` converts the result to
the protocol's integers (a probability in billionths). Spreads, vaults and time are not handled here: the surface's
variance is the total up to expiry.
"""

from collections.abc import Callable
from functools import lru_cache
from math import erfc, exp, hypot, inf, isfinite, log, log1p, pi, sinh, sqrt
from typing import Literal

from pitboss.core.errors import UserError
from pitboss.core.noun import noun

Generation = Literal["v1", "v2"]
"""`v1` prices N(d2); `v2` adds the skew term, which makes it the slope of a call price."""

Flaw = Literal["zero_forward", "bad_strike", "negative_bracket", "zero_variance", "not_finite"]
"""Reason why a surface gives no price."""

Units = int | Flaw
"""A probability in billionths, or the reason why there is none."""

Pricer = Callable[[int], Units]
"""Maps a strike to the probability of settling above it."""

FLOAT = 1_000_000_000
"""One in the protocol's fixed point: prices, probabilities and strikes are in billionths."""

SAMPLES = 64
FARTHEST = 100.0
"""Largest accepted log-moneyness."""

RISE = 1e-10
"""Tolerance: a price that rises with the strike more steeply than this (per unit of log-strike) is not a probability.
"""

_HINTS: dict[Flaw, tuple[str, str]] = {
    "zero_forward": ("the forward price must be a finite number above 0", "give --forward in USD"),
    "bad_strike": ("the strike must be a number above 0", "give --strike in USD"),
    "negative_bracket": (
        "the surface's bracket rho·(k−m) + sqrt((k−m)² + sigma²) is negative",
        "rho must be within −1 and 1",
    ),
    "zero_variance": ("the surface's total variance at this strike is not above 0", "check a, b and sigma"),
    "not_finite": ("the surface gives no finite price at this strike", "check that all five numbers are finite"),
}
_ROOT_HALF = sqrt(0.5)
_ROOT_TAU = sqrt(2 * pi)


@noun
class Svi:
    """A surface: w(k) = a + b·(rho·(k−m) + sqrt((k−m)² + sigma²)), the total variance at log-moneyness k."""

    a: float
    b: float
    rho: float
    m: float
    sigma: float


@noun
class Fair:
    """Probabilities of UP and DOWN with the total variance and d2 they result from."""

    up: float
    down: float
    w: float
    d2: float


def flat(variance: float) -> Svi:
    """Return the surface with the same total variance at every strike."""
    return Svi(variance, 0.0, 0.0, 0.0, 0.0)


def from_units(a: int, b: int, rho: int, m: int, sigma: int) -> Svi:
    """Convert a surface in the protocol's billionths, with signs applied."""
    return Svi(a / FLOAT, b / FLOAT, rho / FLOAT, m / FLOAT, sigma / FLOAT)


def fair(pricing: Generation, forward: float, strike: float, svi: Svi) -> Fair:
    """Return the fair price for a command; raises `UserError` if there is none."""
    result = price(pricing, forward, strike, svi)
    if isinstance(result, Fair):
        return result
    raise UserError(*_HINTS[result])


def price(pricing: Generation, forward: float, strike: float, svi: Svi) -> Fair | Flaw:
    """Return the fair value at a strike, or the reason why there is none. Defined for all inputs."""
    if not 0 < forward < inf:
        return "zero_forward"
    if not 0 < strike < inf:
        return "bad_strike"
    # Near the money the difference is exact and the quotient is not, which matters minutes before expiry.
    k = log1p((strike - forward) / forward) if 2 * strike > forward > 0.5 * strike else log(strike) - log(forward)
    x = k - svi.m
    root = hypot(x, svi.sigma)
    w = svi.a
    slope = 0.0
    if svi.b != 0.0:
        bracket = _bracket(svi.rho, x, root, svi.sigma)
        if bracket < 0.0:
            return "negative_bracket"
        w += svi.b * bracket
        slope = svi.b * (svi.rho + (x / root if root else 0.0))
    if not isfinite(w):
        return "not_finite"
    if w <= 0.0:
        return "zero_variance"
    deviation = sqrt(w)
    d2 = -(k / deviation + deviation / 2)
    up = 0.5 * erfc(-d2 * _ROOT_HALF)
    if pricing == "v2" and slope != 0.0:
        up -= _density(d2) * slope / (2 * deviation)
        up = min(1.0, max(0.0, up))
    if not (isfinite(up) and isfinite(d2)):
        return "not_finite"
    return Fair(up, 1.0 - up, w, d2)


def _bracket(rho: float, x: float, root: float, sigma: float) -> float:
    """Return rho·x + root, without loss of precision where the two nearly cancel in a wing."""
    tilted = rho * x
    if tilted >= 0.0 or abs(rho) > 1.0:
        return tilted + root
    return (x * x * (1.0 - rho) * (1.0 + rho) + sigma * sigma) / (root - tilted)


def _density(x: float) -> float:
    return exp(-0.5 * x * x) / _ROOT_TAU if abs(x) < 40 else 0.0


def up_units(pricing: Generation, forward: int, strike: int, svi: Svi) -> Units:
    """Return the probability of UP in billionths: the boundary between floats and integers."""
    if forward <= 0:
        return "zero_forward"
    result = price(pricing, forward / FLOAT, strike / FLOAT, svi)
    return round(result.up * FLOAT) if isinstance(result, Fair) else result


def pricer(pricing: Generation, forward: int, svi: Svi) -> Pricer:
    """Return `up_units` of one forward and surface for many strikes: identical digits, at a third of the cost if flat."""
    if svi.b != 0.0 or not 0.0 < svi.a < inf or forward <= 0:
        return lambda strike: up_units(pricing, forward, strike, svi)
    level, deviation = forward / FLOAT, sqrt(svi.a)
    half = deviation / 2

    def flat_up(strike: int) -> Units:
        at = strike / FLOAT
        if not 2 * at > level > 0.5 * at:
            return up_units(pricing, forward, strike, svi)
        d2 = -(log1p((at - level) / level) / deviation + half)
        return round(0.5 * erfc(-d2 * _ROOT_HALF) * FLOAT)

    return flat_up


@lru_cache(maxsize=256)
def falls_with_strike(pricing: Generation, svi: Svi) -> bool:
    """Whether UP never rises with the strike. A surface for which it rises is not a distribution and is rejected.

    The slope of the price is checked where the surface bends (around `m`, in steps of `sigma`) and where the price
    moves (around the money, in steps of its deviation). It does not depend on the forward, so one check per surface
    suffices.
    """
    if not all(map(isfinite, (svi.a, svi.b, svi.rho, svi.m, svi.sigma))):
        return False
    if svi.b == 0.0:
        return svi.a > 0.0
    if svi.b < 0.0 or abs(svi.rho) > 1.0 or svi.sigma < 0.0 or max(abs(svi.m), svi.sigma) > FARTHEST:
        return False
    width = max(svi.sigma, 1e-9)
    reach = log(2 * (4 + abs(svi.m)) / width)
    samples = [svi.m + width * sinh(reach * step / SAMPLES) for step in range(-SAMPLES, SAMPLES + 1)]
    at_money = _variance(svi, 0.0)
    if not 0.0 < at_money < inf:
        return False
    near = sqrt(at_money)
    samples += [near * step / 8 for step in range(-SAMPLES, SAMPLES + 1)]
    return all(_falls_at(pricing, svi, k) for k in samples)


def _variance(svi: Svi, k: float) -> float:
    x = k - svi.m
    return svi.a + svi.b * _bracket(svi.rho, x, hypot(x, svi.sigma), svi.sigma)


def _falls_at(pricing: Generation, svi: Svi, k: float) -> bool:
    x = k - svi.m
    root = hypot(x, svi.sigma)
    w = _variance(svi, k)
    if w <= 0.0:
        return False
    slope = svi.b * (svi.rho + (x / root if root else 0.0))
    if pricing == "v1":
        falling = 1.0 - slope * (k / (2 * w) - 0.25)
    else:
        bend = svi.b * (svi.sigma / root) * (svi.sigma / root) / root if root else 0.0
        part = 1.0 - k * slope / (2 * w)
        falling = part * part - slope * slope / 4 * (1 / w + 0.25) + bend / 2
    deviation = sqrt(w)
    return falling * _density(k / deviation + deviation / 2) / deviation >= -RISE
