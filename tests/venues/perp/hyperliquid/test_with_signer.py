"""The broker and the signing scheme agree: under faults nothing that the broker decides is refused or halts, and the exchange takes every signature."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from example_counts import seeds
from pitboss.signer.hyperliquid import read_action
from pitboss.signer.hyperliquid.client import HyperliquidSignature, read_signature
from pitboss.signer.hyperliquid.policy import HyperliquidPolicy
from pitboss.signer.journal import SigningJournal
from pitboss.signer.protocol import SigningRefusal
from pitboss.signer.request_handler import RequestHandler
from pitboss.signer.schemes.hyperliquid_action import HyperliquidScheme
from pitboss.testing.hyperliquid.faults import mixed_faults
from pitboss.testing.hyperliquid.rules import VenueRules
from pitboss.venues.perp.hyperliquid.order_sender import CANCELS_AT_ONCE
from signer.hyperliquid.agent_signer import line
from venues.perp.hyperliquid.faulted_run import Tally, run_intents
from venues.perp.hyperliquid.live_scene import SYMBOLS, Scene, open_request


class HandlerSigner:
    """The request handler of a signing process, asked in this process."""

    def __init__(self, folder: Path, scene: Scene, **caps: Any) -> None:
        ready = scene.exchange.ready
        content = {
            "version": 1,
            "scheme": "hyperliquid_action",
            "network": "testnet",
            "account": ready.master_address,
            "caps": {
                "order_notional_usd": 10_000,
                "opened_notional_per_day_usd": 10**9,
                "orders_per_minute": 1_000,
                "orders_per_day": 100_000,
                **caps,
            },
            "assets": [
                {
                    "index": scene.setup.universe[symbol].index,
                    "name": symbol,
                    "leverage": 10,
                    "lowest_price": scene.exchange.state.markets[symbol].mark / 2,
                    "highest_price": scene.exchange.state.markets[symbol].mark * 2,
                }
                for symbol in SYMBOLS
            ],
        }
        self.scheme = HyperliquidScheme(HyperliquidPolicy.model_validate(content))
        self.journal = SigningJournal(folder / "journal.db")
        self.key = bytes.fromhex(ready.agent_private_key.removeprefix("0x"))
        self.handler = RequestHandler(self.key, self.scheme, self.journal, scene.now)
        self.refusals: list[SigningRefusal] = []

    async def sign(self, request_id: str, payload: dict[str, Any]) -> HyperliquidSignature | SigningRefusal:
        reply = self.handler.handle(line(request_id, payload))
        if reply["ok"]:
            return read_signature(reply)
        self.refusals.append(SigningRefusal(reply["code"], reply["message"]))
        return self.refusals[-1]


def scene_with_signer(folder: Path, seed: int, faults: Any = (), **caps: Any) -> tuple[Scene, HandlerSigner]:
    scene = Scene(seed, VenueRules(verify_every=1), faults)
    signer = HandlerSigner(folder, scene, **caps)
    scene.signer = signer  # pyright: ignore[reportAttributeAccessIssue]
    scene.start()
    return scene, signer


@pytest.mark.parametrize("seed", seeds(1, 2, quick=1))
def test_under_faults_the_signer_refuses_nothing_that_was_decided_and_never_halts(tmp_path: Path, seed: int) -> None:
    scene, signer = scene_with_signer(tmp_path, seed, mixed_faults(0.3))
    tally = Tally()
    asyncio.run(run_intents(scene, 25, tally))
    assert tally.is_clean
    assert tally.outcomes["placed"] >= 8
    assert signer.refusals == []
    assert signer.journal.halts() == []


def test_a_cap_of_the_signer_is_a_refusal_of_the_broker_and_leaves_no_order(tmp_path: Path) -> None:
    async def go() -> None:
        scene, signer = scene_with_signer(tmp_path, 3, orders_per_day=1)
        world = await scene.world()
        first = await scene.broker.submit(world, open_request(size="0.1"), scene.now())
        assert first.refusal == ""
        second = await scene.broker.submit(first.world, open_request("BTC", size="0.01", key="k2"), scene.now())
        assert "S25_ORDER_RATE" in second.refusal
        assert scene.position("BTC") == Decimal(0)
        assert [refusal.code for refusal in signer.refusals] == ["S25_ORDER_RATE"]

    asyncio.run(go())


def test_more_orders_than_one_action_may_cancel_are_all_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_action.MOST_CANCELS >= CANCELS_AT_ONCE
    monkeypatch.setattr(read_action, "MOST_CANCELS", CANCELS_AT_ONCE)

    async def go() -> None:
        scene, signer = scene_with_signer(tmp_path, 4)
        world = await scene.world()
        fields = {"kind": "limit", "limit": Decimal(40_000), "stop": Decimal(30_000)}
        for number in range(CANCELS_AT_ONCE + 1):
            request = replace(open_request("BTC", size="0.0003", key=f"k{number}"), **fields)
            placed = await scene.broker.submit(world, request, scene.now())
            assert not placed.refusal, placed.refusal
            world = placed.world
            await scene.clock.sleep(20)
            world = (await scene.broker.resolve(world)).world
        assert len(scene.exchange.account().open_orders) == CANCELS_AT_ONCE + 1
        await scene.broker.withdraw()
        assert len(scene.exchange.account().open_orders) == 0
        assert signer.refusals == []

    asyncio.run(go())
