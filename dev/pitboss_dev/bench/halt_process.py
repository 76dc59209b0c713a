"""A live deployment on the fake exchange that sends orders without a pause and is stopped again and again.

    python -m pitboss_dev.bench.halt_process HOME COUNT

The host, the broker, the stored orders, the signing socket and HTTP are the real ones; the rate limits are lifted, so that an order
is always on its way. The exchange and the signer are tasks of the same event loop, which makes the figures larger. `COUNT` times each, another thread stores a halt, as the watchdog does, or a person's command. Prints for each how
many seconds after that the last new order left; 0 if none did.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

from pitboss.bootstrap.machine import SystemClock, unit_random
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.trading_accounts import TradingAccount, add_account
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core.errors import TransientError
from pitboss.core.instant import HOUR_MS
from pitboss.jobs.live_host import HostSettings, LiveHost
from pitboss.runs.deployments import deploy
from pitboss.runs.live_deployment import DeployRequest, LiveDeployment
from pitboss.runs.venues import venue_named
from pitboss.signer.hyperliquid.policy import HyperliquidPolicy
from pitboss.signer.journal import SigningJournal
from pitboss.signer.request_handler import RequestHandler
from pitboss.signer.schemes.hyperliquid_action import HyperliquidScheme
from pitboss.signer.server import serving_signer
from pitboss.skill.load import read_skill
from pitboss.testing.hyperliquid.exchange import FakeExchange, ReadyAccount
from pitboss.testing.hyperliquid.rules import VenueRules
from pitboss.testing.hyperliquid.server import serving
from pitboss.testing.hyperliquid.universe import LISTED
from pitboss.venues.perp import live as perp_live
from pitboss.venues.perp.hyperliquid.broker import HyperliquidBroker
from pitboss.venues.perp.hyperliquid.live_account import AccountLine
from pitboss.venues.perp.intents import Proposal
from pitboss.venues.perp.testing import plain_skill
from pitboss.venues.perp.world import OrderRequest

NOW = SystemClock().now
LIMIT_S = 600
SYMBOL = "BTC"
BEFORE_S, AFTER_S = 0.2, 0.05
"""How long orders flow at most before each stop, and how long is looked for one after it has taken effect."""
MANY = 1_000_000


class Orders:
    """Sends orders that rest far from the market, one after the other, and notes when each left."""

    def __init__(self) -> None:
        self.broker: HyperliquidBroker | None = None
        self.sent_s: list[float] = []

    def watch(self) -> None:
        """Take over the broker that the deployment opens."""
        make_broker = perp_live.make_broker

        async def taken(live: LiveDeployment, line: AccountLine, *more: Any) -> HyperliquidBroker:
            line.budget.wait_ms = lambda kind, weight, now: 0
            line.exchange.actions.on_read(MANY, live.workspace.now())
            send = line.exchange.send

            async def timed(action: Any, *rest: Any) -> Any:
                if action["type"] == "order" and not all(order["r"] for order in action["orders"]):
                    self.sent_s.append(time.monotonic())
                return await send(action, *rest)

            line.exchange.send = timed  # pyright: ignore[reportAttributeAccessIssue]
            self.broker = await make_broker(live, line, *more)
            return self.broker

        perp_live.make_broker = taken

    async def flow(self) -> None:
        """Order and cancel for ever."""
        number, world = 0, None
        while True:
            await asyncio.sleep(0)
            number += 1
            broker = self.broker
            if broker is None:
                await asyncio.sleep(BEFORE_S)
                continue
            with suppress(TransientError):
                world = world or (await broker.resolve(None)).world
                limit = (world.marks[SYMBOL] * Decimal("0.9")).quantize(Decimal(1))
                proposal = Proposal("open_long", reason=f"bench{number}")
                request = OrderRequest("limit", SYMBOL, 1, Decimal("0.01"), 1, limit=limit, proposal=proposal)
                placed = await broker.submit(world, request, NOW())
                if placed.refusal:
                    world = None
                elif placed.order_id is not None:
                    await broker.cancel(placed.world, placed.order_id, NOW())


class Stops:
    """Stops the deployment and lets it go on; returns how late the last new order left."""

    def __init__(self, workspace: Workspace, host: LiveHost, deployment_id: str, orders: Orders) -> None:
        self._workspace = workspace
        self._host = host
        self._id = deployment_id
        self._orders = orders
        self._random = unit_random()

    @property
    def state(self) -> str:
        hosted = self._host.hosted.get(self._id)
        return "" if hosted is None else hosted.run.control.state

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(LIMIT_S):
            while not holds():  # noqa: ASYNC110 - a loop that looks is no part of what is measured
                await asyncio.sleep(0.005)

    async def stop(self, store: Callable[[], object]) -> float:
        """Store what stops it, in another thread; seconds from then to the last new order."""
        count = len(self._orders.sent_s)
        await self.until(lambda: len(self._orders.sent_s) >= count + 2)
        await asyncio.sleep(BEFORE_S * self._random())
        began_s = time.monotonic()
        await asyncio.to_thread(store)
        await self.until(lambda: self.state not in ("running", ""))
        await asyncio.sleep(AFTER_S)
        last_s = max(0.0, self._orders.sent_s[-1] - began_s)
        self._workspace.deployments.send(self._id, "resume", "measured", "bench")
        await self.until(lambda: self.state == "running")
        return last_s

    def halt(self) -> Awaitable[float]:
        """A halt that another process stores."""
        return self.stop(lambda: self._workspace.deployments.halt(self._id, "watchdog", "measured"))

    def command(self) -> Awaitable[float]:
        """A person's command."""
        return self.stop(lambda: self._workspace.deployments.send(self._id, "pause", "measured", "bench"))


