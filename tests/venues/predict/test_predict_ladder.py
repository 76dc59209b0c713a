"""Strikes outward from spot with their prices."""

from pitboss.core.instant import HOUR_MS
from pitboss.venues.predict.ladder import first_rung, ladder
from pitboss.venues.predict.svi import FLOAT, flat
from pitboss.venues.predict.trade import preview
from venues.predict.scene import HOURLY, NOW, no, venue, world_after, yes
from venues.predict.single_markets import push_svi, set_ask_bounds


def test_rungs_come_nearest_first_with_the_quotes_of_both_sides() -> None:
    world = venue()
    found = ladder(world, HOURLY, NOW, count=2)
    assert [rung.strike // FLOAT for rung in found] == [63_200, 63_250, 63_150, 63_300, 63_100]
    assert found[0].quote == preview(world, yes(63_200), NOW)
    assert found[0].quote.opposite == preview(world, no(63_200), NOW)
    assert found[0].ask("NO") == found[0].quote.opposite.ask
    assert all(rung.sides == ("YES", "NO") for rung in found)


def test_a_side_outside_the_bounds_is_not_offered_and_a_strike_without_a_price_not_listed() -> None:
    world = world_after(set_ask_bounds(venue(), HOURLY, (495_000_000, 990_000_000), NOW))
    first = first_rung(world, HOURLY, "YES", NOW)
    assert first is not None
    assert first.ask("YES") >= 495_000_000
    sure = world_after(push_svi(venue(), HOURLY, flat(1e-9), NOW))
    assert len(ladder(sure, HOURLY, NOW)) < 5
    assert (
        first_rung(world_after(push_svi(venue(), HOURLY, flat(1e-12), NOW)), HOURLY, "YES", NOW, step=500 * FLOAT)
        is None
    )


def test_a_market_that_does_not_quote_has_no_ladder() -> None:
    assert ladder(venue(), HOURLY, NOW + HOUR_MS) == ()
    assert ladder(venue(), "nowhere", NOW) == ()
