"""What a perp run left behind: its ledger, and its fills in the public export form."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import Record
from pitboss.sim.outcome import Ledger, read_into


@dataclass(slots=True)
class PerpLedger(Ledger):
    """The ledger of a perp run."""

    duplicate_code: ClassVar[str] = "R12_DUPLICATE"


def read_ledger(records: Iterable[Record]) -> PerpLedger:
    """A ledger of stored records."""
    return read_into(PerpLedger(), records)


def fills(receipts: Iterable[Receipt]) -> Iterator[dict[str, Any]]:
    """Fills in the public export form."""
    for receipt in receipts:
        if receipt.kind == "filled":
            facts = receipt.facts
            yield {
                "at": receipt.at,
                "symbol": receipt.symbol,
                **{
                    key: facts[key]
                    for key in (
                        "side",
                        "size",
                        "price",
                        "fee_usd",
                        "slippage_usd",
                        "penalty_usd",
                        "liquidity",
                        "reason",
                    )
                },
            }
