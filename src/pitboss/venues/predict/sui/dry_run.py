"""`DryRunSui`: the broker of a dry run. It simulates every order on the chain, and signs and sends none.

Nothing changes on the chain, so nothing changes on the desk either: the result of every order is a refusal by the venue
that says what the transaction would have done.
"""

from dataclasses import dataclass

from pitboss.core.instant import Instant
from pitboss.engine.execute import Placed
from pitboss.venues.predict.case import cents, dusdc
from pitboss.venues.predict.desk import Desk, DeskOrder
from pitboss.venues.predict.sui.broker import PredictSui
from pitboss.venues.predict.sui.order import ChainTrade, sui_order_of


@dataclass(frozen=True, slots=True)
class DryRunSui:
    """Simulates the orders that `inner` would send."""

    inner: PredictSui

    async def submit(self, world: Desk, request: DeskOrder, at: Instant) -> Placed:
        """Simulate an order; the refusal says what it would have done."""
        del at
        problem, expiry_at = self.inner.problem_of(world, request), self.inner.expiry_of(world, request)
        if problem or expiry_at is None:
            return Placed(world, refusal=problem)
        result = await self.inner.sender.rehearse(sui_order_of(request, expiry_at))
        return Placed(world, refusal=f"dry run, nothing was signed or sent: {_words(request, result)}")

    async def cancel(self, world: Desk, order_id: str, at: Instant) -> Placed:
        """Refuse: a transaction cannot be cancelled."""
        return await self.inner.cancel(world, order_id, at)


def _words(request: DeskOrder, result: ChainTrade | str) -> str:
    if isinstance(result, str):
        return f"the chain would refuse it: {result}"
    order = request.order
    verb = "pay" if order.action == "mint" else "receive"
    return f"it would {order.action} {dusdc(result.quantity)} contracts at {cents(result.price)} and {verb} {dusdc(result.amount)}"
