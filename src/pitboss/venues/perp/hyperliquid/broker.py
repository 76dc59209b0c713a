"""`HyperliquidBroker`: the Broker port over a live account. Orders that the engine allows leave once, or are refused with a reason.

An open passes the gate, the fence of its symbol, the limits of the exchange, the clocks and a fresh price; then its leverage is
set and read back, and it is sent together with its stop. Exits pass always. What becomes of an order is found out by the
reconciler; an order without a usable answer stays in the world, so that the rules count it, and is never sent again.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal

from pitboss.core.errors import TransientError
from pitboss.core.instant import MINUTE_MS, SECOND_MS, Instant
from pitboss.core.receipt import Receipt
from pitboss.engine.execute import Placed
from pitboss.venues.perp.hyperliquid.account_reader import MOST_EXIT_GAP, Mark
from pitboss.venues.perp.hyperliquid.order_building import (
    AccountSetup,
    default_stop,
    entry_terms,
    exit_terms,
    trigger_terms,
)
from pitboss.venues.perp.hyperliquid.order_sender import FencedSender
from pitboss.venues.perp.hyperliquid.order_store import LiveOrder, OrderTerms
from pitboss.venues.perp.hyperliquid.precision import price_problem, size_problem
from pitboss.venues.perp.hyperliquid.rate_budget import RateBudget, RequestClass
from pitboss.venues.perp.hyperliquid.reconcile import MarkSource, Reconciled, Reconciler
from pitboss.venues.perp.rules.r10_stale_data import CODE as STALE_DATA
from pitboss.venues.perp.state import OrderKind, ReportedWorld, WorkingOrder
from pitboss.venues.perp.world import OrderRequest

MOST_MARK_AGE_MS = 5 * SECOND_MS
MOST_SKEW_MS = SECOND_MS
MOST_CLOCK_AGE_MS = MINUTE_MS
MOST_ORACLE_GAP = Decimal("0.05")
"""How far the mark of an open may be from the oracle price, as a share of it."""


class HyperliquidBroker:
    """Sends the orders of one account. `gate` says why nothing may be opened: paused, halted; empty if it may. `data_problem`
    says the same of the market data of a symbol.
    """

    def __init__(
        self,
        setup: AccountSetup,
        sender: FencedSender,
        reconciler: Reconciler,
        marks: MarkSource,
        budget: RateBudget,
        gate: Callable[[], str],
        now: Callable[[], Instant],
        data_problem: Callable[[str], str] = lambda symbol: "",
    ) -> None:
        self.reconciler = reconciler
        self._data_problem = data_problem
        self._setup = setup
        self._sender = sender
        self._marks = marks
        self._budget = budget
        self._gate = gate
        self._now = now

    # The Broker port ------------------------------------------------------------------------------------------------

    async def submit(self, world: ReportedWorld, request: OrderRequest, at: Instant) -> Placed:
        """Send an order once. The same decision of the same tick returns what became of it."""
        async with self.reconciler.lock:
            if request.symbol not in self._setup.universe:
                return Placed(world, refusal=f"the exchange does not list {request.symbol}")
            if request.opens:
                return await self._open(world, request, at)
            return await self._exit(world, request, at)

    async def cancel(self, world: ReportedWorld, order_id: str, at: Instant) -> Placed:
        """Cancel a working order; refuse if it is not certain that it is gone."""
        async with self.reconciler.lock:
            orders = [order for order in self._sender.store.open_orders() if order.order_id == order_id]
            if not orders:
                return Placed(world, refusal="the order is not open any more")
            (order,) = await self._sender.cancel(orders)
            if order.is_open:
                return Placed(world, refusal="the exchange has not confirmed that the order is cancelled")
            left = order.terms.size - order.fence.executed
            facts: dict[str, Decimal | str | int] = {"reason": "requested", "left": left}
            receipt = Receipt("cancelled", at, order.symbol, order_id, facts)
            after = replace(world, orders=tuple(working for working in world.orders if working.id != order_id))
            if order.state == "filled":
                return Placed(world, refusal="the order was filled before it could be cancelled")
            return Placed(after, (receipt,), order_id)

    async def resolve(self, world: ReportedWorld | None) -> Reconciled:
        """Do one pass of reconciliation: the source calls it at every update."""
        return await self.reconciler.run(world)

    async def withdraw(self) -> None:
        """Cancel the orders that would open, or may have arrived, before the process leaves the account for good."""
        async with self.reconciler.lock:
            await self._sender.cancel(
                [order for order in self._sender.store.open_orders() if order.opens and order.state != "new"]
            )

    @property
    def actions_left(self) -> int:
        """How many more actions the account may send, as far as known."""
        return self._sender.actions.left

    def alarm(self) -> str:
        """Say what a person has to look at before anything is opened again; empty if nothing."""
        if self._sender.alarm:
            return f"the exchange does not accept this process: {self._sender.alarm_text}"
        return self.reconciler.alarm

    def open_problem(self, symbol: str) -> str:
        """Say why no position in a symbol may be opened now, apart from its price; empty if one may."""
        problem = self._gate() or self.alarm() or self.reconciler.problem
        if problem:
            return problem
        doubt = next(
            (order for order in self._sender.store.open_orders() if order.symbol == symbol and order.fence.is_in_doubt),
            None,
        )
        if doubt is not None:
            return f"order {doubt.order_id} in {symbol} has no known outcome yet"
        return (
            self._budget.open_problem(self._now())
            or self._sender.actions.open_problem()
            or self._sender.clock.problem(MOST_SKEW_MS, MOST_CLOCK_AGE_MS)
        )

    # Opens ----------------------------------------------------------------------------------------------------------

    async def _open(self, world: ReportedWorld, request: OrderRequest, at: Instant) -> Placed:
        listed = self._setup.universe[request.symbol]
        judged_mark = world.marks.get(request.symbol)
        if judged_mark is None:
            return Placed(world, refusal="there is no usable price")
        terms = entry_terms(listed, request, judged_mark)
        entry = self._setup.order(request.symbol, "entry", request.intent_key(at), at, terms, self._now())
        earlier = self._sender.store.get(entry.cloid)
        if earlier is not None:
            return self._outcome(world, earlier, at)
        if stale := self._data_problem(request.symbol):
            return Placed(world, refusal=stale, code=STALE_DATA)
        problem = (
            self.open_problem(request.symbol)
            or size_problem(listed.asset, terms.size)
            or price_problem(listed.asset, terms.price)
            or ("the exchange has delisted it" if listed.is_delisted else "")
        )
        if problem:
            return Placed(world, refusal=problem)
        orders = (entry, *self._legs(world, request, entry))
        if not self._sender.begin(orders):
            return Placed(world, refusal="the same order is being sent")
        verdict = self._setup.verdict("open", entry)
        is_cross = not listed.only_isolated
        problem = await self._sender.set_leverage(entry, request.leverage or 1, is_cross, verdict, self._gate)
        await self.reconciler.protect_reported()  # an order in another symbol may have been filled meanwhile
        mark = None if problem else await self._fresh_mark(request.symbol, "open")
        problem = problem or self._price_problem(terms, mark)
        if problem:
            self._sender.give_up(orders, problem)
            return Placed(world, refusal=problem)

        def last_check() -> str:
            return (
                self._data_problem(request.symbol) or self._price_problem(terms, mark) or self._gate() or self.alarm()
            )

        orders = await self._sender.send(orders, verdict, "open", last_check)
        await self.reconciler.protect_reported()
        return await self._after(world, orders[0], at)

    def _legs(self, world: ReportedWorld, request: OrderRequest, entry: LiveOrder) -> tuple[LiveOrder, ...]:
        """Return the stop and take-profit that go with a market order in the same action.

        On a symbol that has a position they are for what is added; the protector makes one stop of the two later. The stop comes
        last: where the exchange keeps one of two reduce-only orders, it keeps the newer. A limit order gets its stop when it fills.
        """
        if request.kind != "market":
            return ()
        listed, side, mark = self._setup.universe[request.symbol], request.side, world.marks[request.symbol]
        size, legs, position = entry.terms.size, list[LiveOrder](), world.positions.get(request.symbol)
        if request.take_profit is not None and position is None:
            terms = trigger_terms(listed, "take_profit", side, size, request.take_profit, mark)
            legs.append(self._leg(entry, "take_profit", terms))
        stop = request.stop or (None if position is None else position.stop)
        if stop is None:
            stop = default_stop(world, self._setup.terms, side, size, mark, None)
        legs.append(self._leg(entry, "stop", trigger_terms(listed, "stop", side, size, stop, mark)))
        return tuple(legs)

    def _leg(self, entry: LiveOrder, leg: str, terms: OrderTerms) -> LiveOrder:
        name = "stop" if leg == "stop" else "take_profit"
        return self._setup.order(entry.symbol, name, entry.intent, entry.tick_at, terms, entry.created_at)

    async def _fresh_mark(self, symbol: str, purpose: RequestClass) -> Mark | None:
        try:
            return (await self._marks.read((symbol,), purpose)).get(symbol)
        except TransientError:
            return None

    def _price_problem(self, terms: OrderTerms, mark: Mark | None) -> str:
        """Say why an open must not be priced by this mark; empty if it may."""
        if mark is None:
            return "there is no usable price"
        age = self._now() - mark.at
        if not 0 <= age <= MOST_MARK_AGE_MS:
            return f"the price is {age / SECOND_MS:g} s old"
        if abs(mark.price - mark.oracle) > MOST_ORACLE_GAP * mark.oracle:
            return f"the mark {mark.price} is too far from the oracle price {mark.oracle}"
        if terms.tif == "Ioc" and terms.side * (mark.price - terms.price) > 0:
            return f"the price has moved to {mark.price}, beyond {terms.price}"
        reference = terms.reference or mark.price
        if abs(mark.price - reference) > MOST_ORACLE_GAP * reference:
            return f"the price has moved from {reference} to {mark.price}"
        return ""

    # Exits ----------------------------------------------------------------------------------------------------------

    async def _exit(self, world: ReportedWorld, request: OrderRequest, at: Instant) -> Placed:
        listed = self._setup.universe[request.symbol]
        mark = _exit_price(await self._fresh_mark(request.symbol, "reduce"), world.marks.get(request.symbol))
        if mark is None:
            return Placed(world, refusal="there is no usable price to bound the exit")
        terms = exit_terms(listed, request.kind, request.side, request.size, mark)
        order = self._setup.order(request.symbol, "exit", request.intent_key(at), at, terms, self._now())
        earlier = self._sender.store.get(order.cloid)
        if earlier is not None:
            return self._outcome(world, earlier, at)
        problem = size_problem(listed.asset, terms.size)
        if problem:
            return Placed(world, refusal=problem)
        if not self._sender.begin((order,)):
            return Placed(world, refusal="the same order is being sent")
        (order,) = await self._sender.send((order,), self._setup.verdict("close", order), "reduce")
        return await self._after(world, order, at)

    # Outcomes -------------------------------------------------------------------------------------------------------

    async def _after(self, world: ReportedWorld, order: LiveOrder, at: Instant) -> Placed:
        """Return what became of an order that was just sent. A fill is read back at once, with its stop."""
        placed = self._outcome(world, order, at)
        if placed.refusal or order.state not in ("filled", "cancelled"):
            return placed
        self.reconciler.look_closely()
        try:
            reconciled = await self.reconciler.run_locked(placed.world)
        except TransientError:
            return placed  # the next update reads it; until then nothing is opened
        return Placed(reconciled.world, (*placed.receipts, *reconciled.receipts), order.order_id)

    def _outcome(self, world: ReportedWorld, order: LiveOrder, at: Instant) -> Placed:
        if order.state in ("refused", "expired"):
            return Placed(world, refusal=order.fence.note or order.state)
        if any(working.id == order.order_id for working in world.orders):
            return Placed(world, (), order.order_id)
        terms = order.terms
        facts: dict[str, Decimal | str | int] = {
            "kind": terms.kind,
            "side": "buy" if terms.side > 0 else "sell",
            "size": terms.size,
            "cloid": order.cloid,
        }
        optional: Mapping[str, Decimal | int | None] = {
            "limit": terms.price if terms.kind == "limit" else None,
            "stop": terms.stop,
            "take_profit": terms.take_profit,
            "leverage": terms.leverage,
        }
        facts |= {name: value for name, value in optional.items() if value is not None}
        if order.fence.is_in_doubt:
            facts["state"] = "unresolved"
        receipt = Receipt("accepted", at, order.symbol, order.order_id, facts)
        working = WorkingOrder(
            order.order_id, "limit" if terms.kind == "limit" else _kind(terms), order.symbol, terms.side, terms.size,
            at, at, terms.price if terms.kind == "limit" else None, terms.stop, terms.take_profit, terms.thesis,
        )  # fmt: skip
        return Placed(replace(world, orders=(*world.orders, working)), (receipt,), order.order_id)


def _kind(terms: OrderTerms) -> OrderKind:
    return "market" if terms.kind == "market" else "reduce" if terms.kind == "reduce" else "close"


def _exit_price(mark: Mark | None, last: Decimal | None) -> Decimal | None:
    """Return the price that bounds an exit: the mark, the oracle if the mark is not believable, or the last known mark."""
    if mark is None:
        return last
    return mark.oracle if abs(mark.price - mark.oracle) > MOST_EXIT_GAP * mark.oracle else mark.price
