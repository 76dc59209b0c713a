"""The feed that deployments of a workspace share, over real connections to a fake exchange."""

import asyncio

from pitboss.bootstrap.machine import SystemClock
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.core.instant import HOUR_MS, MINUTE_MS
from pitboss.testing.hyperliquid.exchange import FakeExchange
from pitboss.testing.hyperliquid.rules import VenueRules
from pitboss.testing.hyperliquid.server import serving
from pitboss.testing.hyperliquid.universe import LISTED
from pitboss.venues.perp.hyperliquid.market_feed import HyperliquidFeed
from pitboss.venues.perp.lake_news import LakeNews
from pitboss.venues.perp.live_feeds import open_market_feed, shared_feed

LIMIT_S = 30


def test_deployments_of_a_workspace_share_one_feed_and_one_rate_budget(tmp_path, monkeypatch):
    async def main():
        now = SystemClock().now
        exchange = FakeExchange(
            1, LISTED[:2], now(), VenueRules(history_ms=18 * HOUR_MS, step_ms=5_000, verify_every=0)
        )
        async with asyncio.timeout(LIMIT_S), serving(exchange, now=now) as server:
            monkeypatch.setenv("PITBOSS_HYPERLIQUID_URL", server.url)
            with open_workspace(load_settings(tmp_path)) as workspace:
                async with (
                    shared_feed(workspace, ("BTC",), ("5m",)) as first,
                    shared_feed(workspace, ("BTC", "ETH"), ("5m",)) as second,
                ):
                    assert now() - first.complete_until() < 2 * MINUTE_MS
                    assert first.market() is second.market()
                    assert first.access is second.access
                    assert first.access.budget.used > 0
                    assert abs(first.skew_ms) < 1_000
                    assert len(first.market().bars["BTC", "1m"]) >= 990
                    assert set(second.marks()) == {"BTC", "ETH"}
                assert first.access.budget.used <= 400

    asyncio.run(main())


def test_a_feed_whose_news_have_failed_says_so_and_is_closed_all_the_same(monkeypatch):
    closed = []

    async def main():
        exchange = FakeExchange(1, LISTED[:1])
        async with (
            asyncio.timeout(LIMIT_S),
            serving(exchange) as server,
            open_market_feed(server.url, lambda: None) as feed,
        ):
            await asyncio.sleep(0)
            assert "the news of the lake are read no more" in feed.trouble()

    async def fail(news):
        raise ValueError

    async def close(feed):
        closed.append(feed)
        await end(feed)

    end = HyperliquidFeed.close
    monkeypatch.setattr(LakeNews, "run", fail)
    monkeypatch.setattr(HyperliquidFeed, "close", close)
    asyncio.run(main())
    assert len(closed) == 1
