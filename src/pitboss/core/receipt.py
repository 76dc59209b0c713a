"""Receipts: one small value for each event at the venue (accepted, filled, funded, …), in order of occurrence.

A command that a person gave to a deployment, a change of its caps, and a gap in the bars of a paper account are receipts too, so
that they are in the records of its run.
"""

from collections.abc import Mapping
from dataclasses import field
from decimal import Decimal
from typing import Literal

from pitboss.core.instant import Instant
from pitboss.core.noun import noun

ReceiptKind = Literal[
    "accepted",
    "filled",
    "rejected",
    "cancelled",
    "funded",
    "liquidated",
    "halted",
    "resumed",
    "settled",
    "command",
    "caps",
    "data_gap",
]


@noun
class Receipt:
    """One event at the venue. `facts` depend on the kind; amounts in them are exact."""

    kind: ReceiptKind
    at: Instant
    symbol: str = ""
    order_id: str = ""
    facts: Mapping[str, Decimal | str | int] = field(default_factory=dict[str, Decimal | str | int])
