"""What the engine says to an intent. A refusal is a value with a stable code, never an exception."""

from decimal import Decimal
from typing import Literal

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


@noun
class Verdict:
    """The judgement of one intent with every rule's margin."""

    outcome: Outcome
    code: str | None = None
    detail: str = ""
    margins: tuple[Margin, ...] = ()
    order_id: str | None = None
    duplicate: bool = False
