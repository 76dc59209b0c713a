"""Receipts: one small value for each event at the venue (accepted, filled, funded, …), in order of occurrence.

A command that a person gave to a deployment, a change of its caps, and a stretch of bars that a paper account could not be given
are some too, so that the records of its run tell them.
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
