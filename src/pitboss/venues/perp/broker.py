"""The paper broker: the simulated perp world behind the Broker port; it has no key and no connection."""

from collections.abc import Callable
from dataclasses import dataclass

from pitboss.core.instant import Instant
from pitboss.engine.execute import Placed
from pitboss.venues.perp.rules.r10_stale_data import CODE as STALE_DATA
from pitboss.venues.perp.state import PerpWorld, TradingTerms
from pitboss.venues.perp.world import OrderRequest, cancel, submit


@dataclass(frozen=True, slots=True)
class PaperBroker:
    """Accepts every order that the engine allows; the world fills or rejects it on later bars.

    `data_problem` says why nothing may be opened in a symbol on the prices of this moment; empty if it may, as always in a backtest.
    """

    terms: TradingTerms
    latency_ms: int = 0
    data_problem: Callable[[str], str] = lambda symbol: ""

    async def submit(self, world: PerpWorld, request: OrderRequest, at: Instant) -> Placed:
        """Place an order on the paper book."""
        problem = self.data_problem(request.symbol) if request.opens else ""
        if problem:
            return Placed(world, refusal=problem, code=STALE_DATA)
        after, order_id, receipt = submit(world, request, at, self.latency_ms)
        return Placed(after, (receipt,), order_id)

    async def cancel(self, world: PerpWorld, order_id: str, at: Instant) -> Placed:
        """Cancel an order on the paper book."""
        after, receipt = cancel(world, self.terms, order_id, at)
        return Placed(after, (receipt,), order_id)
