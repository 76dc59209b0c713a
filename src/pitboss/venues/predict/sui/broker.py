"""The Sui broker of the predict venue: sends the engine's orders as transactions of its manager, at most one per order.

It implements the same port as the paper broker, so a tick is the same function. A refusal is a value. An order with an
unknown result is accepted and waits on the desk until `settle` resolves it. The broker does not check or enlarge
orders; it may only execute less than requested.
"""

from dataclasses import dataclass

from pitboss.core.instant import Instant
from pitboss.core.receipt import Receipt
from pitboss.engine.execute import Placed
from pitboss.venues.predict.desk import Desk, DeskOrder
from pitboss.venues.predict.state import ACCOUNT, NO_ACCOUNT
from pitboss.venues.predict.sui.chain import is_id
from pitboss.venues.predict.sui.desk_changes import has_order, with_pending_order, with_refused_order, with_trade
from pitboss.venues.predict.sui.order import order_id, sui_order_of
from pitboss.venues.predict.sui.order_sender import OrderSender, stored_order, stored_trade
from pitboss.venues.predict.sui.ports import OutboxAttempt


@dataclass(frozen=True, slots=True)
class PredictSui:
    """Executes mints and redeems that the engine allows on the chain."""

    sender: OrderSender
    account_id: str = ACCOUNT

    async def submit(self, world: Desk, request: DeskOrder, at: Instant) -> Placed:
        """Send an order once. A repeated order returns the result of the first."""
        problem = self.problem_of(world, request)
        if problem:
            return Placed(world, refusal=problem)
        name = order_id(self.sender.scope, request)
        earlier_fill = next((fill for fill in world.done if fill.order_id == name), None)
        if earlier_fill is not None and earlier_fill.kind == "refused":
            return Placed(world, refusal=earlier_fill.detail)
        if has_order(world, name):
            return Placed(world, (), name)
        expiry_at = self.expiry_of(world, request)
        assert expiry_at is not None  # otherwise there was a problem
        result = await self.sender.send(name, request.tick_at, sui_order_of(request, expiry_at))
        if result.entry is None or result.refusal:
            return Placed(world, refusal=result.refusal)
        desk, receipts = self._apply_entry(world, result.entry, at)
        return Placed(desk, receipts, name)

    async def cancel(self, world: Desk, order_id: str, at: Instant) -> Placed:
        """Refuse: a transaction cannot be cancelled."""
        del order_id, at
        return Placed(world, refusal="orders of this venue cannot be cancelled")

    async def settle(self, world: Desk, since: Instant, at: Instant) -> Placed:
        """Return the desk with everything the chain has reported since, and the receipts. Call it before each tick.

        `since` is the last tick that the stored desk includes. Orders of later ticks were sent by a process that could
        not store their results; they are added to the desk here. For a new desk it is the instant of its creation.
        Repeated calls change nothing.
        """
        await self.sender.resolve_pending()
        receipts: list[Receipt] = []
        for waiting in world.waiting:
            entry = self.sender.outbox.get(waiting.id)
            if entry is not None and entry.state != "sent":
                world, happened = self._apply_entry(world, entry, at)
                receipts += happened
        for entry in self.sender.outbox.after(self.sender.scope, since):
            if not has_order(world, entry.order_id):
                world, happened = self._apply_entry(world, entry, at)
                receipts += happened
        return Placed(world, tuple(receipts))

    def _apply_entry(self, world: Desk, entry: OutboxAttempt, at: Instant) -> tuple[Desk, tuple[Receipt, ...]]:
        order, name = stored_order(entry), entry.order_id
        if entry.state == "landed":
            trade, digest = stored_trade(entry), entry.digest or ""
            return with_trade(world, name, entry.tick_at, order, trade, at, self.account_id, digest)
        if entry.state == "sent":
            return with_pending_order(world, name, entry.tick_at, order, at)
        return with_refused_order(world, name, order, entry.note, at)

    def problem_of(self, world: Desk, request: DeskOrder) -> str:
        """Return why an order cannot be a transaction; empty if it can."""
        contract = request.order.contract
        if contract.side == "RANGE" or not is_id(contract.market_id):
            return "only YES and NO of a market of the chain can be traded here"
        return f"the expiry of {contract.market_id} is not known" if self.expiry_of(world, request) is None else ""

    def expiry_of(self, world: Desk, request: DeskOrder) -> Instant | None:
        """Return the expiry of an order's market; None if it is not known."""
        contract = request.order.contract
        market = world.world.oracles.get(contract.market_id)
        if market is not None:
            return market.expiry_at
        position = world.world.accounts.get(self.account_id, NO_ACCOUNT).positions.get(contract.key)
        return None if position is None else position.expiry_at
