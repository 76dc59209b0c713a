"""The live feed on the fake exchange in virtual time: what is complete when, and with which bars."""

from decimal import Decimal

import pytest

from pitboss.core.errors import UserError
from pitboss.core.instant import MINUTE_MS, SECOND_MS
from pitboss.venues.perp.live_market import MarketFeed
from venues.perp.hyperliquid.feed_scene import HOUR, START, FeedScene


def test_bars_arrive_within_seconds_of_their_close_and_are_those_of_the_exchange():
    async def work(scene):
        feed: MarketFeed = scene.feed
        assert feed.complete_until() == START
        delays = []
        for minute in range(1, 13):
            at = START + minute * MINUTE_MS
            await feed.wait_until(at)
            delays.append(scene.clock.now() - at)
            assert feed.complete_until() == at
            assert len(scene.bars("BTC")) == len(scene.bars("ETH")) == 20 + minute
        assert scene.differences() == []
        assert feed.trouble() == ""
        assert not feed.has_failed()
        return delays

    scene = FeedScene(symbols=("BTC", "ETH"))
    assert max(scene.run(work)) <= 4 * SECOND_MS
    assert scene.requests("candleSnapshot") <= 14  # the history, the first bar of each series, and few that came late


def test_a_symbol_that_is_not_traded_is_refused_at_opening():
    with pytest.raises(UserError, match="does not trade 'NOPE'"):
        FeedScene(symbols=("BTC", "NOPE")).run(None)


def test_assets_come_from_the_exchange():
    async def work(scene):
        assert scene.feed.assets["BTC"].size_decimals == 5
        assert scene.feed.assets["BTC"].max_leverage == 40

    FeedScene().run(work)


def test_marks_are_fresh_and_carry_venue_times():
    async def work(scene):
        for second in range(1, 60):
            await scene.until(START + 5 * SECOND_MS + second * SECOND_MS)
            for mark, at in scene.feed.marks().values():
                assert mark > 0
                assert 0 <= scene.exchange.now - at <= 5 * SECOND_MS
            assert set(scene.feed.marks()) == {"BTC"}
        assert scene.mark_age_ms("BTC") <= 5 * SECOND_MS
        assert scene.requests("metaAndAssetCtxs") <= 3  # the stream renews them

    FeedScene().run(work)


def test_a_bar_that_contains_an_hour_waits_for_the_funding_of_the_hour():
    hidden = []

    def without_the_newest(body, reply):
        if body["type"] == "fundingHistory" and hidden:
            return [row for row in reply if row["time"] < HOUR]
        return reply

    async def work(scene):
        hidden.append(True)
        await scene.feed.wait_until(HOUR)  # the bars before the hour need no row
        await scene.until(HOUR + 90 * SECOND_MS)
        assert scene.feed.complete_until() == HOUR
        hidden.clear()
        await scene.feed.wait_until(HOUR + MINUTE_MS)
        assert scene.clock.now() < HOUR + 150 * SECOND_MS
        funding = scene.feed.market().points["funding", "BTC"]
        assert funding.at[-1] == HOUR
        assert scene.feed.trouble() == ""

    scene = FeedScene()
    scene.info.change = without_the_newest
    scene.run(work)


def test_funding_that_never_comes_is_given_up_after_two_minutes_with_a_notice():
    async def work(scene):
        await scene.feed.wait_until(HOUR + MINUTE_MS)
        waited = scene.clock.now() - (HOUR)
        assert 2 * MINUTE_MS <= waited <= 4 * MINUTE_MS
        assert "BTC: the exchange has no funding rate for 2026-01-01T01:00:00Z" in scene.feed.trouble()
        await scene.feed.wait_until(HOUR + 5 * MINUTE_MS)

    scene = FeedScene()
    scene.info.change = lambda body, reply: [] if body["type"] == "fundingHistory" else reply
    scene.run(work)


def test_the_market_is_the_same_object_until_something_arrives():
    async def work(scene):
        await scene.until(START + 10 * SECOND_MS)
        market = scene.feed.market()
        await scene.until(START + 50 * SECOND_MS)
        assert scene.feed.market() is market
        await scene.feed.wait_until(START + MINUTE_MS)
        assert scene.feed.market() is not market

    FeedScene().run(work)


def test_open_interest_mark_and_oracle_are_kept_every_five_minutes():
    async def work(scene):
        await scene.until(START + 11 * MINUTE_MS)
        for kind in ("open_interest", "mark", "oracle"):
            points = scene.feed.market().points[kind, "BTC"]
            assert [at % (5 * MINUTE_MS) for at in points.at.tolist()[1:]] == [0, 0]
            assert points.value.min() > 0

    FeedScene().run(work)


@pytest.mark.parametrize("skew", [-86_400_000, -5_000, -1_200, 1_200, 5_000, 86_400_000])
def test_a_clock_that_is_off_by_more_than_a_second_is_told_and_blocks_opens(skew):
    async def work(scene):
        assert scene.feed.opening_problem("BTC") == ""
        scene.skew = skew  # a step: seen at once, without a new measurement
        assert abs(scene.feed.skew_ms - skew) <= 200
        assert "clock differs" in scene.feed.trouble()
        assert "clock differs" in scene.feed.opening_problem("BTC")
        await scene.feed.wait_until(START + 2 * MINUTE_MS)
        assert abs(scene.feed.skew_ms - skew) <= 200
        scene.skew = 0
        assert scene.feed.opening_problem("BTC") == ""

    FeedScene().run(work)


def test_a_clock_that_is_off_from_the_start_is_told():
    async def work(scene):
        assert abs(scene.feed.skew_ms - 30_000) <= 200
        assert "clock differs" in scene.feed.trouble()
        assert scene.feed.complete_until() == START

    scene = FeedScene()
    scene.skew = 30_000
    scene.run(work)


def test_a_small_difference_is_no_trouble():
    async def work(scene):
        scene.skew = 700
        await scene.until(START + MINUTE_MS + 5 * SECOND_MS)
        assert scene.feed.trouble() == ""
        assert abs(scene.feed.skew_ms - 700) <= 200

    FeedScene().run(work)


def test_marks_are_decimals_as_the_exchange_wrote_them():
    async def work(scene):
        await scene.until(START + 30 * SECOND_MS)
        mark, at = scene.feed.marks()["BTC"]
        assert isinstance(mark, Decimal)
        assert at <= scene.exchange.now

    FeedScene().run(work)
