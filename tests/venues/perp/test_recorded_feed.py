"""The recorded feed: bars count as arrived when the clock has passed their close."""

import asyncio
from decimal import Decimal

import numpy as np
import pytest

from pitboss.core.asof import Market
from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import MINUTE_MS, parse_instant
from pitboss.core.market import Bars
from pitboss.venues.perp.assets import SHIPPED
from pitboss.venues.perp.live_market import MarketFeed
from pitboss.venues.perp.recorded_feed import RecordedFeed

START = parse_instant("2025-06-01")


def column(symbol, count, first=100.0):
    closes = first + np.arange(count, dtype=np.float64)
    open_at = START + MINUTE_MS * np.arange(count, dtype=np.int64)
    return Bars(symbol, "1m", MINUTE_MS, open_at, closes, closes + 1, closes - 1, closes, closes)


class VirtualClock:
    def __init__(self, at):
        self.at = at

    def now(self):
        return self.at

    async def advance(self, at):
        self.at = max(self.at, at)


def feed_at(at, btc=10, eth=10):
    clock = VirtualClock(at)
    market = Market({("BTC", "1m"): column("BTC", btc), ("ETH", "1m"): column("ETH", eth, 10.0)})
    feed = RecordedFeed(market, ("ETH", "BTC"), "1m", SHIPPED, clock.now, clock.advance)
    return feed, clock


def test_a_bar_counts_when_the_clock_has_passed_its_close():
    feed, clock = feed_at(START + 3 * MINUTE_MS - 1)
    assert feed.complete_until() == START + 2 * MINUTE_MS
    clock.at += 1
    assert feed.complete_until() == START + 3 * MINUTE_MS
    assert feed.marks() == {
        "BTC": (Decimal("102.0"), START + 3 * MINUTE_MS),
        "ETH": (Decimal("12.0"), START + 3 * MINUTE_MS),
    }


def test_waiting_moves_the_clock_of_the_caller():
    feed, clock = feed_at(START)
    asyncio.run(feed.wait_until(START + 5 * MINUTE_MS))
    assert clock.at == START + 5 * MINUTE_MS
    assert feed.complete_until() == START + 5 * MINUTE_MS
    asyncio.run(feed.wait_until(START))
    assert clock.at == START + 5 * MINUTE_MS


def test_it_ends_with_the_symbol_that_ends_first_and_says_so():
    feed, clock = feed_at(START, btc=10, eth=4)
    with pytest.raises(TransientError, match="the recording ends at 2025-06-01T00:04:00Z"):
        asyncio.run(feed.wait_until(START + 5 * MINUTE_MS))
    assert not feed.has_failed()
    assert not feed.trouble()
    clock.at = START + 5 * MINUTE_MS
    assert feed.complete_until() == START + 4 * MINUTE_MS
    assert feed.has_failed()
    assert "ends" in feed.trouble()


def test_no_bars_of_a_symbol_are_refused():
    with pytest.raises(UserError, match="lacks 1m bars"):
        feed_at(START, eth=0)


def test_it_is_a_market_feed():
    feed: MarketFeed = feed_at(START)[0]
    assert feed.base_interval == "1m"
    assert feed.market() is feed.market()
    assert feed.assets["BTC"] is SHIPPED["BTC"]
