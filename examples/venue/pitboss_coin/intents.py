"""One decision on the coin venue: a bet or a hold."""

from decimal import Decimal
from typing import Any

from pitboss.core.decision_format import DecisionFormat
from pitboss.core.noun import noun
from pitboss.core.vocabulary import Vocabulary

TOOL = "place_bet"
_WORDS = Vocabulary("a bet", frozenset({"action", "side", "reason"}), frozenset({"stake"}))
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


@noun
class Bet:
    """A well-formed decision."""

    action: str
    side: str = ""
    stake: Decimal = Decimal(0)


def read(raw: Any) -> tuple[Bet | None, list[str]]:
    """The decision, and everything that is wrong with it."""
    texts, numbers, problems = _WORDS.read(raw)
    action, side = texts.get("action"), texts.get("side", "")
    if action not in ("bet", "hold"):
        problems.append("action must be bet or hold")
    elif action == "bet":
        if side not in ("heads", "tails"):
            problems.append("side must be heads or tails")
        if numbers.get("stake", Decimal(0)) <= 0:
            problems.append("stake must be above 0")
    return (None, problems) if problems else (Bet(str(action), side, numbers.get("stake", Decimal(0))), [])


DECISION = DecisionFormat(
    TOOL,
    "Bet on the next bar, or hold. Call it exactly once.",
    SCHEMA,
    read,
    "hold",
    ("action", "side", "stake", "reason"),
)
