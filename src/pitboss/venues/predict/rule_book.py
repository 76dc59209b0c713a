"""The predict rules bound to one account: how a decision is read, which rules apply, and the order an allowed one becomes.

The `engine.guard.RuleBook` of this venue. Spends are cut and sized once, in the case, so that the rules and the order agree.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.core.rulebook import Execution, Rule
from pitboss.venues.predict.caps import PredictCaps, Spent
from pitboss.venues.predict.case import PredictCase, make_case
from pitboss.venues.predict.desk import VENUE, DeskOrder
from pitboss.venues.predict.intents import PredictDecision, read
from pitboss.venues.predict.orders import ContractOrder
from pitboss.venues.predict.rules import RULES
from pitboss.venues.predict.state import ACCOUNT, PredictWorld
from pitboss.venues.predict.trade import ContractTrade

EXIT_RULES = tuple(rule for rule in RULES if rule.scope == "every")
"""The rules for decisions that spend nothing."""


@noun
class PredictRuleBook:
    """B1 to B15 over one account at `now`, the instant of execution; the decision was made at `tick_at`."""

    caps: PredictCaps
    world: PredictWorld
    spent: Spent
    now: Instant
    tick_at: Instant
    account_id: str = ACCOUNT

    shape_code: ClassVar[str] = "B1_SHAPE"
    venue_code: ClassVar[str] = VENUE

    def read(self, intent: Any) -> tuple[PredictDecision | None, list[str]]:
        """The decision, read strictly."""
        return read(intent)

    def is_hold(self, proposal: PredictDecision) -> bool:
        """`hold` is not judged."""
        return proposal.action == "hold"

    def rules_for(self, proposal: PredictDecision | None) -> Sequence[Rule]:
        """All of them for a mint, only those about every action for a redeem."""
        return EXIT_RULES if proposal is not None and proposal.action == "redeem" else RULES

    def case(self, proposal: PredictDecision | None, problems: Sequence[str]) -> PredictCase:
        """The numbers that the rules need."""
        return make_case(
            self.caps, self.world, self.account_id, self.spent, proposal, problems, self.now, self.tick_at, False
        )

    def execution(self, case: PredictCase) -> Execution | None:
        """The order with the trade as this world would make it; None where the venue admits no trade."""
        trade, decision = case.admitted, case.decision
        if decision is None or not isinstance(trade, ContractTrade):
            return None
        spend = 0 if decision.action == "redeem" else case.spend or 0
        action = "redeem" if decision.action == "redeem" else "mint"
        order = ContractOrder(action, trade.contract, trade.quantity, trade.price, spend)
        last_ask = self.spent.shown.get(trade.contract.key)
        return Execution(DeskOrder(order, self.tick_at, decision.confidence, last_ask, trade, self.world))
