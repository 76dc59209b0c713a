"""The decision itself."""

from pitboss.tools.define import define_decision
from pitboss_coin.intents import DECISION

TOOL = define_decision(
    DECISION, ui_hint="Always offered.", example={"action": "bet", "side": "heads", "stake": 5, "reason": "two tails"}
)
