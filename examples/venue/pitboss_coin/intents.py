"""One decision on the coin venue: a bet or a hold."""

from decimal import Decimal
from typing import Any

from pitboss.core.decision_format import DecisionFormat
from pitboss.core.noun import noun
from pitboss.core.vocabulary import Vocabulary

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["action"],
    "properties": {
        "action": {"type": "string", "enum": ["bet", "hold"], "description": "What to do. hold is a valid answer."},
        "side": {"type": "string", "enum": ["heads", "tails"], "description": "heads: the bar closes above its open."},
        "stake": {"type": "number", "exclusiveMinimum": 0, "description": "How much to bet, in USD."},
        "reason": {"type": "string", "description": "Why, in a sentence."},
    },
}
_WORDS = Vocabulary.of_schema("a bet", SCHEMA)


@noun
class Bet:
    """A well-formed decision."""

    action: str = ""
    side: str = ""
    stake: Decimal = Decimal(0)
    reason: str = ""


def read(raw: Any) -> tuple[Bet | None, list[str]]:
    """The decision, and everything that is wrong with it. It never raises: `raw` is what a model wrote."""
    texts, numbers, problems = _WORDS.read(raw)
    fields: dict[str, Any] = {**texts, **numbers}
    bet = Bet(**fields)
    if bet.action not in ("bet", "hold"):
        problems.append("action must be bet or hold")
    elif bet.action == "bet" and (bet.side not in ("heads", "tails") or bet.stake <= 0):
        problems.append("a bet needs a side, heads or tails, and a stake above 0")
    return (None if problems else bet), problems


DECISION = DecisionFormat("place_bet", "Bet on the next bar, or hold. Call it exactly once.", SCHEMA, read, "hold")
