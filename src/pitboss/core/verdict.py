"""What the engine says to an intent. A refusal is a value with a stable code, never an exception."""

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


def brief(margins: Iterable[Margin]) -> list[tuple[str, str | None, str]]:
    """Margins as a record of something allowed keeps them: code, what is left, unit."""
    return [(margin.code, None if margin.left is None else text(margin.left), margin.unit) for margin in margins]


def unfold(margins: Iterable[Any]) -> list[dict[str, Any]]:
    """Margins of a stored verdict, brief or whole, by their names."""
    return [
        margin if isinstance(margin, dict) else dict(zip(("code", "left", "unit"), margin, strict=True))
        for margin in margins
    ]


@noun
class Verdict:
    """The judgement of one intent with every rule's margin."""

    outcome: Outcome
    code: str | None = None
    detail: str = ""
    margins: tuple[Margin, ...] = ()
    order_id: str | None = None
    duplicate: bool = False
