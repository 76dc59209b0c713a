"""The perp rules bound to one account: parses a proposal, selects its rules, and builds the order.

Sizes are rounded here once, so that the rules and the order agree.
"""

from collections.abc import Sequence
from decimal import Decimal

from pitboss.core.instant import Instant
from pitboss.core.money import HUNDRED, ONE, round_down
from pitboss.core.noun import noun
from pitboss.core.rulebook import Execution, Rule, RuleBook
from pitboss.venues.perp.caps import PerpCaps
from pitboss.venues.perp.case import PerpCase, make_case
from pitboss.venues.perp.intents import DECISION, Proposal
from pitboss.venues.perp.rules import RULES
from pitboss.venues.perp.state import PerpWorld, TradingTerms
from pitboss.venues.perp.world import OrderRequest

EXIT_RULES = tuple(rule for rule in RULES if rule.scope == "every")
"""The rules for proposals that add no exposure."""


@noun
class PerpRuleBook(RuleBook):
    """R1 to R13 over one account at one instant."""

    caps: PerpCaps
    terms: TradingTerms
    world: PerpWorld
    accepted_opens: Sequence[Instant]
    now: Instant

    decision = DECISION
    rules = RULES

    def rules_for(self, proposal: Proposal | None) -> Sequence[Rule]:
        """Return all rules for a proposal that opens, and only the rules for every action for any other."""
        return RULES if proposal is None or proposal.opens else EXIT_RULES

    def case(self, proposal: Proposal | None, problems: Sequence[str]) -> PerpCase:
        """Compute the numbers that the rules need."""
        return make_case(self.caps, self.terms, self.world, proposal, problems, self.now, self.accepted_opens)

    def execution(self, case: PerpCase) -> Execution:
        """Return the order, or the id of the order to cancel."""
        proposal = case.proposal
        assert proposal is not None  # R1 refuses every malformed intent
        if proposal.action == "cancel":
            return Execution(cancel_id=proposal.order_id)
        return Execution(order_of(case, proposal), opens=proposal.opens)


def order_of(case: PerpCase, proposal: Proposal) -> OrderRequest:
    """Build the order of an allowed proposal."""
    if proposal.opens:
        assert case.size is not None  # R10 refuses a case without a price
        kind, leverage = "limit" if case.limit is not None else "market", int(proposal.leverage or ONE)
        return OrderRequest(
            kind, proposal.symbol, proposal.side, case.size, leverage,
            case.limit, case.stop, case.take_profit, proposal.reason, proposal,
        )  # fmt: skip
    position = case.world.positions[proposal.symbol]
    full_size = abs(position.size)
    if proposal.action == "close":
        return OrderRequest("close", proposal.symbol, -position.side, full_size, proposal=proposal)
    size = _reduction(case, proposal, full_size)
    return OrderRequest("reduce", proposal.symbol, -position.side, size, proposal=proposal)


def _reduction(case: PerpCase, proposal: Proposal, full_size: Decimal) -> Decimal:
    """Return the size of a reduce: rounded down to the lot, at least one lot, at most the position."""
    asset = case.terms.assets.get(proposal.symbol)
    if asset is None:
        return full_size  # delisted, so there is no lot to round to: closing the whole position is the safe choice
    if proposal.reduce_pct is not None:
        size = round_down(full_size * proposal.reduce_pct / HUNDRED, asset.lot)
    elif proposal.size_usd is not None and case.mark is not None:
        size = round_down(min(proposal.size_usd, full_size * case.mark) / case.mark, asset.lot)
    else:
        size = full_size  # no usable price: likewise close the whole position
    return min(max(size, asset.lot), full_size)