@asynccontextmanager
async def signing(home: Path, account: ReadyAccount) -> AsyncIterator[None]:
    """The signer of the account: it holds a key of the fake exchange."""
    folder = home / "signer"
    folder.mkdir(mode=0o700)
    caps = dict.fromkeys(("order_notional_usd", "orders_per_minute", "orders_per_day"), MANY)
    policy = HyperliquidPolicy.model_validate(
        {
            "version": 1,
            "scheme": "hyperliquid_action",
            "network": "testnet",
            "account": account.master_address,
            "caps": {**caps, "opened_notional_per_day_usd": MANY * MANY},
            "assets": [{"index": 0, "name": SYMBOL, "leverage": 10, "lowest_price": 1, "highest_price": MANY}],
        }
    )
    journal = SigningJournal(folder / "journal.db")
    key = bytes.fromhex(account.agent_private_key.removeprefix("0x"))
    try:
        async with serving_signer(RequestHandler(key, HyperliquidScheme(policy), journal, NOW), folder / "signer.sock"):
            yield
    finally:
        journal.close()


async def measure(home: Path, count: int) -> dict[str, Any]:
    """Host one live deployment and stop it `count` times in each way."""
    perps = tuple(perp for perp in LISTED if perp.name == SYMBOL)
    exchange = FakeExchange(1, perps, NOW(), VenueRules(history_ms=HOUR_MS, ip_weight=0))
    account = exchange.ready
    orders = Orders()
    orders.watch()
    async with serving(exchange, now=NOW) as server, signing(home, account):
        (home / "settings.toml").write_text(f'hyperliquid_url = "{server.url}"\nexecutor = "none"\n', "utf-8")
        add_account(home, "main", TradingAccount(address=account.master_address, network="testnet"))
        with open_workspace(load_settings(home)) as workspace:
            skill = read_skill(plain_skill((SYMBOL,), "5m"), venue_named("perp").skill_type())
            deployment = deploy(workspace, DeployRequest(skill=skill, mode="live", account="main"))
            host = LiveHost(workspace, HostSettings())
            tasks = asyncio.create_task(host.run()), asyncio.create_task(orders.flow())
            stops = Stops(workspace, host, deployment.id, orders)
            result = {
                "halts": [await stops.halt() for _ in range(count)],
                "commands": [await stops.command() for _ in range(count)],
                "orders": len(orders.sent_s),
            }
            tasks[1].cancel()
            host.stop()
            await asyncio.gather(*tasks, return_exceptions=True)
    return result


def main(home: str, count: str) -> None:
    """Measure, and print one JSON document."""
    print(json.dumps(asyncio.run(measure(Path(home), int(count)))))


if __name__ == "__main__":
    main(*sys.argv[1:3])
