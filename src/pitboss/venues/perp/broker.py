"""The paper broker: the simulated perp world behind the Broker port; it has no key and no connection."""

from dataclasses import dataclass

from pitboss.core.instant import Instant
from pitboss.engine.execute import Placed
from pitboss.venues.perp.state import PerpWorld, TradingTerms
from pitboss.venues.perp.world import OrderRequest, cancel, submit


@dataclass(frozen=True, slots=True)
class PaperBroker:
    """Accepts every order that the engine allows; the world fills or rejects it on later bars."""

    terms: TradingTerms
    latency_ms: int = 0

    async def submit(self, world: PerpWorld, request: OrderRequest, at: Instant) -> Placed:
        """Place an order on the paper book."""
        after, order_id, receipt = submit(world, request, at, self.latency_ms)
        return Placed(after, (receipt,), order_id)

    async def cancel(self, world: PerpWorld, order_id: str, at: Instant) -> Placed:
        """Cancel an order on the paper book."""
        after, receipt = cancel(world, self.terms, order_id, at)
        return Placed(after, (receipt,), order_id)
