"""The broker with the real signing process behind it, on an exchange that verifies every signature."""

import asyncio
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

from pitboss.core.money import CONTEXT
from pitboss.signer.hyperliquid.client import HyperliquidSignature, read_signature
from pitboss.signer.hyperliquid.policy import HyperliquidPolicy
from pitboss.signer.journal import SigningJournal
from pitboss.signer.protocol import SigningRefusal
from pitboss.signer.request_handler import RequestHandler
from pitboss.signer.schemes.hyperliquid_action import HyperliquidScheme
from pitboss.testing.hyperliquid.rules import VenueRules
from signer.hyperliquid.agent_signer import line
from venues.perp.hyperliquid.live_scene import Scene, close_request, open_request
from venues.perp.hyperliquid.test_fault_table import pass_updates


class HandledSigner:
    """Asks the handler of a signing process directly, without its socket."""

    def __init__(self, scene: Scene, folder: Path, order_usd: int = 10_000) -> None:
        policy = HyperliquidPolicy.model_validate(
            {
                "version": 1,
                "scheme": "hyperliquid_action",
                "network": "testnet",
                "account": scene.exchange.ready.master_address,
                "caps": {
                    "order_notional_usd": order_usd,
                    "opened_notional_per_day_usd": 50_000,
                    "orders_per_minute": 20,
                    "orders_per_day": 200,
                },
                "assets": [
                    {
                        "index": listed.index,
                        "name": symbol,
                        "leverage": 5,
                        "lowest_price": Decimal(1),
                        "highest_price": Decimal(1_000_000 if symbol == "BTC" else 5_000),
                    }
                    for symbol, listed in scene.setup.universe.items()
                ],
            }
        )
        key = bytes.fromhex(scene.exchange.ready.agent_private_key[2:])
        self.journal = SigningJournal(folder / "journal.db")
        self.handler = RequestHandler(key, HyperliquidScheme(policy), self.journal, scene.now)

    async def sign(self, request_id: str, payload: dict[str, Any]) -> HyperliquidSignature | SigningRefusal:
        reply = self.handler.handle(line(request_id, payload))
        return read_signature(reply) if reply["ok"] else SigningRefusal(reply["code"], reply["message"])


def test_what_the_broker_sends_is_what_the_signer_signs_and_the_exchange_accepts(tmp_path: Path):
    async def work() -> None:
        scene = Scene(3, rules=VenueRules(verify_every=1))
        scene.signer = HandledSigner(scene, tmp_path)  # type: ignore[assignment]
        scene.start()
        world = await scene.world()
        stop, take_profit = world.marks["ETH"] * Decimal("0.97"), world.marks["ETH"] * Decimal("1.05")
        placed = await scene.broker.submit(world, open_request(stop=stop, take_profit=take_profit), scene.now())
        assert not placed.refusal
        assert scene.position("ETH") == 1
        assert scene.stops("ETH") == [Decimal(1)]
        world = (await scene.broker.submit(placed.world, open_request(key="k2", stop=stop), scene.now())).world
        world = await pass_updates(scene, world, 3)
        assert scene.stops("ETH") == [Decimal(2)]
        world = (await scene.broker.submit(world, close_request(world), scene.now())).world
        await pass_updates(scene, world, 3)
        assert (scene.position("ETH"), scene.stops("ETH")) == (0, [])
        assert {action.outcome for action in scene.exchange.truth().actions} == {"ok"}
        assert {action.signer for action in scene.exchange.truth().actions} == {scene.exchange.ready.agent_address}

    with localcontext(CONTEXT):
        asyncio.run(work())


def test_what_the_signer_refuses_never_leaves(tmp_path: Path):
    async def work() -> None:
        scene = Scene(3, rules=VenueRules(verify_every=1))
        scene.signer = HandledSigner(scene, tmp_path, order_usd=100)  # type: ignore[assignment]
        scene.start()
        scene.exchange.account().leverage["ETH"] = (True, 3)
        placed = await scene.broker.submit(await scene.world(), open_request(), scene.now())
        assert placed.refusal.startswith("the signer refuses")
        assert scene.exchange.truth().actions == ()
        assert {order.state for order in scene.store.recent(0)} == {"refused"}

    with localcontext(CONTEXT):
        asyncio.run(work())
