"""A live account on the fake exchange in virtual time: everything of the broker is real but the network and the key."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from typing import Any

from pitboss.core.instant import Instant
from pitboss.core.money import CONTEXT
from pitboss.signer.hyperliquid.client import HyperliquidSignature
from pitboss.signer.protocol import SigningRefusal
from pitboss.store.database import Database
from pitboss.testing.hyperliquid.exchange import FakeExchange
from pitboss.testing.hyperliquid.faults import FaultPlan, FaultRule
from pitboss.testing.hyperliquid.rules import VenueRules
from pitboss.testing.hyperliquid.seeded import SeededNumbers
from pitboss.testing.hyperliquid.streams import StreamHub
from pitboss.testing.hyperliquid.transport import InProcessTransport, VirtualClock, run_in_virtual_time
from pitboss.testing.hyperliquid.universe import LISTED
from pitboss.venues.perp.hyperliquid.account_stream import AccountStream
from pitboss.venues.perp.hyperliquid.account_watch import AccountWatch
from pitboss.venues.perp.hyperliquid.broker import HyperliquidBroker
from pitboss.venues.perp.hyperliquid.exchange_access import access_over
from pitboss.venues.perp.hyperliquid.live_account import account_line
from pitboss.venues.perp.hyperliquid.order_building import AccountSetup
from pitboss.venues.perp.hyperliquid.order_sender import FencedSender, StepLabel, no_step
from pitboss.venues.perp.hyperliquid.order_store import OrderStore, StoredOrders
from pitboss.venues.perp.hyperliquid.protection import Protector
from pitboss.venues.perp.hyperliquid.reconcile import MarkSource, Reconciler
from pitboss.venues.perp.hyperliquid.universe import read_universe
from pitboss.venues.perp.intents import Proposal
from pitboss.venues.perp.state import ReportedWorld, TradingTerms
from pitboss.venues.perp.world import OrderRequest
from venues.perp.hyperliquid.feed_scene import HubSocket
from venues.perp.hyperliquid.memory_orders import MemoryOrders

SYMBOLS = ("BTC", "ETH", "SOL")
DEPLOYMENT = "d1"
MESSAGE_S = 0.05
"""How long a message of a stream is on its way."""


class UncheckedSigner:
    """Signs everything with rising nonces and an empty signature, for an exchange that verifies none."""

    def __init__(self, now: Callable[[], Instant]) -> None:
        self._now = now
        self.last = 0
        self.refusal: SigningRefusal | None = None
        self.payloads: list[dict[str, Any]] = []

    async def sign(self, request_id: str, payload: dict[str, Any]) -> HyperliquidSignature | SigningRefusal:
        del request_id
        if self.refusal is not None:
            return self.refusal
        self.payloads.append(payload)
        self.last = max(self.last + 1, self._now())
        return HyperliquidSignature(self.last, payload["expires_after"], "0x1", "0x1", 27)


@dataclass
class Scene:
    """One exchange, and one process after the other that trades on it."""

    seed: int = 0
    rules: VenueRules = field(default_factory=lambda: VenueRules(verify_every=0))
    faults: tuple[FaultRule, ...] = ()
    database: Database | None = None
    deposit: Decimal = Decimal(100_000)
    clock_error_ms: int = 0
    """How far the clock of the trading machine is ahead of the exchange's."""
    daily_loss_halt_pct: Decimal = Decimal(5)
    drawdown_halt_pct: Decimal = Decimal(15)

    def __post_init__(self) -> None:
        self.make_exchange()
        self.signer = UncheckedSigner(self.now)
        self.memory = MemoryOrders()
        self.gate_reason = ""
        self.alarms: list[str] = []
        self.random = SeededNumbers(self.seed, "jitter")
        self.hub: StreamHub | None = None
        self.sockets: list[HubSocket] = []
        self.woken, self.reconnected = asyncio.Event(), asyncio.Event()
        self.start()

    def make_exchange(self) -> None:
        """Make the exchange and the way to it."""
        perps = tuple(perp for perp in LISTED if perp.name in SYMBOLS)
        self.exchange = FakeExchange(self.seed, perps, rules=self.rules, deposit=self.deposit)
        self.clock = VirtualClock()
        self.plan = FaultPlan(self.faults, self.seed)
        self.transport = InProcessTransport(self.exchange, self.clock, self.plan)

    def data_problem(self, symbol: str) -> str:
        """Why the market data forbids to open; without a feed there is no reason."""
        del symbol
        return ""

    def now(self) -> Instant:
        """The clock of the trading machine."""
        return self.clock.now() + self.clock_error_ms

    @property
    def store(self) -> OrderStore:
        return self.memory if self.database is None else StoredOrders(self.database, DEPLOYMENT, self.now)

    def start(self, on_step: Callable[[StepLabel], None] = no_step) -> None:
        """Start a new process: nothing but the store and the world survives."""
        access = access_over(self.transport, self.now, lambda: self.random.below(1_000) / 1_000, self.clock.sleep)
        self.line = account_line(access, self.exchange.ready.master_address, self.now, self.clock.sleep)
        universe = read_universe(self.exchange.info({"type": "meta"}))
        terms = TradingTerms(
            {symbol: listed.asset for symbol, listed in universe.items()},
            daily_loss_halt_pct=self.daily_loss_halt_pct,
            drawdown_halt_pct=self.drawdown_halt_pct,
        )
        self.setup = AccountSetup(DEPLOYMENT, SYMBOLS, universe, terms)
        self.budget, self.info, self.reader, self.venue_clock = (
            access.budget,
            access.info,
            self.line.reader,
            self.line.clock,
        )
        self.sender = FencedSender(
            "testnet", self.store, self.signer, self.line.exchange, self.reader, self.venue_clock, self.now, on_step
        )
        self.protector = Protector(self.setup, self.sender, self.now, on_step, self.alarms.append)
        self.marks = MarkSource(self.info, self.setup, self.now)
        self.reconciler = Reconciler(
            self.setup, self.sender, self.protector, self.marks, self.now, self.clock.sleep, on_step
        )
        self.broker = HyperliquidBroker(
            self.setup, self.sender, self.reconciler, self.marks, self.budget, lambda: self.gate_reason, self.now,
            self.data_problem,
        )  # fmt: skip

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a test in virtual time, with the streams of the account followed and its positions watched."""

        async def main() -> None:
            async with self.following():
                with localcontext(CONTEXT):
                    await work

        run_in_virtual_time(self.clock, main())

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Follow the account of the present process."""
        self.hub = self.hub or StreamHub(self.transport.gateway)
        jitter = SeededNumbers(self.seed, "stream")
        self.stream = AccountStream(
            self._connect,
            self.exchange.ready.master_address,
            self.reconciler.news,
            elapsed=lambda: self.clock.micros / 1_000_000,
            random=lambda: jitter.below(1_000) / 1_000,
        )
        async with self.stream.followed(AccountWatch(self.reconciler, self.woken.set, self.now).run()):
            yield

    async def _connect(self) -> HubSocket:
        await asyncio.sleep(MESSAGE_S)
        if self.transport.gateway.conditions.outage() is not None:
            raise ConnectionError("refused")
        assert self.hub is not None
        if self.sockets:
            self.reconnected.set()
        self.sockets.append(HubSocket(self.hub, MESSAGE_S))
        return self.sockets[-1]

    async def pause(self, seconds: float) -> None:
        """Wait as the runner does: until the account has news, and no longer than this."""
        if self.hub is None:
            await self.clock.sleep(seconds)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.woken.wait()
        self.woken.clear()

    async def world(self) -> ReportedWorld:
        """The world of the account, read for the first time."""
        return (await self.broker.resolve(None)).world

    def position(self, symbol: str) -> Decimal:
        """What the account really has."""
        return self.exchange.truth().positions.get(symbol, Decimal(0))

    def stops(self, symbol: str) -> list[Decimal]:
        """The sizes of the stops that really rest."""
        return [
            order.remaining
            for order in self.exchange.account().open_orders.values()
            if order.coin == symbol and order.is_trigger and order.request.tpsl == "sl"
        ]


def proposal_of(key: str) -> Proposal:
    """A distinct proposal for each key; the broker derives the ids of orders from it."""
    return Proposal("open_long", reason=key)


def open_request(symbol: str = "ETH", side: int = 1, size: str = "1", key: str = "k1", **fields: Any) -> OrderRequest:
    """An open that the engine has allowed."""
    return OrderRequest(
        "market", symbol, side, Decimal(size), fields.pop("leverage", 3), proposal=proposal_of(key), **fields
    )


def close_request(world: ReportedWorld, symbol: str = "ETH", key: str = "close") -> OrderRequest:
    """A close of the whole position."""
    position = world.positions[symbol]
    return OrderRequest("close", symbol, -position.side, abs(position.size), proposal=proposal_of(key))


def run_in_context(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine under the decimal context of the engine."""
    with localcontext(CONTEXT):
        asyncio.run(work)
