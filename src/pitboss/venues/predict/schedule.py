"""Expiries of markets: the operator's four tiers with four expiries each, the first at least an hour ahead.

An oracle exists until its expiry, so more markets exist at an instant than are created at it.
"""

from collections.abc import Iterable
from functools import lru_cache

from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, HOUR_MS, MINUTE_MS, Instant, iso
from pitboss.core.noun import noun
from pitboss.core.suggestion import suggestion
from pitboss.venues.predict.state import Grid
from pitboss.venues.predict.svi import FLOAT

TIERS: tuple[str, ...] = ("15m", "1h", "1d", "1w")
EXPIRIES = 4
LEAD_MS = HOUR_MS
FINEST_MS = 15 * MINUTE_MS
"""Every expiry of every tier is a multiple of this."""

_WEEK_MS = 7 * DAY_MS
_STEPS: dict[str, tuple[int, int]] = {
    "15m": (FINEST_MS, 0),
    "1h": (HOUR_MS, 0),
    "1d": (DAY_MS, 8 * HOUR_MS),
    # 1970-01-01 was a Thursday, so the first Friday 08:00 is one day and eight hours later.
    "1w": (_WEEK_MS, DAY_MS + 8 * HOUR_MS),
}


@noun
class Slot:
    """An expiry with its tiers, finest first. At 08:00 several tiers coincide, and one market serves them all."""

    expiry_at: Instant
    tiers: tuple[str, ...]


def expiries(tier: str, now: Instant, count: int = EXPIRIES, lead_ms: int = LEAD_MS) -> tuple[Instant, ...]:
    """Return the next expiries of a tier, the first at least `lead_ms` ahead."""
    try:
        step, offset = _STEPS[tier]
    except KeyError:
        raise UserError(f"unknown tier {tier!r}", suggestion(tier, TIERS)) from None
    first = offset - (offset - now - lead_ms) // step * step
    return tuple(first + step * number for number in range(count))


def listed_slots(now: Instant, tiers: Iterable[str] = TIERS) -> tuple[Slot, ...]:
    """Return the future expiries that have an oracle, created now or earlier, by time."""
    slots = _listed_slots(-(-now // FINEST_MS) * FINEST_MS - 1, tuple(tiers))
    return slots if not slots or slots[0].expiry_at > now else tuple(slot for slot in slots if slot.expiry_at > now)


@lru_cache(maxsize=4_096)
def _listed_slots(now: Instant, tiers: tuple[str, ...]) -> tuple[Slot, ...]:
    """Return the expiries just before a boundary of the finest tier. Cached: nothing changes between two boundaries."""
    expiries_by_tier: dict[str, tuple[Instant, ...]] = {}
    for tier in tiers:
        last = expiries(tier, now)[-1]
        step = _STEPS[tier][0]
        expiries_by_tier[tier] = tuple(range(last - (last - now - 1) // step * step, last + 1, step))
    return _slots(expiries_by_tier)


def _slots(expiries_by_tier: dict[str, tuple[Instant, ...]]) -> tuple[Slot, ...]:
    tiers_by_expiry: dict[Instant, list[str]] = {}
    for tier in TIERS:
        for expiry_at in expiries_by_tier.get(tier, ()):
            tiers_by_expiry.setdefault(expiry_at, []).append(tier)
    return tuple(Slot(expiry_at, tuple(tiers_by_expiry[expiry_at])) for expiry_at in sorted(tiers_by_expiry))


def expiring(tiers: Iterable[str], after: Instant, until: Instant) -> list[Instant]:
    """Return every expiry of these tiers in `(after, until]`, by time."""
    instants: set[Instant] = set()
    for tier in tiers:
        step, offset = _STEPS[tier]
        instants.update(range(offset - (offset - after - 1) // step * step, until + 1, step))
    return sorted(instants)


@lru_cache(maxsize=4_096)
def market_name(underlying: str, expiry_at: Instant) -> str:
    """Return the id of a paper market, readable for users and models."""
    return f"{underlying}-{iso(expiry_at)}"


def rungs(grid: Grid, spot: int, step: int = 50 * FLOAT, count: int = 10) -> tuple[int, ...]:
    """Return grid strikes outward from spot in steps: nearest first, above before below."""
    middle = (spot + step // 2) // step * step
    strikes = [middle]
    for number in range(1, count + 1):
        strikes += [middle + step * number, middle - step * number]
    return tuple(strike for strike in strikes if grid.holds(strike))
