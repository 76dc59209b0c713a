"""Keeps a resting reduce-only stop behind every position, of exactly its size, and closes what cannot be protected.

Reduce-only orders cannot add risk, so a stop whose placement has no answer is placed again at once under another id; what
turns out to be there twice is cancelled later. After three failed placements the position is closed. A new stop is placed
before an old one is cancelled. Stops are cancelled only when fills and sizes agree: an account that is reported empty by
mistake must not lose them.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from pitboss.core.errors import TransientError
from pitboss.core.instant import MINUTE_MS, Instant
from pitboss.core.noun import noun
from pitboss.venues.perp.hyperliquid.account_reader import MOST_EXIT_GAP, PRICE_DIGITS, Mark, ReportedPosition
from pitboss.venues.perp.hyperliquid.order_building import AccountSetup, default_stop, exit_terms, trigger_terms
from pitboss.venues.perp.hyperliquid.order_fence import on_listed
from pitboss.venues.perp.hyperliquid.order_sender import FencedSender, StepLabel, no_step
from pitboss.venues.perp.hyperliquid.order_store import Leg, LiveOrder, OrderTerms
from pitboss.venues.perp.state import PerpWorld

STOP_ATTEMPTS = 3
STOP_TIMEOUT_S = 0.7
"""An answer about a stop, or a close instead of it, is not waited for any longer: sending another does no harm, because
both are reduce-only, and being without it may."""
LONGEST_FILL_MS = MINUTE_MS
"""How long after its tick a market order can be filled at most: its expiry is much shorter."""


@noun
class TriggerPlan:
    """What is missing of the triggers behind a position, and what is too much."""

    has_stop: bool
    has_take_profit: bool
    surplus: tuple[LiveOrder, ...]


def plan_triggers(
    size: Decimal, stop: OrderTerms | None, take_profit: OrderTerms | None, orders: Sequence[LiveOrder]
) -> TriggerPlan:
    """Compare the triggers that rest with those that a position of this signed size should have; a flat one has none."""
    surplus: list[LiveOrder] = []
    has_stop = has_take_profit = False
    for order in orders:
        if order.state != "resting" or not order.is_trigger:
            continue
        wanted = stop if order.leg == "stop" else take_profit
        fits = (
            size != 0
            and wanted is not None
            and (order.terms.trigger, order.terms.side, order.terms.size) == (wanted.trigger, wanted.side, wanted.size)
            and not order.fence.filled_size
        )
        if fits and order.leg == "stop" and not has_stop:
            has_stop = True
        elif fits and order.leg == "take_profit" and not has_take_profit:
            has_take_profit = True
        else:
            surplus.append(order)
    return TriggerPlan(has_stop, has_take_profit, tuple(surplus))


def believable_price(position: ReportedPosition, mark: Mark | None) -> Decimal:
    """Return the price of a position as its reported value implies; the oracle's where the two are far apart."""
    price = PRICE_DIGITS.divide(position.value, abs(position.size))
    if mark is not None and abs(price - mark.oracle) > MOST_EXIT_GAP * mark.oracle:
        return mark.oracle
    return price


