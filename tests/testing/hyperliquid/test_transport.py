"""The in-process transport: virtual time, exceptions by plan, many tasks; and a client with a fence against the mixed faults."""

import asyncio
import json
from typing import Any

import pytest

from pitboss.testing.hyperliquid.exchange import START, FakeExchange
from pitboss.testing.hyperliquid.faults import FaultPlan, FaultRule, mixed_faults
from pitboss.testing.hyperliquid.rules import VenueRules
from pitboss.testing.hyperliquid.signatures import sign
from pitboss.testing.hyperliquid.transport import InProcessTransport, TransportReply, VirtualClock, run_in_virtual_time
from pitboss.testing.hyperliquid.universe import listed
from testing.hyperliquid.client import cloid, still_exchange, wire_order

STATUS = {"type": "exchangeStatus"}


def exchange_and_transport(*faults: FaultRule, **rules: Any) -> tuple[FakeExchange, VirtualClock, InProcessTransport]:
    exchange, clock = still_exchange(**rules), VirtualClock()
    return exchange, clock, InProcessTransport(exchange, clock, FaultPlan(faults, 1))


def test_a_request_takes_virtual_time_and_the_exchange_lives_in_it() -> None:
    exchange, clock, transport = exchange_and_transport()

    async def play() -> None:
        reply = await transport.post("/info", STATUS, 5)
        assert isinstance(reply, TransportReply)
        status, text = reply
        assert status == 200
        assert START < json.loads(text)["time"] < clock.now() < START + 200
        await clock.sleep(3_600)
        assert exchange.now == clock.now() > START + 3_600_000

    asyncio.run(play())


@pytest.mark.parametrize(
    ("kind", "error", "least_ms"),
    [("never_received", TimeoutError, 2_000), ("connection_refused", ConnectionError, 0)],
)
def test_what_is_lost_raises_after_the_time_it_takes(kind: str, error: type[Exception], least_ms: int) -> None:
    _, clock, transport = exchange_and_transport(FaultRule(kind))

    async def play() -> None:
        with pytest.raises(error):
            await transport.post("/info", STATUS, 2)
        assert START + least_ms <= clock.now() <= START + least_ms + 200

    asyncio.run(play())


def test_an_answer_slower_than_the_timeout_is_none() -> None:
    _, clock, transport = exchange_and_transport(FaultRule("slow_answer", low_ms=3_000, high_ms=3_000))

    async def play() -> None:
        with pytest.raises(TimeoutError):
            await transport.post("/info", STATUS, 2)
        await transport.post("/info", STATUS, 5)
        assert clock.now() >= START + 5_000

    asyncio.run(play())


def test_tasks_share_virtual_time_and_wait_for_each_other_in_its_order() -> None:
    exchange, clock, transport = exchange_and_transport()
    story: list[tuple[str, int]] = []

    async def every(name: str, seconds: float) -> None:
        for _ in range(3):
            await clock.sleep(seconds)
            await transport.post("/info", STATUS, 5)
            story.append((name, (clock.now() - START) // 1_000))

    async def play() -> int:
        await asyncio.gather(every("slow", 600), every("quick", 250))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1_000):
                await asyncio.Event().wait()
        return clock.now()

    end = run_in_virtual_time(clock, play())
    assert [name for name, _ in story] == ["quick", "quick", "slow", "quick", "slow", "slow"]
    assert story[2] == ("slow", 600)
    assert end >= START + 2_800_000
    assert exchange.now == end


class FencedClient:
    """The smallest client that is right: one order per intent, never sent again, judged after its expiry by its cloid."""

    def __init__(self, exchange: FakeExchange, clock: VirtualClock, transport: InProcessTransport) -> None:
        self.exchange, self.clock, self.transport = exchange, clock, transport
        self.live: set[str] = set()
        self.dead: set[str] = set()
        self._nonce = 0

    async def info(self, **body: Any) -> Any:
        while True:
            try:
                status, text = await self.transport.post("/info", body, 5)
                if status == 200:
                    return json.loads(text)
            except (TimeoutError, ConnectionError, ValueError):
                pass
            await self.clock.sleep(1)

    async def place(self, name: str, order: dict[str, Any]) -> None:
        venue_time = (await self.info(**STATUS))["time"]
        self._nonce = max(self._nonce + 1, venue_time)
        expires = venue_time + 10_000
        action = {"type": "order", "orders": [order], "grouping": "na"}
        body = sign(self.exchange.ready.agent_private_key, action, self._nonce, expires)
        try:
            status, text = await self.transport.post("/exchange", body, 5)
            statuses = json.loads(text)["response"]["data"]["statuses"]
            if status == 200 and ({"resting", "filled"} & set(statuses[0])):
                self.live.add(name)
                return
        except (TimeoutError, ConnectionError, ValueError, KeyError, TypeError, IndexError):
            pass
        while (await self.info(**STATUS))["time"] <= expires + 5_000:  # beyond the lag of orderStatus too
            await self.clock.sleep(2)
        found = await self.info(type="orderStatus", user=self.exchange.ready.master_address, oid=name)
        alive = found["status"] == "order" and not found["order"]["status"].lower().endswith("rejected")
        (self.live if alive else self.dead).add(name)


def faulted_intents(count: int, seed: int) -> tuple[FencedClient, FakeExchange, FaultPlan]:
    rules = VenueRules(verify_every=50, step_ms=10_000, ip_weight=0)
    exchange, clock = FakeExchange(seed, listed("BTC"), rules=rules), VirtualClock()
    exchange.account().requests_cap_base = 10**9
    plan = FaultPlan(mixed_faults(0.5), seed)
    client = FencedClient(exchange, clock, InProcessTransport(exchange, clock, plan))

    async def play() -> None:
        for number in range(count):
            is_buy = number % 2 == 0
            mid = exchange.market("BTC").mid
            price = exchange.market("BTC").perp.on_grid(mid * (105 if is_buy else 95) / 100)
            order = wire_order(0, is_buy, str(price), "0.001", "Ioc", cloid=cloid(number + 1))
            await client.place(cloid(number + 1), order)

    asyncio.run(play())
    return client, exchange, plan


def check_intents(count: int, seed: int) -> None:
    client, exchange, plan = faulted_intents(count, seed)
    truth = exchange.truth()
    assert len(client.live) + len(client.dead) == count
    assert truth.duplicates() == {}
    assert truth.ghosts(client.dead) == set()
    assert truth.phantoms(client.live) == set()
    assert truth.identity_gap == 0
    assert sum(plan.counts.values()) > count / 4
    assert client.dead


def test_a_fenced_client_has_no_duplicates_ghosts_and_phantoms_under_the_mixed_faults() -> None:
    check_intents(400, 1)


@pytest.mark.proof
def test_a_fenced_client_has_none_in_many_thousand_intents() -> None:
    check_intents(20_000, 2)


def test_a_client_that_sends_again_is_found_out() -> None:
    exchange, clock, transport = exchange_and_transport(FaultRule("executed_no_answer", times=1), verify_every=0)
    order = wire_order("BTC", True, "69000", "0.01", "Ioc", cloid=cloid(1))

    async def play() -> None:
        for _ in range(2):
            body = sign(
                exchange.ready.agent_private_key, {"type": "order", "orders": [order], "grouping": "na"}, clock.now()
            )
            try:
                await transport.post("/exchange", body, 5)
            except TimeoutError:
                continue

    asyncio.run(play())
    assert exchange.truth().duplicates() == {cloid(1): 2}
    assert exchange.truth().ghosts({cloid(1)}) == {cloid(1)}
    assert exchange.truth().phantoms({cloid(2)}) == {cloid(2)}
