"""A live deployment on the fake exchange with real sockets: HTTP to the exchange, and two signing processes with keys of their own."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from pitboss.bootstrap.machine import SystemClock, unit_random
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.trading_accounts import TradingAccount, add_account
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core.instant import Instant
from pitboss.runs.deployment_run import DeploymentRun
from pitboss.runs.deployments import deploy
from pitboss.runs.live_deployment import DeployRequest, LiveDeployment, read_deployment
from pitboss.signer.hyperliquid.policy import HyperliquidPolicy
from pitboss.signer.journal import SigningJournal
from pitboss.signer.request_handler import RequestHandler
from pitboss.signer.schemes.hyperliquid_action import HyperliquidScheme
from pitboss.signer.server import serving_signer
from pitboss.skill.load import check_text
from pitboss.store import sealed_rows as rows
from pitboss.store.deployments import Deployment
from pitboss.store.schema import deployments, runs
from pitboss.testing.hyperliquid.exchange import FakeExchange, make_ready_account
from pitboss.testing.hyperliquid.rules import VenueRules
from pitboss.testing.hyperliquid.server import FakeServer, serving
from pitboss.testing.hyperliquid.universe import LISTED
from pitboss.venues.perp.hyperliquid.broker import HyperliquidBroker
from pitboss.venues.perp.hyperliquid.exchange_access import open_access
from pitboss.venues.perp.hyperliquid.live_account import account_line, make_broker
from pitboss.venues.perp.hyperliquid.order_store import OrderStore, StoredOrders
from pitboss.venues.perp.hyperliquid.universe import read_universe
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.state import TradingTerms
from pitboss.venues.perp.venue import VENUE
from pitboss.venues.perp.world import OrderRequest
from venues.perp.hyperliquid.live_scene import SYMBOLS, proposal_of

NOW = SystemClock().now
VERIFYING = VenueRules(verify_every=1)
NO_OPENS: dict[str, Any] = {
    "order_notional_usd": 0,
    "opened_notional_per_day_usd": 0,
    "orders_per_minute": 0,
    "orders_per_day": 0,
}
OPENS: dict[str, Any] = {
    "order_notional_usd": 5_000,
    "opened_notional_per_day_usd": 100_000,
    "orders_per_minute": 100,
    "orders_per_day": 1_000,
}


def policy(exchange: FakeExchange, caps: dict[str, Any], **more: Any) -> HyperliquidPolicy:
    universe = read_universe(exchange.info({"type": "meta"}))
    assets = [
        {
            "index": universe[symbol].index,
            "name": symbol,
            "leverage": 10,
            "lowest_price": exchange.state.markets[symbol].mark / 2,
            "highest_price": exchange.state.markets[symbol].mark * 2,
        }
        for symbol in SYMBOLS
    ]
    content = {"version": 1, "scheme": "hyperliquid_action", "network": "testnet", "caps": caps, "assets": assets}
    return HyperliquidPolicy.model_validate({**content, "account": exchange.ready.master_address, **more})


@dataclass
class GuardedScene:
    """The workspace, the exchange, and one live deployment on it."""

    workspace: Workspace
    exchange: FakeExchange
    server: FakeServer
    deployment: Deployment
    account: TradingAccount
    stack: AsyncExitStack
    home: Path
    signer: RequestHandler

    @property
    def store(self) -> OrderStore:
        """The orders of the deployment."""
        return StoredOrders(self.workspace.database, self.deployment.id, self.workspace.now)

    async def broker(self, process: DeploymentRun | None = None) -> HyperliquidBroker:
        """The broker of the deployment's process."""
        access = await self.stack.enter_async_context(open_access(self.server.url, self.workspace.now, unit_random()))
        line = account_line(access, self.account.address, self.workspace.now)
        universe = read_universe(self.exchange.info({"type": "meta"}))
        terms = TradingTerms({symbol: universe[symbol].asset for symbol in SYMBOLS}, daily_loss_halt_pct=Decimal(5))
        await line.clock.read()
        return await make_broker(self.live(process), line, self.account, SYMBOLS, terms)

    def live(self, process: DeploymentRun | None = None) -> LiveDeployment:
        """The deployment as its venue opens it, in a process or without one."""
        request = VENUE.request_of(self.workspace.runs.get(self.deployment.run_id).params)
        ways = {} if process is None else process.ways()
        return read_deployment(self.workspace, self.deployment, PerpSkill, request, **ways)

    async def trade(self) -> None:
        """What a process leaves behind: a position in ETH with its stop, and an order in BTC that rests."""
        self.epoch = self.workspace.runs.claim(self.deployment.run_id, into="running")
        broker = await self.broker()
        world = (await broker.resolve(None)).world
        at = self.workspace.now()
        market = OrderRequest("market", "ETH", 1, Decimal("0.5"), 3, proposal=proposal_of("k1"))
        placed = await broker.submit(world, market, at)
        assert not placed.refusal, placed.refusal
        limit = (self.exchange.state.markets["BTC"].mark * Decimal("0.9")).quantize(Decimal(1))
        resting = OrderRequest("limit", "BTC", 1, Decimal("0.01"), 3, limit=limit, proposal=proposal_of("k2"))
        placed = await broker.submit(placed.world, resting, at)
        assert not placed.refusal, placed.refusal
        assert self.open_orders() == {("BTC", "limit"), ("ETH", "stop")}

    def open_orders(self) -> set[tuple[str, str]]:
        """What really rests: the coin, and whether it is a limit order or a stop."""
        return {
            (order.coin, "stop" if order.is_trigger else "limit")
            for order in self.exchange.account().open_orders.values()
        }

    def position(self, symbol: str) -> Decimal:
        return self.exchange.truth().positions.get(symbol, Decimal(0))

    def age(self, ms: int) -> None:
        """Let the last heartbeat and the last change of the deployment be so long ago."""
        database = self.workspace.database
        with database.write() as connection:
            for table, key, column in (
                (runs, self.deployment.run_id, "heartbeat_at"),
                (deployments, self.deployment.id, "changed_at"),
            ):
                row = rows.fetch(connection, table, {"id": key}, lock=True)
                assert row is not None
                rows.change(connection, table, row, {column: database.now(connection) - ms})

    def stored(self) -> Deployment:
        return self.workspace.deployments.get(self.deployment.id)


