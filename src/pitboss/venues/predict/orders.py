"""An order for a binary contract, and its execution on the paper venue."""

from typing import Literal

from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.venues.predict.state import ACCOUNT, Contract, PredictWorld
from pitboss.venues.predict.trade import ContractTrade, WorldStep, carry_out, mint_spend, redeem


@noun
class ContractOrder:
    """A mint of at most `spend` (`quantity` contracts at the current ask `price`), or a redeem of the whole position."""

    action: Literal["mint", "redeem"]
    contract: Contract
    quantity: int
    price: int
    spend: int = 0


def perform(
    world: PredictWorld,
    order: ContractOrder,
    at: Instant,
    account_id: str = ACCOUNT,
    quoted_trade: ContractTrade | None = None,
) -> WorldStep:
    """Execute an order on the paper venue. A mint is sized again, so it costs no more than its spend.

    `quoted_trade` is the trade computed when the order was judged; it is reused if world and instant are the same.
    """
    if quoted_trade is not None:
        return carry_out(world, account_id, order.action, quoted_trade, at)
    if order.action == "redeem":
        return redeem(world, account_id, order.contract, order.quantity, at)
    return mint_spend(world, account_id, order.contract, order.spend, at)
