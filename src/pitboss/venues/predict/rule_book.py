"""The predict rules applied to one account: parsing, rule selection, and the order that an allowed decision becomes.

Spends are reduced and sized once, in the case, so the rules and the order agree.
"""

from collections.abc import Sequence

from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.core.rulebook import Execution, Rule, RuleBook
from pitboss.venues.predict.caps import PredictCaps, Spent
from pitboss.venues.predict.case import PredictCase, make_case
from pitboss.venues.predict.desk import DeskOrder
from pitboss.venues.predict.intents import DECISION, PredictDecision
from pitboss.venues.predict.orders import ContractOrder
from pitboss.venues.predict.rules import RULES
from pitboss.venues.predict.state import ACCOUNT, PredictWorld
from pitboss.venues.predict.trade import ContractTrade

EXIT_RULES = tuple(rule for rule in RULES if rule.scope == "every")
"""The rules that apply to decisions without a spend."""


@noun
class PredictRuleBook(RuleBook):
    """Rules B1 to B15 on one account at `now`, the instant of execution, for a decision made at `tick_at`."""

    caps: PredictCaps
    world: PredictWorld
    spent: Spent
    now: Instant
    tick_at: Instant
    account_id: str = ACCOUNT

    decision = DECISION
    rules = RULES

    def rules_for(self, proposal: PredictDecision | None) -> Sequence[Rule]:
        """Return all rules for a mint, and only those of scope `every` for a redeem."""
        return EXIT_RULES if proposal is not None and proposal.action == "redeem" else RULES

    def case(self, proposal: PredictDecision | None, problems: Sequence[str]) -> PredictCase:
        """Compute the values that the rules need."""
        return make_case(self.caps, self.world, self.account_id, self.spent, proposal, problems, self.now, self.tick_at)

    def execution(self, case: PredictCase) -> Execution | None:
        """Return the order with the trade computed on this world; None if the venue admits no trade."""
        trade, decision = case.admitted, case.decision
        if decision is None or not isinstance(trade, ContractTrade):
            return None
        spend = 0 if decision.action == "redeem" else case.spend or 0
        action = "redeem" if decision.action == "redeem" else "mint"
        order = ContractOrder(action, trade.contract, trade.quantity, trade.price, spend)
        ask = self.spent.shown.get(trade.contract.key)
        return Execution(DeskOrder(order, self.tick_at, decision.confidence, ask, trade, self.world))
