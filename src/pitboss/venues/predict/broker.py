"""The paper broker of the predict venue: the pure world behind the Broker port. Holds no key and no connection.

An order is carried out at the first update at or after its decision: at once where the world's newest price is that of
the tick, else when the driver brings the next one (`venues.predict.desk.bring`).
"""

from dataclasses import dataclass

from pitboss.core.instant import Instant
from pitboss.engine.execute import Placed
from pitboss.venues.predict.desk import Desk, DeskOrder, submit
from pitboss.venues.predict.state import ACCOUNT


@dataclass(frozen=True, slots=True)
class PredictPaper:
    """Takes what the engine lets through; the venue's own abort is a refusal."""

    account_id: str = ACCOUNT

    async def submit(self, world: Desk, request: DeskOrder, at: Instant) -> Placed:
        """Mint or redeem on the paper venue, or wait for its next price."""
        answer = submit(world, request, at, self.account_id)
        return Placed(answer.desk, answer.receipts, answer.order_id, answer.refusal)

    async def cancel(self, world: Desk, order_id: str, at: Instant) -> Placed:
        """Nothing on this venue can be taken back."""
        del order_id, at
        return Placed(world, refusal="orders of this venue cannot be cancelled")
