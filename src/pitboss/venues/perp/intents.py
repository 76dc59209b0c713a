"""The order proposal of the perp venue: its JSON Schema for models, and the strict parsing of untrusted values.

Parsing never raises: it returns a `Proposal` or the list of problems.
"""

from decimal import Decimal
from typing import Any

from pitboss.core.decision_format import DecisionFormat
from pitboss.core.noun import noun
from pitboss.core.vocabulary import Vocabulary

ACTIONS = ("open_long", "open_short", "close", "reduce", "cancel", "no_op")
OPENS = ("open_long", "open_short")
TERMINAL = "propose_order"
DESCRIPTION = (
    "Propose what to do this tick: open, close, reduce, cancel or no_op. Call it exactly once. "
    "The engine checks it against the hard limits and tells you next tick what it did."
)

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["action", "symbol", "reason"],
    "properties": {
        "action": {"type": "string", "enum": list(ACTIONS), "description": "What to do. no_op is a valid answer."},
        "symbol": {"type": "string", "description": "The market, such as BTC."},
        "size_usd": {"type": "number", "description": "Notional in USD. Required to open; for reduce give this or reduce_pct."},
        "leverage": {"type": "integer", "minimum": 1, "description": "Whole number within the cap; 1 when left out."},
        "order_type": {"type": "string", "enum": ["market", "limit"], "description": "market when left out; limit is for opens only."},
        "limit_price": {"type": "number", "description": "Required with order_type limit."},
        "stop_loss": {"type": "number", "description": "Price on the losing side of the market that closes the position."},
        "take_profit": {"type": "number", "description": "Price on the winning side of the market that closes the position."},
        "reduce_pct": {"type": "number", "exclusiveMinimum": 0, "maximum": 100, "description": "Share of the position to take off."},
        "order_id": {"type": "string", "description": "The working order to cancel."},
        "reason": {"type": "string", "description": "Why, in a sentence or two. Kept with the position."},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1, "description": "How sure you are, 0 to 1."},
    },
}  # fmt: skip
_VOCABULARY = Vocabulary.of_schema("a proposal", SCHEMA)


@noun
class Proposal:
    """One well-formed intent; its numbers are exact and finite, and the action determines which of them apply."""

    action: str
    symbol: str = ""
    reason: str = ""
    order_type: str = "market"
    size_usd: Decimal | None = None
    leverage: Decimal | None = None
    limit_price: Decimal | None = None
    stop_loss: Decimal | None = None
    take_profit: Decimal | None = None
    reduce_pct: Decimal | None = None
    order_id: str | None = None
    confidence: Decimal | None = None

    @property
    def opens(self) -> bool:
        """Whether it adds exposure."""
        return self.action in OPENS

    @property
    def side(self) -> int:
        """+1 for a long, −1 for a short."""
        return 1 if self.action == "open_long" else -1


def read_proposal(raw: Any) -> tuple[Proposal | None, list[str]]:
    """Parse an untrusted JSON value into a proposal or the list of all problems; a null field counts as absent."""
    texts, numbers, problems = _VOCABULARY.read(raw)
    if problems:
        return None, problems
    action = texts.get("action", "")
    if action not in ACTIONS:
        return None, [f"action must be one of {', '.join(ACTIONS)}"]
    problems = _action_problems(action, texts, numbers)
    if problems:
        return None, problems
    fields: dict[str, Any] = {**texts, **numbers}
    return Proposal(**fields), problems


def _action_problems(action: str, texts: dict[str, str], numbers: dict[str, Decimal]) -> list[str]:
    """Return the problems that depend on the action, such as absent fields that it requires."""
    problems: list[str] = []
    if "reason" not in texts:
        problems.append("reason is required")
    if "symbol" not in texts and action != "no_op":
        problems.append("symbol is required")
    order_type = texts.get("order_type", "market")
    if order_type not in ("market", "limit"):
        problems.append("order_type must be market or limit")
    elif order_type == "limit":
        if action not in OPENS:
            problems.append("order_type limit is for opens only")
        if "limit_price" not in numbers:
            problems.append("a limit order needs limit_price")
    if action in OPENS and "size_usd" not in numbers:
        problems.append(f"{action} needs size_usd")
    if action == "reduce":
        if ("size_usd" in numbers) == ("reduce_pct" in numbers):
            problems.append("reduce needs exactly one of size_usd and reduce_pct")
        elif "reduce_pct" in numbers and not 0 < numbers["reduce_pct"] <= 100:
            problems.append("reduce_pct must be above 0 and at most 100")
        elif "size_usd" in numbers and numbers["size_usd"] <= 0:
            problems.append("size_usd of a reduce must be above 0")
    if action == "cancel" and "order_id" not in texts:
        problems.append("cancel needs order_id")
    return problems


DECISION = DecisionFormat(TERMINAL, DESCRIPTION, SCHEMA, read_proposal, "no_op")
"""The decision format of this venue."""
