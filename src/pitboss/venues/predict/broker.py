"""The paper broker of the predict venue: implements the Broker port on the simulated world.

An order is executed at the first price update at or after its decision. If the world's newest price already has the
tick's instant, that is immediately; otherwise `venues.predict.execution.apply_update` executes it with the next update. The
broker holds no key and no connection.
"""

from dataclasses import dataclass

from pitboss.core.instant import Instant
from pitboss.engine.execute import Broker, Placed
from pitboss.venues.predict.desk import Desk, DeskOrder, DeskResult, submit
from pitboss.venues.predict.state import ACCOUNT


@dataclass(frozen=True, slots=True)
class PredictPaper(Broker):
    """Executes orders on the paper venue; an abort of the venue is returned as a refusal."""

    account_id: str = ACCOUNT

    async def submit(self, world: Desk, request: DeskOrder, at: Instant) -> Placed:
        """Mint or redeem on the paper venue, or queue the order until the next price update."""
        return placed_of(submit(world, request, at, self.account_id))


def placed_of(result: DeskResult) -> Placed:
    """Return the result of an order on the desk as the engine's answer type."""
    return Placed(result.desk, result.receipts, result.order_id, result.refusal)
