"""The decision format of the predict venue: its JSON Schema for models, and a strict parser for untrusted values.

Parsing never raises: it returns a `PredictDecision` or the list of problems. It also accepts the original agent's
format (no market, `spend_dusdc` or `spendDusdc`, `confidence_0_1`), and an `expiry` in place of the market's id. A
field given under two names must have the same value in both.
"""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, Literal, cast

from pitboss.core.decision_format import DecisionFormat
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, parse_instant
from pitboss.core.noun import noun
from pitboss.core.vocabulary import Vocabulary
from pitboss.venues.predict.state import SIDES, Side

Action = Literal["mint", "redeem", "hold"]
ACTIONS: tuple[Action, ...] = ("mint", "redeem", "hold")
TERMINAL = "submit_decision"
DESCRIPTION = (
    "Submit your decision of this tick: mint contracts, redeem a position, or hold. Call it exactly once. "
    "The engine quotes the strike again, checks the hard limits and tells you next tick what it did."
)

EXPIRY = "expiry"
"""Read in place of `market_id`, and not offered to models, which are shown the ids."""
ALIASES = {"spend_dusdc": "spend", "spendDusdc": "spend", "confidence_0_1": "confidence"}

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["action", "reasoning"],
    "properties": {
        "action": {"type": "string", "enum": list(ACTIONS), "description": "What to do. hold is a valid answer."},
        "market_id": {"type": "string", "description": "The market, as list_btc_markets names it. Required to mint when several are open."},
        "side": {"type": "string", "enum": list(SIDES), "description": "YES wins if the settlement is above the strike, NO if it is at or below."},
        "strike": {"type": "number", "exclusiveMinimum": 0, "description": "Strike in USD, on the market's grid."},
        "spend": {"type": "number", "exclusiveMinimum": 0, "description": "How much to spend, in quote units. Required to mint; cut to the cap."},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1, "description": "Your probability that the chosen side wins."},
        "reasoning": {"type": "string", "description": "Why, in a sentence or two."},
    },
}  # fmt: skip
_OFFERED = Vocabulary.of_schema("a decision", SCHEMA, ALIASES)
_WORDS = replace(_OFFERED, texts=_OFFERED.texts | {EXPIRY})


@noun
class PredictDecision:
    """A well-formed decision. Numbers are exact and finite, in plain units. A redeem always covers the whole position."""

    action: Action
    reasoning: str
    market_id: str | None = None
    side: Side | None = None
    strike: Decimal | None = None
    spend: Decimal | None = None
    confidence: Decimal | None = None
    expiry_at: Instant | None = None


def read(raw: Any) -> tuple[PredictDecision | None, list[str]]:
    """Parse an untrusted JSON value into a decision, or return every problem. A null field counts as absent."""
    texts, numbers, wrong = _WORDS.read(raw)
    if wrong:
        return None, wrong
    action, side = texts.get("action", ""), texts.get("side")
    if action not in ACTIONS:
        return None, [f"action must be one of {', '.join(ACTIONS)}"]
    problems = _missing(action, texts, numbers)
    expiry_at = None
    try:
        expiry_at = parse_instant(texts[EXPIRY]) if EXPIRY in texts else None
    except UserError:
        problems.append("expiry must be a time, as 2026-05-27T13:00:00Z")
    if problems:
        return None, problems
    return PredictDecision(
        action,
        texts["reasoning"],
        texts.get("market_id"),
        cast("Side | None", side),
        numbers.get("strike"),
        numbers.get("spend"),
        numbers.get("confidence"),
        expiry_at,
    ), problems


def with_own_names(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a decision, those given under an alias also under their own name."""
    fields = dict(row)
    for alias, name in ALIASES.items():
        if fields.get(name) is None:
            fields[name] = row.get(alias)
    return fields


def _missing(action: Action, texts: dict[str, str], numbers: dict[str, Decimal]) -> list[str]:
    """Check the fields that the action requires."""
    problems: list[str] = []
    if "reasoning" not in texts:
        problems.append("reasoning is required")
    if "side" in texts and texts["side"] not in SIDES:
        problems.append("side must be YES or NO")
    if "confidence" in numbers and not 0 <= numbers["confidence"] <= 1:
        problems.append("confidence must be within 0 and 1")
    if action == "hold":
        return problems
    if "side" not in texts:
        problems.append(f"{action} needs side")
    if "strike" not in numbers:
        problems.append(f"{action} needs strike")
    elif numbers["strike"] <= 0:
        problems.append("strike must be above 0")
    if action == "mint":
        if "spend" not in numbers:
            problems.append("mint needs spend")
        elif numbers["spend"] <= 0:
            problems.append("spend must be above 0")
    return problems


DECISION = DecisionFormat(TERMINAL, DESCRIPTION, SCHEMA, read, "hold", (EXPIRY, *ALIASES))
"""The decision format of this venue."""
