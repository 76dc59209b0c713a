"""Live prices into the paper venue: which are taken, when orders are carried out, what settles, and what an outage does."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from data.sources.source_servers import FakeTime, serving_app
from live.scripted_prices import Feed
from pitboss.core import codec
from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import HOUR_MS, MINUTE_MS
from pitboss.data.hermes import Hermes
from pitboss.live.board import Board
from pitboss.live.pace import pace
from pitboss.live.runner import Runner
from pitboss.live.schedule import schedule
from pitboss.testing.journal import MemoryJournal
from pitboss.testing.prediction_services import PredictionServices, wandering
from pitboss.tick import WorldEvents, tick
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.data.spot import Spot, candles_of
from pitboss.venues.predict.desk import Desk
from pitboss.venues.predict.heuristics import heuristic
from pitboss.venues.predict.live_source import PATIENCE_MS
from pitboss.venues.predict.ports import read_state
from pitboss.venues.predict.state import ACCOUNT, QUOTE, open_world
from pitboss.venues.predict.svi import FLOAT
from venues.predict.predict_ticks import SOON, always_decides, new_state, ports
from venues.predict.scene import NOW, money

MINT: dict[str, Any] = {
    "action": "mint",
    "market_id": SOON,
    "side": "YES",
    "strike": 68_000,
    "spend": 2,
    "reasoning": "up",
}


def desk() -> Desk:
    return new_state().world


def price_time(world: Desk) -> int:
    return world.world.feeds["BTC"].at


def desk_after_tick(feed: Feed, world: Desk, at: int, *intents: Any) -> Desk:
    """The desk after a tick at which this was decided."""
    state = replace(new_state(), world=world)
    done = asyncio.run(tick(state, at, WorldEvents(), ports(always_decides(*intents), feed.caps, build_prompts=False)))
    return done.state.world


# Which prices are taken -------------------------------------------------------------------------------------------------


def test_a_day_of_candles_gives_the_volatility_that_goes_with_every_price() -> None:
    feed = Feed()
    feed.look(NOW)
    (update,) = feed.spot.before(NOW)
    assert update.at == NOW - 1_000
    assert update.spot == round(wandering(NOW // 1000 - 1) * 10**9)
    assert 0.1 < update.volatility < 2
    assert feed.spot.candles_at == NOW
    assert len(feed.spot.market.view(NOW).bars("BTC", "1m", 2_000)) == 1_441


def test_candles_are_kept_up_and_the_window_stays_a_day() -> None:
    feed = Feed()
    before = feed.spot.market
    feed.at = NOW + 5 * MINUTE_MS + 3_000
    asyncio.run(feed.spot.refresh())
    bars = feed.spot.market.view(feed.at).bars("BTC", "1m", 2_000)
    assert int(bars.open_at[-1]) == NOW + 4 * MINUTE_MS
    assert len(bars) == 1_441
    assert (bars.open_at[1:] - bars.open_at[:-1] == MINUTE_MS).all()
    assert feed.spot.market is not before


def test_too_few_candles_are_no_volatility_so_no_price_is_taken() -> None:
    feed = Feed(candles="few")
    feed.look(NOW)
    assert feed.spot.before(NOW) == []
    assert "30 candles" in feed.spot.trouble()
    assert feed.source.hold_flag(desk(), NOW) == "no_feed"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"price": lambda second: 680_000.0}, "far from the candles"),
        ({"price": lambda second: 6_800.0}, "far from the candles"),
        ({"conf": Decimal(2_000)}, "do not agree"),
        ({"error": TransientError("hermes answers 503")}, "hermes answers 503"),
        ({"error": UserError("hermes does not let us in (403)", "")}, "does not let us in"),
    ],
)
def test_a_price_that_cannot_be_one_is_left_out_and_reported(change: dict[str, Any], words: str) -> None:
    feed = Feed()
    for name, value in change.items():
        setattr(feed.hermes, name, value)
    feed.look(NOW)
    assert feed.spot.before(NOW) == []
    assert words in feed.spot.trouble()
    setattr(
        feed.hermes, next(iter(change)), {"price": wandering, "conf": Decimal(3), "error": None}[next(iter(change))]
    )
    feed.look(NOW + 2_000)
    assert feed.spot.trouble() == ""
    assert len(feed.spot.before(NOW + 2_000)) == 1


def test_the_same_price_twice_is_one_and_one_from_before_is_none() -> None:
    feed = Feed()
    feed.look(NOW)
    feed.look(NOW + 500)
    assert len(feed.spot.before(NOW + 500)) == 1
    feed.hermes.lag_ms = 60_000
    feed.look(NOW + 1_000)
    assert "went back in time" in feed.spot.trouble()


def test_a_price_is_old_after_half_a_minute_and_candles_after_a_quarter_of_an_hour() -> None:
    feed = Feed()
    feed.look(NOW)
    world, _ = feed.bring(desk())
    assert feed.source.hold_flag(world, NOW + 29_000) == ""
    assert feed.source.hold_flag(world, NOW + 29_001) == "stale_prices"
    feed.candles = "down"
    for minute in range(1, 17):
        feed.look(NOW + minute * MINUTE_MS)
        asyncio.run(feed.spot.refresh())
        world, _ = feed.bring(world)
        fit = feed.source.hold_flag(world, feed.at)
        assert fit == ("" if minute <= 15 else "stale_prices"), minute
    assert "benchmarks answers 503" in feed.spot.trouble()


# Orders --------------------------------------------------------------------------------------------------------------------


def test_what_was_published_at_the_tick_itself_is_not_part_of_it() -> None:
    feed = Feed()
    feed.hermes.lag_ms = 0
    for at in (NOW - 1_000, NOW, NOW + 1_000):
        feed.look(at)
    world, _ = feed.bring(desk(), NOW)
    assert price_time(world) == NOW - 1_000


def test_an_order_gets_the_first_price_after_it_was_really_decided() -> None:
    feed = Feed()
    feed.look(NOW)
    world, _ = feed.bring(desk(), NOW)
    for second in range(1, 13):  # prices come while the model thinks
        feed.look(NOW + second * 1_000)
    world = desk_after_tick(feed, world, NOW, MINT)
    assert [ticket.tick_at for ticket in world.waiting] == [NOW]
    world, receipts = feed.bring(world)
    assert price_time(world) == NOW + 11_000
    assert [one for one in receipts if one.kind != "settled"] == []
    assert len(world.waiting) == 1
    feed.look(NOW + 14_000)
    world, receipts = feed.bring(world)
    assert [(one.kind, one.at) for one in receipts] == [("filled", NOW + 13_000)]
    assert world.waiting == ()


def test_an_order_that_waited_too_long_is_refused_by_its_rule() -> None:
    feed = Feed()
    feed.look(NOW)
    world, _ = feed.bring(desk(), NOW)
    feed.at = NOW + 40_000
    world = desk_after_tick(feed, world, NOW, MINT)
    world, _ = feed.bring(world)
    feed.look(NOW + 45_000)
    world, receipts = feed.bring(world)
    assert [(one.kind, one.facts["code"]) for one in receipts if one.kind == "rejected"] == [("rejected", "B4_STALE")]
    assert world.waiting == ()
    assert world.spent.total == 0


def test_orders_of_a_process_that_was_killed_wait_for_a_price_of_the_next_one() -> None:
    feed = Feed()
    feed.look(NOW)
    world, _ = feed.bring(desk(), NOW)
    state = replace(new_state(), world=desk_after_tick(feed, world, NOW, MINT))
    kept = read_state(codec.plain(state)).world
    other = Feed(at=NOW + 10_000)
    other.look(NOW + 10_000)
    kept, receipts = other.bring(kept)
    assert [one for one in receipts if one.kind != "settled"] == []
    other.look(NOW + 12_000)
    kept, receipts = other.bring(kept)
    assert [(one.kind, one.at) for one in receipts] == [("filled", NOW + 11_000)]


# Settlement ---------------------------------------------------------------------------------------------------------------


def desk_with_position(feed: Feed) -> Desk:
    """A desk that holds a YES of the hourly market."""
    feed.look(NOW)
    world, _ = feed.bring(desk(), NOW)
    world = desk_after_tick(feed, world, NOW, MINT)
    world, _ = feed.bring(world)
    feed.look(NOW + 3_000)
    world, _ = feed.bring(world)
    assert len(world.world.accounts[ACCOUNT].positions) == 1
    return world


def settlement(receipts: list[Any], market: str = SOON) -> list[tuple[int, Decimal]]:
    return [(one.at, one.facts["price"]) for one in receipts if one.symbol == market and "account" not in one.facts]


def test_what_is_held_settles_by_the_first_price_at_or_after_expiry_however_late_it_is_seen() -> None:
    feed = Feed()
    world = desk_with_position(feed)
    total = money(world.world)
    feed.look(NOW + HOUR_MS + 17_000)  # nothing was heard for an hour
    world, receipts = feed.bring(world)
    assert settlement(receipts) == []
    assert price_time(world) == NOW + 2_000  # it waits for the exact price
    assert feed.source.hold_flag(world, feed.at) == "stale_prices"
    feed.look(NOW + HOUR_MS + 19_000)
    world, receipts = feed.bring(world)
    assert feed.hermes.recalled == [NOW + HOUR_MS]
    assert settlement(receipts) == [(NOW + HOUR_MS, Decimal(repr(wandering((NOW + HOUR_MS) // 1000))))]
    assert world.world.accounts[ACCOUNT].positions == {}
    assert money(world.world) == total
    assert price_time(world) == NOW + HOUR_MS + 18_000


def test_where_nothing_is_held_nothing_of_the_past_is_asked_for() -> None:
    feed = Feed()
    feed.look(NOW)
    world, _ = feed.bring(desk(), NOW)
    feed.look(NOW + 5 * HOUR_MS)
    world, receipts = feed.bring(world)
    assert feed.hermes.recalled == []
    assert price_time(world) == NOW + 5 * HOUR_MS - 1_000
    assert len(settlement(receipts)) == 1


@pytest.mark.parametrize("error", [UserError("Pyth has no price", ""), TransientError("hermes answers 503")])
def test_where_the_exact_price_is_not_to_be_had_the_first_seen_settles_and_that_is_reported(error: Exception) -> None:
    feed = Feed()
    world = desk_with_position(feed)
    feed.hermes.past_error = error
    start = NOW + HOUR_MS + 2_000
    for waited in range(0, PATIENCE_MS + 4_000, 2_000):
        feed.look(start + waited)
        world, receipts = feed.bring(world)
        if settlement(receipts):
            break
    assert settlement(receipts) == [(start - 1_000, Decimal(repr(wandering(start // 1000 - 1))))]
    assert waited == (2_000 if isinstance(error, UserError) else PATIENCE_MS)
    assert feed.messages == [
        f"the price at {'2026-05-27T13:00:00Z'} is not available: the next price received settles its market"
    ]


def test_an_exact_price_that_its_publishers_do_not_agree_on_settles_nothing() -> None:
    feed = Feed()
    world = desk_with_position(feed)
    feed.look(NOW + HOUR_MS + 2_000)
    world, _ = feed.bring(world)
    feed.hermes.conf = Decimal(2_000)
    feed.look(NOW + HOUR_MS + 4_000)
    world, receipts = feed.bring(world)
    assert settlement(receipts)[0][0] == NOW + HOUR_MS + 1_000
    assert len(feed.messages) == 1


def test_two_expiries_in_one_outage_settle_each_by_its_own_price() -> None:
    feed = Feed()
    world = desk_with_position(feed)
    later = {**MINT, "market_id": "BTC-2026-05-27T14:00:00Z"}
    feed.look(NOW + MINUTE_MS - 1_000)
    world, _ = feed.bring(world)
    world = desk_after_tick(feed, world, NOW + MINUTE_MS, later)
    feed.look(NOW + MINUTE_MS + 1_000)
    world, _ = feed.bring(world)
    feed.look(NOW + MINUTE_MS + 3_000)
    world, _ = feed.bring(world)
    assert len(world.world.accounts[ACCOUNT].positions) == 2
    feed.look(NOW + 3 * HOUR_MS)
    settled: list[Any] = []
    for _ in range(4):
        world, receipts = feed.bring(world)
        settled += receipts
        feed.look(feed.at + 2_000)
    assert settlement(settled)[0][0] == NOW + HOUR_MS
    assert settlement(settled, "BTC-2026-05-27T14:00:00Z")[0][0] == NOW + 2 * HOUR_MS
    assert world.world.accounts[ACCOUNT].positions == {}


def test_hours_of_a_policy_on_live_prices_conserve_money_and_leave_nothing_behind() -> None:
    caps = PredictCaps(max_spend_per_day=400 * QUOTE, max_total_spend=400 * QUOTE)
    feed, board, journal = Feed(caps=caps), Board(), MemoryJournal()

    class Clock:
        def now(self) -> int:
            return feed.at

    async def pause(wait_ms: int) -> None:
        minute = feed.at // MINUTE_MS
        feed.at += wait_ms
        if feed.at // MINUTE_MS > minute:
            await feed.spot.refresh()
        await feed.spot.look()

    given = ports(heuristic("alternate"), feed.caps, build_prompts=False)
    runner = Runner(
        ports=given,
        source=feed.source,
        journal=journal,
        clock=Clock(),
        pace=pace(schedule(MINUTE_MS), 2_000),
        state=new_state(1_000),
        board=board,
        pause=pause,
        most_ticks=100,
    )
    total = money(new_state(1_000).world.world)
    state = asyncio.run(runner.run())
    world = state.world.world
    assert money(world) == total
    assert (board.ticks, board.missed_slots) == (100, 0)
    assert board.events["settled", "redeem"] > 5
    sides = [one["intents"][0]["side"] for one in board.feed if one["kind"] == "tick" and one["intents"]]
    assert {(sides[place], sides[place + 1]) for place in range(len(sides) - 1)} == {("YES", "NO"), ("NO", "YES")}
    assert state.world.spent.total <= feed.caps.max_spend_per_day
    assert state.world.waiting == ()
    assert feed.spot.before(feed.at + HOUR_MS) == []
    assert not feed.spot.is_requesting(NOW + HOUR_MS)
    again = Board()
    again.restore(journal.records())
    assert (again.newest(), again.account) == (
        [one for one in board.newest() if one["kind"] != "remark"],
        board.account,
    )


# Over the wire ------------------------------------------------------------------------------------------------------------


def test_both_services_are_read_over_http_and_their_bad_days_are_reported_not_raised() -> None:
    time = FakeTime(NOW)
    moods = {"mood": ""}
    pyth = PredictionServices(time.now, fault=lambda path: moods["mood"])

    async def story(url: str) -> Spot:
        fetcher, hurried = time.fetcher(timeout_s=20, attempts=1), time.fetcher(timeout_s=0.2, attempts=1)
        try:
            spot = Spot("BTC", Hermes(fetcher, url), await candles_of("BTC", url, fetcher), time.now)
            waiting = Spot("BTC", Hermes(hurried, url), await candles_of("BTC", url, hurried), time.now)
            for mood, each in (("down", spot), ("garbled", spot), ("hang", waiting)):
                moods["mood"] = mood
                assert not await each.refresh()
                assert not await each.look()
                assert url.partition("//")[2] in each.trouble(), mood
                assert each.before(NOW + HOUR_MS) == []
            moods["mood"] = ""
            assert await spot.refresh()
            assert await spot.look()
            return spot
        finally:
            await fetcher.close()
            await hurried.close()

    with serving_app(pyth.app()) as url:
        spot = asyncio.run(story(url))
    assert spot.trouble() == ""
    assert spot.candles_at == NOW
    (update,) = spot.before(NOW + 1)
    assert update.spot == round(wandering(NOW // 1000 - 1) * 10**8) * 10
    assert update.at == NOW - 1_000


def test_a_feed_that_never_came_leaves_the_world_as_it_is() -> None:
    feed = Feed(candles="down")
    world = Desk(open_world(FLOAT, FLOAT))
    after, receipts = feed.bring(world)
    assert after is world
    assert receipts == []
