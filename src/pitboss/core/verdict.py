"""Verdicts of the engine on intents. A refusal is a value with a stable code, never an exception."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Literal

from pitboss.core.money import text
from pitboss.core.noun import noun

Outcome = Literal["allowed", "reduced", "refused", "noop"]


@noun
class Margin:
    """How far an intent is from one rule's limit: `left` below zero means beyond it, None means not applicable.

    Exact numbers, never rounded here; text only where a limit is not one number.
    """

    code: str
    limit: Decimal | str
    used: Decimal | str
    left: Decimal | None
    unit: str = ""


def brief_margins(margins: Iterable[Margin]) -> list[tuple[str, str | None, str]]:
    """Margins in the form that a record of an allowed intent stores: code, what is left, unit."""
    return [(margin.code, None if margin.left is None else text(margin.left), margin.unit) for margin in margins]


def margin_fields(margins: Iterable[Any]) -> list[dict[str, Any]]:
    """Margins of a stored verdict, in brief or full form, as dictionaries of their fields."""
    return [
        margin if isinstance(margin, dict) else dict(zip(("code", "left", "unit"), margin, strict=True))
        for margin in margins
    ]


@noun
class Verdict:
    """The judgement of one intent with every rule's margin.

    `detail` is a `core.rule_message.RuleMessage` if a rule of this process formatted it, and plain text once stored.
    """

    outcome: Outcome
    code: str | None = None
    detail: str = ""
    margins: tuple[Margin, ...] = ()
    order_id: str | None = None
    duplicate: bool = False