class Protector:
    """Protects the positions of one account. `alarm` notifies a person of a position that could not be protected."""

    def __init__(
        self,
        setup: AccountSetup,
        sender: FencedSender,
        now: Callable[[], Instant],
        on_step: Callable[[StepLabel], None] = no_step,
        alarm: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._setup = setup
        self._sender = sender
        self._now = now
        self._on_step = on_step
        self._number = 0
        self._alarm = alarm

    async def protect(
        self,
        world: PerpWorld,
        positions: Mapping[str, ReportedPosition],
        marks: Mapping[str, Mark],
        agrees: bool,
    ) -> bool:
        """Protect every position of the account's symbols; return whether anything was sent.

        `agrees` says that sizes and fills fit together, so that triggers that are not needed may be cancelled.
        """
        orders = self._sender.store.open_orders()
        changed = False
        for symbol in self._setup.symbols:
            mine = [order for order in orders if order.symbol == symbol and order.is_trigger]
            position = positions.get(symbol)
            if position is None:
                surplus = [order for order in mine if order.state == "resting"] if agrees else []
                changed |= bool(surplus)
                await self._sender.cancel(surplus)
                continue
            changed |= await self._protect_one(world, position, marks.get(symbol), mine, agrees)
        if changed:
            self._on_step("protected")
        return changed

    async def _protect_one(
        self,
        world: PerpWorld,
        position: ReportedPosition,
        mark: Mark | None,
        orders: Sequence[LiveOrder],
        agrees: bool,
    ) -> bool:
        symbol, side, size = position.symbol, 1 if position.size > 0 else -1, abs(position.size)
        price = believable_price(position, mark)
        listed = self._setup.universe[symbol]
        stop_price, take_profit_price = self._wanted(world, position, price, orders)
        stop = trigger_terms(listed, "stop", side, size, stop_price, price)
        take_profit = None
        if take_profit_price is not None:
            take_profit = trigger_terms(listed, "take_profit", side, size, take_profit_price, price)
        plan = plan_triggers(position.size, stop, take_profit, orders)
        if not plan.has_stop:
            is_passed = stop.trigger is not None and side * (price - stop.trigger) <= 0
            if is_passed or not await self._place_stop(symbol, stop):
                await self.close(symbol, -side, size, price)
                if not is_passed:
                    self._alarm(f"no stop could be placed for the position in {symbol}, so it was closed")
                return True
        if take_profit is not None and not plan.has_take_profit:
            is_passed = take_profit.trigger is not None and side * (price - take_profit.trigger) >= 0
            if not is_passed:
                await self._place(symbol, "take_profit", take_profit)
        if plan.surplus and agrees:
            await self._sender.cancel(plan.surplus)
        return not plan.has_stop or (take_profit is not None and not plan.has_take_profit) or bool(plan.surplus)

    def _wanted(
        self, world: PerpWorld, position: ReportedPosition, mark: Decimal, orders: Sequence[LiveOrder]
    ) -> tuple[Decimal, Decimal | None]:
        """Return the prices of stop and take-profit: of the newest entry that named them, else of a stop that rests."""
        side, size = 1 if position.size > 0 else -1, abs(position.size)
        stop = take_profit = None
        before = world.positions.get(position.symbol)
        opened_at = None if before is None or before.side != side else before.opened_at
        entries = [entry for entry in self._sender.store.entries(position.symbol) if entry.terms.side == side]
        executed = [entry for entry in entries if entry.fence.executed or entry.state == "filled"]
        # A fill is seen in the account before it is reported: then the position is that of an entry that is still open.
        for entry in executed or [entry for entry in entries if entry.is_open]:
            if opened_at is not None and entry.fence.immediate and entry.tick_at < opened_at - LONGEST_FILL_MS:
                break  # it was filled long before this position was opened
            stop, take_profit = stop or entry.terms.stop, take_profit or entry.terms.take_profit
            if opened_at is None or entry.tick_at <= opened_at:
                break  # this entry has opened the position
        if stop is None or stop <= 0:
            resting = [order.terms.trigger for order in orders if order.leg == "stop" and order.state == "resting"]
            stop = next((trigger for trigger in reversed(resting) if trigger is not None), None)
        if stop is None:
            stop = default_stop(world, self._setup.terms, side, size, mark, position.liquidation)
        return stop, take_profit

    async def _place_stop(self, symbol: str, terms: OrderTerms) -> bool:
        """Place a stop; up to three times, and without waiting for an answer that does not come."""
        doubtful: list[LiveOrder] = []
        for _ in range(STOP_ATTEMPTS):
            order = await self._place(symbol, "stop", terms)
            if order.state == "resting":
                return True
            if order.fence.is_in_doubt:
                doubtful.append(order)
        return bool(doubtful) and await self._is_there(doubtful)

    async def _is_there(self, orders: Sequence[LiveOrder]) -> bool:
        """Return whether one of these orders rests, by the exchange's own list."""
        try:
            listed = {order.cloid: order for order in await self._sender.reader.orders()}
        except TransientError:
            return False
        resting = [order for order in orders if order.cloid in listed]
        for order in resting:
            self._sender.change(order, on_listed(order.fence, listed[order.cloid].oid))
        return bool(resting)

    async def _place(self, symbol: str, leg: Leg, terms: OrderTerms) -> LiveOrder:
        order = self._order(symbol, leg, terms)
        self._sender.begin((order,))
        verdict = self._setup.verdict("protect", order)
        return (await self._sender.send((order,), verdict, "reduce", timeout_s=STOP_TIMEOUT_S))[0]

    async def close(self, symbol: str, side: int, size: Decimal, mark: Decimal) -> LiveOrder:
        """Close a position that cannot be protected, or whose stop was passed."""
        terms = exit_terms(self._setup.universe[symbol], "close", side, size, mark)
        order = self._order(symbol, "exit", terms)
        self._sender.begin((order,))
        verdict = self._setup.verdict("close", order)
        return (await self._sender.send((order,), verdict, "reduce", timeout_s=STOP_TIMEOUT_S))[0]

    def _order(self, symbol: str, leg: Leg, terms: OrderTerms) -> LiveOrder:
        now = self._now()
        self._number += 1
        return self._setup.order(symbol, leg, f"protect:{symbol}:{self._number}", now, terms, now)
