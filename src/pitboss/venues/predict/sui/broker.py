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
from pitboss.venues.predict.sui.book import doubted, dropped, known, traded
from pitboss.venues.predict.sui.carry import Carrier, deal_kept, wish_kept
from pitboss.venues.predict.sui.chain import is_id
from pitboss.venues.predict.sui.ports import OutboxAttempt
from pitboss.venues.predict.sui.wish import order_id, wish_of


@dataclass(frozen=True, slots=True)
class PredictSui:
    """Executes mints and redeems that the engine allows on the chain."""

    carrier: Carrier
    account_id: str = ACCOUNT

    async def submit(self, world: Desk, request: DeskOrder, at: Instant) -> Placed:
        """Send an order once. A repeated order returns the result of the first."""
        contract = request.order.contract
        if contract.side == "RANGE" or not is_id(contract.market_id):
            return Placed(world, refusal="only YES and NO of a market of the chain can be traded here")
        name = order_id(self.carrier.scope, request)
        done = next((fill for fill in world.done if fill.order_id == name), None)
        if done is not None and done.kind == "refused":
            return Placed(world, refusal=done.detail)
        if known(world, name):
            return Placed(world, (), name)
        expiry_at = self._expiry(world, request)
        if expiry_at is None:
            return Placed(world, refusal=f"the expiry of {contract.market_id} is not known")
        fate = await self.carrier.carry(name, request.tick_at, wish_of(request, expiry_at))
        if fate.entry is None or fate.refusal:
            return Placed(world, refusal=fate.refusal)
        desk, receipts = self._told(world, fate.entry, at)
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
        await self.carrier.tidy()
        receipts: list[Receipt] = []
        for ticket in world.waiting:
            entry = self.carrier.outbox.get(ticket.id)
            if entry is not None and entry.state != "sent":
                world, happened = self._told(world, entry, at)
                receipts += happened
        for entry in self.carrier.outbox.after(self.carrier.scope, since):
            if not known(world, entry.order_id):
                world, happened = self._told(world, entry, at)
                receipts += happened
        return Placed(world, tuple(receipts))

    def _told(self, world: Desk, entry: OutboxAttempt, at: Instant) -> tuple[Desk, tuple[Receipt, ...]]:
        wish, name = wish_kept(entry), entry.order_id
        if entry.state == "landed":
            deal, digest = deal_kept(entry), entry.digest or ""
            return traded(world, name, entry.tick_at, wish, deal, at, self.account_id, digest)
        if entry.state == "sent":
            return doubted(world, name, entry.tick_at, wish, at)
        return dropped(world, name, wish, entry.note, at)

    def _expiry(self, world: Desk, request: DeskOrder) -> Instant | None:
        contract = request.order.contract
        market = world.world.oracles.get(contract.market_id)
        if market is not None:
            return market.expiry_at
        held = world.world.accounts.get(self.account_id, NO_ACCOUNT).positions.get(contract.key)
        return None if held is None else held.expiry_at
