"""The outcome of a perp run: its ledger, and its fills in the public export format."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

from pitboss.core.instant import Instant
from pitboss.core.money import ZERO
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import Record, RecordKind
from pitboss.sim.outcome import Ledger, read_into
from pitboss.venues.perp.trades import ADOPTED, amount

FILL_FACTS = ("side", "size", "price", "fee_usd", "slippage_usd", "penalty_usd", "liquidity", "reason")


@dataclass(slots=True)
class PerpLedger(Ledger):
    """The ledger of a perp run, with the account that it began with: a deployment may begin with positions of its account."""

    duplicate_code: ClassVar[str] = "R12_DUPLICATE"

    first_usd: Decimal | None = None
    """The equity before the first decision."""
    first_at: Instant = 0
    last_at: Instant = 0

    def take(
        self,
        kind: RecordKind,
        body: Mapping[str, Any],
        receipts: Iterable[Receipt],
        cost_usd: Decimal | None = ZERO,
        saved_usd: Decimal = ZERO,
    ) -> None:
        """Add one record. Positions that the first account has already are added as fills at their marks."""
        at = body.get("tick_at", 0)
        if self.first_usd is None and (account := body.get("before") or body.get("after")):
            receipts = list(receipts)
            self.first_usd, self.first_at = amount(account["equity_usd"]), at
            happened = before_sending(receipts) if "before" in body else receipts
            self.receipts.extend(adopted(account, [*self.receipts, *happened], at))
        self.last_at = max(self.last_at, at)
        Ledger.take(self, kind, body, receipts, cost_usd, saved_usd)


def read_ledger(records: Iterable[Record]) -> PerpLedger:
    """Build the ledger of a run from its stored records."""
    return read_into(PerpLedger(), records)


def before_sending(receipts: Sequence[Receipt]) -> Sequence[Receipt]:
    """Return the receipts of a tick from before its own decision: up to the first order that it sent or cancelled."""
    for index, receipt in enumerate(receipts):
        if receipt.kind == "accepted" or (receipt.kind == "cancelled" and receipt.facts.get("reason") == "requested"):
            return receipts[:index]
    return receipts


def adopted(account: Mapping[str, Any], receipts: Iterable[Receipt], at: Instant) -> list[Receipt]:
    """Return a fill at its mark for every size of a recorded account that its receipts do not explain."""
    positions = account.get("positions")
    if not positions:
        return []
    sizes = {symbol: amount(position["size"]) for symbol, position in positions.items()}
    for receipt in receipts:
        if receipt.kind == "filled" and receipt.symbol in sizes:
            size = amount(receipt.facts["size"])
            sizes[receipt.symbol] -= size if receipt.facts["side"] == "buy" else -size
    return [_adoption(symbol, size, amount(positions[symbol]["mark"]), at) for symbol, size in sizes.items() if size]


def _adoption(symbol: str, size: Decimal, mark: Decimal, at: Instant) -> Receipt:
    facts: dict[str, Decimal | str | int] = {
        "side": "buy" if size > 0 else "sell",
        "size": abs(size),
        "price": mark,
        "fee_usd": ZERO,
        "slippage_usd": ZERO,
        "penalty_usd": ZERO,
        "liquidity": "taker",
        "reason": ADOPTED,
    }
    return Receipt("filled", at, symbol, "", facts)


def fills(receipts: Iterable[Receipt]) -> Iterator[dict[str, Any]]:
    """Yield the fills in the public export format."""
    for receipt in receipts:
        if receipt.kind == "filled":
            facts = {name: receipt.facts[name] for name in FILL_FACTS}
            yield {"at": receipt.at, "symbol": receipt.symbol, **facts}
