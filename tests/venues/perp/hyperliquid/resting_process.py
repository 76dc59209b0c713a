"""A host at work on a live deployment that has a position with its stop, and an order that rests; it goes on until it is killed.

python resting_process.py HOME
"""

import asyncio
import os
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.jobs.live_host import HostSettings, LiveHost
from pitboss.venues.perp import live as perp_live
from pitboss.venues.perp.hyperliquid.broker import HyperliquidBroker
from pitboss.venues.perp.intents import Proposal
from pitboss.venues.perp.world import OrderRequest

MAKE_BROKER = perp_live.make_broker
TRIES, PAUSE_S = 50, 0.2


async def with_orders(*arguments: Any) -> HyperliquidBroker:
    """Open the account, and order in it before its first tick."""
    broker = await MAKE_BROKER(*arguments)
    world = (await broker.resolve(None)).world
    at = broker._now()
    limit = (world.marks["BTC"] * Decimal("0.9")).quantize(Decimal(1))
    for request in (
        OrderRequest("market", "ETH", 1, Decimal("0.5"), 3, proposal=Proposal("open_long", reason="k1")),
        OrderRequest("limit", "BTC", 1, Decimal("0.01"), 3, limit=limit, proposal=Proposal("open_long", reason="k2")),
    ):
        world = await submit_until_accepted(broker, world, request, at)
    print("ordered", flush=True)
    return broker


async def submit_until_accepted(broker: HyperliquidBroker, world: Any, request: OrderRequest, at: int) -> Any:
    """Order until it is accepted: on a busy machine prices can be too old at first. Ends the process if it never is."""
    refusal = ""
    for _ in range(TRIES):
        placed = await broker.submit(world, request, at)
        if not placed.refusal:
            return placed.world
        refusal = placed.refusal
        await asyncio.sleep(PAUSE_S)
        world = (await broker.resolve(world)).world
    print(refusal, file=sys.stderr, flush=True)
    os._exit(1)


def main(home: str) -> None:
    perp_live.make_broker = with_orders
    with open_workspace(load_settings(Path(home))) as workspace:
        asyncio.run(LiveHost(workspace, HostSettings()).run())


if __name__ == "__main__":
    main(*sys.argv[1:])
