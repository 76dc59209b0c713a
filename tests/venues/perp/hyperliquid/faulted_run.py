"""Intents on a faulty exchange, one after the other, and what a witness of the exchange says about each of them afterwards."""

from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from typing import Protocol

from pitboss.core.errors import TransientError
from pitboss.core.money import CONTEXT
from pitboss.testing.hyperliquid.exchange import FakeExchange
from pitboss.testing.hyperliquid.seeded import SeededNumbers
from pitboss.venues.perp.hyperliquid.order_store import LiveOrder, OrderStore
from pitboss.venues.perp.state import ReportedWorld
from pitboss.venues.perp.world import OrderRequest
from venues.perp.hyperliquid.live_scene import SYMBOLS, Scene, close_request, proposal_of

BUSY_S, IDLE_S = 1.0, 3.0
"""Time between two updates of the source: while an entry may be filled, and otherwise."""
LEAST_MS, MOST_MS = 24_000, 120_000
"""Time between two intents: they are many more than an agent is allowed, and as many as the limits of the exchange bear."""


@dataclass
class Tally:
    """What happened to the intents of a run."""

    intents: int = 0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    refusals: Counter[str] = field(default_factory=Counter[str])
    duplicates: int = 0
    ghosts: int = 0
    phantoms: int = 0
    unprotected_ms: list[int] = field(default_factory=list[int])
    """For each time a position grew or lost its stop, how long it was without a whole one; 0 if it was not."""
    unsettled: int = 0

    @property
    def uncovered_ms(self) -> list[int]:
        """How long positions were without a whole stop, each time that they were."""
        return [each for each in self.unprotected_ms if each]

    @property
    def is_clean(self) -> bool:
        return not (self.duplicates or self.ghosts or self.phantoms or self.unsettled)


class JudgedScene(Protocol):
    """A scene whose orders can be compared with the truth."""

    exchange: FakeExchange

    @property
    def store(self) -> OrderStore: ...


class StopsMonitor:
    """Measures, whenever time moves, for how long a position has had no stops of its size."""

    def __init__(self, scene: Scene, tally: Tally) -> None:
        self._scene, self._tally = scene, tally
        self._since: dict[str, int] = {}
        self._sizes: dict[str, Decimal] = {}
        scene.clock.follow(self.look)

    def look(self, now: int) -> None:
        account = self._scene.exchange.account()
        covered: dict[str, Decimal] = {}
        for order in account.open_orders.values():
            if order.is_trigger and order.request.tpsl == "sl":
                covered[order.coin] = covered.get(order.coin, Decimal(0)) + order.remaining
        for symbol in SYMBOLS:
            position = account.positions.get(symbol)
            size = Decimal(0) if position is None else abs(position.size)
            has_grown = size > self._sizes.get(symbol, Decimal(0))
            self._sizes[symbol] = size
            if covered.get(symbol, Decimal(0)) < size:
                self._since.setdefault(symbol, now)
            elif symbol in self._since:
                self._tally.unprotected_ms.append(now - self._since.pop(symbol))
            elif has_grown:
                self._tally.unprotected_ms.append(0)


async def run_intents(scene: Scene, count: int, tally: Tally) -> None:
    """Let the broker execute random intents; each is settled before the next is judged by what really happened."""
    numbers = SeededNumbers(scene.seed, "intents")
    StopsMonitor(scene, tally)
    world = await first_world(scene)
    with localcontext(CONTEXT):
        for number in range(count):
            tally.intents += 1
            request = random_request(scene, world, numbers, f"k{number}")
            placed = await scene.broker.submit(world, request, scene.now())
            tally.outcomes["refused" if placed.refusal else "placed"] += 1
            if placed.refusal:
                tally.refusals[placed.refusal.split(":")[0][:40]] += 1
            world = await settle_orders(scene, placed.world, tally)
        check_orders(scene, tally)


def random_request(scene: Scene, world: ReportedWorld, numbers: SeededNumbers, key: str) -> OrderRequest:
    symbol = SYMBOLS[numbers.below(len(SYMBOLS))]
    position, mark = world.positions.get(symbol), world.marks[symbol]
    asset = scene.setup.universe[symbol].asset
    if position is not None and numbers.chance(0.6):
        if numbers.chance(0.3):
            size = max(asset.lot, asset.lot * int(abs(position.size) / asset.lot / 2))
            return OrderRequest("reduce", symbol, -position.side, size, proposal=proposal_of(key))
        return close_request(world, symbol, key)
    side = position.side if position is not None else (1 if numbers.chance(0.5) else -1)
    size = asset.lot * int(Decimal(numbers.between(200, 2_000)) / mark / asset.lot)
    stop = asset.round_price(mark * (1 - side * Decimal(numbers.between(10, 60)) / 1_000), up=side > 0)
    take_profit = asset.round_price(mark * (1 + side * Decimal(numbers.between(20, 90)) / 1_000), up=side < 0)
    limit = None
    if numbers.chance(0.25):
        limit = asset.round_price(mark * (1 - side * Decimal(numbers.between(0, 5)) / 10_000), up=side < 0)
    return OrderRequest(
        "market" if limit is None else "limit", symbol, side, size, numbers.between(1, 3), limit,
        stop if numbers.chance(0.8) else None, take_profit if numbers.chance(0.4) else None, "", proposal_of(key),
    )  # fmt: skip


async def first_world(scene: Scene) -> ReportedWorld:
    while True:
        try:
            world = (await scene.broker.resolve(None)).world
        except TransientError:
            world = None
        if world is not None and world.marks:
            return world
        await scene.clock.sleep(IDLE_S)


async def settle_orders(scene: Scene, world: ReportedWorld, tally: Tally) -> ReportedWorld:
    """Update until no order is in doubt; a limit order may go on resting."""
    start = scene.clock.now()
    while scene.clock.now() - start < MOST_MS:
        is_busy = any(order.leg == "entry" or order.fence.is_in_doubt for order in scene.store.open_orders())
        await scene.pause(BUSY_S if is_busy else IDLE_S)
        try:
            world = (await scene.broker.resolve(world)).world
        except TransientError:
            continue
        is_late = scene.clock.now() - start >= LEAST_MS
        if is_late and not any(order.fence.is_in_doubt for order in scene.store.open_orders()):
            sizes = {symbol: position.size for symbol, position in world.positions.items()}
            if sizes == {symbol: position.size for symbol, position in scene.exchange.account().positions.items()}:
                return world  # otherwise something was filled since the read, or the world is wrong and stays so
    tally.unsettled += 1
    return world


def check_orders(scene: JudgedScene, tally: Tally) -> None:
    """Compare what the store believes of every order with what the exchange has."""
    truth = scene.exchange.truth()
    orders: tuple[LiveOrder, ...] = scene.store.recent(0)
    dead = {order.cloid for order in orders if order.state in ("refused", "expired")}
    live = {order.cloid for order in orders if order.state in ("filled", "resting") or order.fence.executed}
    tally.duplicates = len(truth.duplicates())
    tally.ghosts = len(truth.ghosts(dead))
    tally.phantoms = len(truth.phantoms(live))