def deployed_example(workspace: Workspace) -> Deployment:
    skill = check_text(VENUE.examples()["breakout-hybrid.yaml"], ".yaml", PerpSkill).skill
    assert skill is not None
    return deploy(workspace, DeployRequest(skill=skill, mode="live", account="main", model="policy/momentum"))


@asynccontextmanager
async def guarded_scene(
    home: Path,
    seed: int = 1,
    watchdog_caps: dict[str, Any] | None = None,
    trading_caps: dict[str, Any] | None = None,
    shared_key: bool = False,
    deployed: Callable[[Workspace], Deployment] = deployed_example,
    now: Callable[[], Instant] = NOW,
    rules: VenueRules = VERIFYING,
    deposit: Decimal = Decimal(10_000),
    **policy_fields: Any,
) -> AsyncIterator[GuardedScene]:
    perps = tuple(perp for perp in LISTED if perp.name in SYMBOLS)
    exchange = FakeExchange(seed, perps, now(), rules, deposit=deposit)
    second = exchange.ready if shared_key else make_ready_account(seed, "watchdog")
    if not shared_key:
        exchange.approve_agent(exchange.ready.master_address, second.agent_address, "watchdog")
    handlers: dict[str, RequestHandler] = {}
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serving(exchange, now=now))
        (home / "settings.toml").write_text(f'hyperliquid_url = "{server.url}"\n')
        account = TradingAccount(address=exchange.ready.master_address, network="testnet")
        add_account(home, "main", account)
        for folder, key, caps in (
            ("signer", exchange.ready.agent_private_key, trading_caps or OPENS),
            ("watchdog", second.agent_private_key, NO_OPENS if watchdog_caps is None else watchdog_caps),
        ):
            (home / folder).mkdir(mode=0o700)
            scheme = HyperliquidScheme(policy(exchange, caps, **policy_fields))
            journal = SigningJournal(home / folder / "journal.db")
            stack.callback(journal.close)
            handler = handlers[folder] = RequestHandler(bytes.fromhex(key.removeprefix("0x")), scheme, journal, now)
            await stack.enter_async_context(serving_signer(handler, home / folder / "signer.sock"))
        workspace = stack.enter_context(open_workspace(load_settings(home)))
        deployment = deployed(workspace)
        yield GuardedScene(workspace, exchange, server, deployment, account, stack, home, handlers["signer"])


def run_in_scene(home: Path, story: Callable[[GuardedScene], Awaitable[None]], **options: Any) -> None:
    """Run a coroutine on a new scene; `options` are those of `guarded_scene`."""

    async def main() -> None:
        async with guarded_scene(home, **options) as scene:
            await story(scene)

    asyncio.run(main())
