"""Expiries on the operator's tiers."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.errors import UserError
from pitboss.core.instant import HOUR_MS, iso, parse_instant
from pitboss.venues.predict.schedule import TIERS, expiries, listed_slots, market_name, rungs
from pitboss.venues.predict.state import Grid
from pitboss.venues.predict.svi import FLOAT

NOW = parse_instant("2026-05-27T12:05:00Z")


@pytest.mark.parametrize(
    ("tier", "first", "last"),
    [
        ("15m", "2026-05-27T13:15:00Z", "2026-05-27T14:00:00Z"),
        ("1h", "2026-05-27T14:00:00Z", "2026-05-27T17:00:00Z"),
        ("1d", "2026-05-28T08:00:00Z", "2026-05-31T08:00:00Z"),
        ("1w", "2026-05-29T08:00:00Z", "2026-06-19T08:00:00Z"),
    ],
)
def test_each_tier_has_four_expiries_the_first_at_least_an_hour_ahead(tier: str, first: str, last: str) -> None:
    found = expiries(tier, NOW)
    assert (len(found), iso(found[0]), iso(found[-1])) == (4, first, last)


def test_an_expiry_exactly_an_hour_ahead_is_the_first() -> None:
    noon = parse_instant("2026-05-27T12:00:00Z")
    assert expiries("15m", noon)[0] == noon + HOUR_MS
    assert expiries("15m", noon + 1)[0] == noon + HOUR_MS + 15 * 60_000


@given(st.integers(1_600_000_000_000, 1_900_000_000_000), st.sampled_from(TIERS))
def test_expiries_lie_on_their_boundary_whenever_one_looks(now: int, tier: str) -> None:
    found = expiries(tier, now)
    step = {"15m": 900_000, "1h": HOUR_MS, "1d": 24 * HOUR_MS, "1w": 168 * HOUR_MS}[tier]
    assert now + HOUR_MS <= found[0] < now + HOUR_MS + step
    assert [later - earlier for earlier, later in itertools.pairwise(found)] == [step] * 3
    if tier in ("1d", "1w"):
        assert iso(found[0]).endswith("T08:00:00Z")
    if tier == "1w":
        assert (found[0] // (24 * HOUR_MS)) % 7 == 1  # day 0 was a Thursday


@given(st.integers(1_600_000_000_000, 1_900_000_000_000))
def test_what_stands_is_every_expiry_of_the_last_hours_that_is_not_over(now: int) -> None:
    tier = "15m"
    ever = {at for earlier in range(0, 3 * HOUR_MS, 60_000) for at in expiries(tier, now - earlier)}
    assert {slot.expiry_at for slot in listed_slots(now, [tier])} == {at for at in ever if at > now}


def test_tiers_that_meet_share_one_market() -> None:
    (friday,) = [slot for slot in listed_slots(NOW) if slot.expiry_at == parse_instant("2026-05-29T08:00:00Z")]
    assert friday.tiers == ("1d", "1w")
    assert market_name("BTC", friday.expiry_at) == "BTC-2026-05-29T08:00:00Z"


def test_an_unknown_tier_is_the_persons_error() -> None:
    with pytest.raises(UserError, match="unknown tier"):
        expiries("2h", NOW)


def test_rungs_walk_outward_from_spot_and_stay_on_the_grid() -> None:
    found = [strike // FLOAT for strike in rungs(Grid(), 63_210 * FLOAT, count=2)]
    assert found == [63_200, 63_250, 63_150, 63_300, 63_100]
    assert rungs(Grid(), 49_960 * FLOAT, count=1) == (50_000 * FLOAT,)


def test_the_grid_is_whole_dollars_from_fifty_to_a_hundred_and_fifty_thousand() -> None:
    grid = Grid()
    assert grid.holds(63_601 * FLOAT)
    assert not grid.holds(63_600 * FLOAT + FLOAT // 2)
    assert grid.holds(50_000 * FLOAT)
    assert grid.holds(150_000 * FLOAT)
    assert not grid.holds(49_999 * FLOAT)
    assert not grid.holds(150_001 * FLOAT)
    assert grid.sound()
    assert not Grid(tick=5_000).sound()
    assert not Grid(min_strike=FLOAT // 2).sound()
