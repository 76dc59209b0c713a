"""What the world answered: one small record for each thing that happened, in the order in which it happened."""

from collections.abc import Mapping
from dataclasses import field
from decimal import Decimal
from typing import Literal

from pitboss.core.instant import Instant
from pitboss.core.noun import noun

ReceiptKind = Literal[
    "accepted", "filled", "rejected", "cancelled", "funded", "liquidated", "halted", "resumed", "settled"
]


@noun
class Receipt:
    """One thing that happened. `facts` depend on the kind; amounts in them are exact."""

    kind: ReceiptKind
    at: Instant
    symbol: str = ""
    order_id: str = ""
    facts: Mapping[str, Decimal | str | int] = field(default_factory=dict[str, Decimal | str | int])
