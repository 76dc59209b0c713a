"""The rules of the coin venue, one file each, and the book that binds them to an account."""

from decimal import Decimal

from pitboss.core.noun import noun
from pitboss.core.rulebook import RuleBook, rules_of
from pitboss_coin.intents import DECISION
from pitboss_coin.world import CoinWorld

RULES = rules_of(__name__)


@noun
class CoinRuleBook(RuleBook):
    """C1 and C2 over one account."""

    world: CoinWorld
    max_stake: Decimal

    decision = DECISION
    rules = RULES
