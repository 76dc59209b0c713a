"""The streams of an account: a message triggers a read of the account, is counted once, and is not trusted by itself."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from typing import Any

import orjson
import pytest

from pitboss.bootstrap.trading_accounts import TradingAccount
from pitboss.core.instant import HOUR_MS, SECOND_MS
from pitboss.testing.hyperliquid.exchange import FakeExchange
from pitboss.testing.hyperliquid.faults import FaultRule
from pitboss.testing.hyperliquid.rules import VenueRules
from pitboss.testing.hyperliquid.server import serving
from pitboss.venues.perp.hyperliquid.account_news import UNCONFIRMED_MS, AccountNews
from pitboss.venues.perp.hyperliquid.live_account import followed_account
from pitboss.venues.perp.state import ReportedWorld
from pitboss.venues.perp.world import OrderRequest
from venues.perp.hyperliquid.live_scene import Scene, open_request, proposal_of

LIMIT = Decimal("0.99")


async def world_with_resting_order(scene: Scene) -> ReportedWorld:
    """A world with a limit order of 1 ETH below the market."""
    world = await scene.world()
    asset = scene.setup.universe["ETH"].asset
    limit = asset.round_price(world.marks["ETH"] * LIMIT, up=False)
    request = OrderRequest("limit", "ETH", 1, Decimal(1), 3, limit, proposal=proposal_of("k"))
    placed = await scene.broker.submit(world, request, scene.now())
    assert not placed.refusal
    return placed.world


def drop_price(scene: Scene) -> None:
    """The market falls through the limit order."""
    scene.exchange.set_price("ETH", scene.exchange.market("ETH").mark * LIMIT * LIMIT)


def push_message(scene: Scene, channel: str, data: Any) -> None:
    scene.sockets[-1].queue.put_nowait(orjson.dumps({"channel": channel, "data": data}).decode())


def test_a_fill_gets_its_stop_at_once_although_no_pass_runs_while_an_agent_decides():
    async def work() -> None:
        await world_with_resting_order(scene)
        await asyncio.sleep(10.2)
        scene.woken.clear()
        drop_price(scene)
        assert (scene.position("ETH"), scene.stops("ETH")) == (1, [])
        await asyncio.sleep(0.5)
        assert scene.stops("ETH") == [Decimal(1)]
        assert scene.woken.is_set()

    scene = Scene(41)
    scene.run(work())


def test_a_fill_whose_message_is_lost_gets_its_stop_at_the_next_interval():
    async def work() -> None:
        await world_with_resting_order(scene)
        await asyncio.sleep(10.2)
        scene.woken.clear()
        scene.sockets[-1].session.subscriptions.clear()
        drop_price(scene)
        await asyncio.sleep(2.0)
        assert Decimal(1) in scene.stops("ETH")  # beside one of a part, if it was filled in parts
        assert not scene.woken.is_set()

    scene = Scene(42)
    scene.run(work())


def test_a_fill_gets_its_stop_although_the_clock_was_set_back():
    async def work() -> None:
        await world_with_resting_order(scene)
        await asyncio.sleep(10.2)
        scene.clock_error_ms = -HOUR_MS
        drop_price(scene)
        await asyncio.sleep(2.0)
        assert Decimal(1) in scene.stops("ETH")

    scene = Scene(47)
    scene.run(work())


def test_a_stop_that_the_exchange_takes_away_is_placed_again_at_once():
    async def work() -> None:
        world = await scene.world()
        await scene.broker.submit(world, open_request(), scene.now())
        await asyncio.sleep(0.6)
        (stop,) = [order for order in scene.exchange.account().open_orders.values() if order.is_trigger]
        scene.exchange.state.set_status(stop, "reduceOnlyCanceled")
        assert scene.stops("ETH") == []
        await asyncio.sleep(0.6)
        assert scene.stops("ETH") == [Decimal(1)]

    scene = Scene(43)
    scene.run(work())


def test_a_fill_that_is_told_twice_on_two_streams_is_one_fill_and_one_receipt():
    async def work() -> None:
        world = await world_with_resting_order(scene)
        drop_price(scene)
        receipts = []
        for _ in range(6):
            await scene.pause(2.0)
            reconciled = await scene.broker.resolve(world)
            world = reconciled.world
            receipts += reconciled.receipts
        assert scene.reconciler.news.fills == scene.exchange.truth().fills
        ids = [receipt.facts["trade_id"] for receipt in receipts if receipt.kind == "filled"]
        assert len(ids) == len(set(ids)) == scene.exchange.truth().fills
        assert scene.plan.counts["ws_doubled_fill"]

    scene = Scene(44, faults=(FaultRule("ws_doubled_fill"), FaultRule("ws_duplicate_snapshot")))
    scene.run(work())


def test_a_message_about_another_account_is_not_news():
    async def work() -> None:
        await world_with_resting_order(scene)
        await asyncio.sleep(2)
        scene.reconciler.news.take()
        push_message(scene, "userFills", {"user": "0x" + "ab" * 20, "fills": [{"tid": 5}]})
        await asyncio.sleep(0.2)
        assert (scene.stream.foreign_messages, scene.reconciler.news.fills) == (1, 0)

    scene = Scene(45)
    scene.run(work())


@pytest.mark.parametrize("coin", ["@107", "PURR/USDC", "xyz:GOLD"])
def test_a_fill_of_another_market_is_not_news(coin: str):
    async def work() -> None:
        await world_with_resting_order(scene)
        await asyncio.sleep(2)
        scene.reconciler.news.take()
        push_message(
            scene, "userFills", {"user": scene.exchange.ready.master_address, "fills": [{"tid": 5, "coin": coin}]}
        )
        push_message(scene, "user", {"fills": [{"tid": 6, "coin": coin}]})
        await asyncio.sleep(0.2)
        assert (scene.reconciler.news.fills, scene.reconciler.news.take()) == (0, False)

    scene = Scene(45)
    scene.run(work())


@pytest.mark.parametrize(
    ("channel", "data"),
    [
        ("userFills", []),
        ("userFills", {"user": None, "fills": None}),
        ("user", {"fills": [{"tid": "7"}]}),
        ("user", "x"),
        ("orderUpdates", {"order": {}}),
        ("orderUpdates", [{"order": {"cloid": "0x1"}}]),
        ("orderUpdates", [{"order": None, "status": "filled"}]),
    ],
)
def test_a_message_that_cannot_be_read_changes_nothing(channel: str, data: Any):
    async def work() -> None:
        await scene.world()
        await asyncio.sleep(1)
        scene.reconciler.news.take()
        push_message(scene, channel, data)
        await asyncio.sleep(0.1)
        assert not scene.reconciler.news.take()
        assert len(scene.sockets) == 1
        assert scene.stream.problem == ""

    scene = Scene(46)
    scene.run(work())


def test_after_a_gap_orders_and_fills_are_read_before_a_decision():
    async def work() -> None:
        world = await world_with_resting_order(scene)
        await scene.pause(5)
        world = (await scene.broker.resolve(world)).world
        before = scene.transport.sent["userFillsByTime"]
        world = (await scene.broker.resolve(world)).world
        assert scene.transport.sent["userFillsByTime"] == before  # a pass without news reads value and positions alone
        scene.sockets[-1].session.close(is_abrupt=True)
        await asyncio.sleep(0.1)
        assert "account: the stream is not connected" in scene.stream.problem
        world = (await scene.broker.resolve(world)).world
        assert scene.transport.sent["userFillsByTime"] == before + 1  # messages may be missing from here on
        await scene.reconnected.wait()
        await asyncio.sleep(0.2)
        assert scene.stream.problem == ""
        await scene.broker.resolve(world)
        assert scene.transport.sent["userFillsByTime"] == before + 2  # and until the new connection has begun

    scene = Scene(47)
    scene.run(work())


def test_a_connection_that_carries_nothing_is_replaced_within_fifteen_seconds_and_a_quiet_one_is_not():
    async def work() -> None:
        await scene.world()
        await asyncio.sleep(180)  # pongs alone: nothing happens in the account
        assert len(scene.sockets) == 1
        scene.sockets[0].session.is_half_open = True
        broken_at = scene.clock.now()
        await scene.reconnected.wait()
        assert scene.clock.now() - broken_at <= 17 * SECOND_MS  # fifteen, and the pause of the backoff

    scene = Scene(48)
    scene.run(work())


def test_what_was_told_is_news_until_a_reply_has_it_or_a_minute_has_passed():
    now = 1_000
    news = AccountNews(lambda: now)
    news.add_snapshot([1, 2])
    assert (news.take(), news.fills, news.everything) == (True, 0, 1)
    news.add_fills([2, 3, 3])
    assert (news.take(), news.take(), news.fills, news.has_unread_fills()) == (True, False, 1, True)
    news.on_fills_read([3, 4])
    news.add_fills([3, 4])  # told after it was read
    assert (news.take(), news.has_unread_fills()) == (False, False)
    news.add_fills([5])
    now += UNCONFIRMED_MS
    assert not news.has_unread_fills()
    news.take()
    news.add_statuses({"0x1": "open"})
    assert not news.take()
    news.add_statuses({"0x2": "canceled"})
    assert (news.take(), news.take_statuses(), news.take_statuses()) == (True, {"0x1": "open", "0x2": "canceled"}, {})


def test_over_sockets_the_snapshot_of_two_thousand_fills_is_one_message_that_is_read():
    async def work() -> None:
        exchange = FakeExchange(49, rules=VenueRules(verify_every=0))
        wire = {"a": 0, "b": True, "p": "70000", "s": "0.01", "r": False, "t": {"limit": {"tif": "Ioc"}}}
        action = {"type": "order", "orders": [wire], "grouping": "na"}
        exchange.exchange({"action": action, "nonce": exchange.now, "signature": {}})
        account = exchange.account()
        (fill,) = account.fills
        account.fills += [replace(fill, tid=fill.tid + number) for number in range(1, 2_000)]
        news = AccountNews(lambda: 0)
        trading = TradingAccount(address=exchange.ready.master_address, network="testnet")
        async with serving(exchange) as server, followed_account(server.url, trading, news) as stream:
            async with asyncio.timeout(20):
                await news.wait()
            assert (news.everything, news.fills, stream.problem) == (1, 0, "")
            assert not stream.has_failed()

    asyncio.run(work())
