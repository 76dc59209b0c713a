"""The outcome of a perp run: its ledger, and its fills in the public export format."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import Record
from pitboss.sim.outcome import Ledger, read_into

FILL_FACTS = ("side", "size", "price", "fee_usd", "slippage_usd", "penalty_usd", "liquidity", "reason")


@dataclass(slots=True)
class PerpLedger(Ledger):
    """The ledger of a perp run."""

    duplicate_code: ClassVar[str] = "R12_DUPLICATE"


def read_ledger(records: Iterable[Record]) -> PerpLedger:
    """Build the ledger of a run from its stored records."""
    return read_into(PerpLedger(), records)


def fills(receipts: Iterable[Receipt]) -> Iterator[dict[str, Any]]:
    """Yield the fills in the public export format."""
    for receipt in receipts:
        if receipt.kind == "filled":
            facts = {name: receipt.facts[name] for name in FILL_FACTS}
            yield {"at": receipt.at, "symbol": receipt.symbol, **facts}
