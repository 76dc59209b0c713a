"""`Ledger`: the totals of a run's records. The only input of metrics, reports and exports."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar, TypeVar

from pitboss.core import codec
from pitboss.core.curve import Piece, columns
from pitboss.core.instant import Instant
from pitboss.core.intent import NOT_ASKED
from pitboss.core.money import ZERO
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import Record, RecordKind
from pitboss.sim.metrics import Outcome


@dataclass(slots=True)
class Ledger:
    """The contents of a run's records, in order: filled while they are made, or read back from storage."""

    equity: list[Piece] = field(default_factory=list[Piece])
    receipts: list[Receipt] = field(default_factory=list[Receipt])
    ticks: int = 0
    asked: int = 0
    proposed: int = 0
    accepted: int = 0
    rejections: Counter[str] = field(default_factory=Counter[str])
    noops: Counter[str] = field(default_factory=Counter[str])
    cost_usd: Decimal | None = ZERO
    saved_usd: Decimal = ZERO
    rejected_settings: set[str] = field(default_factory=set[str])
    """Settings that the model's provider rejected."""
    duplicate_code: ClassVar[str] = "duplicate"
    """Code of the venue's rule about repeated intents."""

    def take(
        self,
        kind: RecordKind,
        body: Mapping[str, Any],
        receipts: Iterable[Receipt],
        cost_usd: Decimal | None = ZERO,
        saved_usd: Decimal = ZERO,
    ) -> None:
        """Add one record, either newly made or read back from storage."""
        self.receipts.extend(receipts)
        self.equity.extend(body["equity"])
        if kind == "span":
            self.ticks += body["ticks"]
            plain = body["ticks"]
            for flag, ticks in body["flags"].items():
                self.noops[flag] += ticks
                plain -= ticks
            if plain:
                self.noops[UNFLAGGED] += plain
        elif kind == "tick":
            self._take_tick(body)
            self.cost_usd = None if cost_usd is None or self.cost_usd is None else self.cost_usd + cost_usd
            self.saved_usd += saved_usd

    def _take_tick(self, body: Mapping[str, Any]) -> None:
        flags = body["flags"]
        self.ticks += 1
        self.asked += NOT_ASKED.isdisjoint(flags)
        is_hold = True
        for verdict in body["verdicts"]:
            outcome = verdict["outcome"]
            if outcome == "noop":
                continue
            is_hold = False
            self.proposed += 1
            if verdict["duplicate"]:
                self.rejections[self.duplicate_code] += 1
            elif outcome == "refused":
                self.rejections[verdict["code"]] += 1
            else:
                self.accepted += 1
        if is_hold:
            self.noops[flags[0] if flags else UNFLAGGED] += 1

    def outcome(self, from_at: Instant, to_at: Instant, interval_ms: int, initial_usd: Decimal) -> Outcome:
        """The input of the metrics."""
        at, usd = columns(self.equity)
        return Outcome(
            from_at=from_at,
            to_at=to_at,
            interval_ms=interval_ms,
            initial_usd=initial_usd,
            equity_at=at,
            equity_usd=usd,
            receipts=self.receipts,
            ticks=self.ticks,
            proposed=self.proposed,
            accepted=self.accepted,
            rejections_by_rule=dict(sorted(self.rejections.items())),
            noops_by_flag=dict(sorted(self.noops.items())),
            ai_cost_usd=self.cost_usd,
            decisions_asked=self.asked,
            rejected_settings=tuple(sorted(self.rejected_settings)),
        )


UNFLAGGED = "plain"
"""The flag under which ordinary no-ops are counted."""


L = TypeVar("L", bound=Ledger)


def read_into(ledger: L, records: Iterable[Record]) -> L:
    """Add stored records to a ledger, in order, and return it."""
    for record in records:
        body = codec.loads(record.covered)
        receipts = [Receipt(**receipt) for receipt in body["receipts"]]
        extra = codec.loads(record.extra)
        cost, saved = extra["cost_usd"], Decimal(extra.get("saved_usd", "0"))
        ledger.take(record.kind, body, receipts, None if cost is None else Decimal(cost), saved)
        ledger.rejected_settings.update(stored_rejections(extra))
    return ledger


def stored_rejections(extra: Mapping[str, Any]) -> list[str]:
    """The rejected settings in the part of a record that its digest does not cover."""
    steps = [*(extra.get("steps") or ()), *((extra.get("reflection") or {}).get("steps") or ())]
    return [str(name)[:80] for step in steps for name in step.get("rejected_settings") or ()]
