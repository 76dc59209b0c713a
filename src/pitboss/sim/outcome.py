"""From stored records to what a run left behind: the only input of metrics, reports and exports."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np

from pitboss.core import codec
from pitboss.core.instant import Instant
from pitboss.core.market import Floats
from pitboss.core.money import ZERO
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import Record, RecordKind
from pitboss.sim.metrics import Outcome


@dataclass(slots=True)
class Ledger:
    """What the records of a run say, in order: filled while they are made, or read back from storage."""

    equity_at: list[Instant] = field(default_factory=list[Instant])
    equity_usd: list[str] = field(default_factory=list[str])
    receipts: list[Receipt] = field(default_factory=list[Receipt])
    ticks: int = 0
    asked: int = 0
    proposed: int = 0
    accepted: int = 0
    rejections: Counter[str] = field(default_factory=Counter[str])
    noops: Counter[str] = field(default_factory=Counter[str])
    cost_usd: Decimal | None = ZERO

    def take(
        self, kind: RecordKind, body: Mapping[str, Any], receipts: Iterable[Receipt], cost_usd: Decimal | None
    ) -> None:
        """Add one record but for its equity: its covered half as it was sealed or as it was read back."""
        self.receipts.extend(receipts)
        if kind == "span":
            self.ticks += body["ticks"]
            self.noops.update(body["flags"])
            plain = body["ticks"] - sum(body["flags"].values())
            if plain:
                self.noops[UNFLAGGED] += plain
        elif kind == "tick":
            self._take_tick(body)
            self.cost_usd = None if cost_usd is None or self.cost_usd is None else self.cost_usd + cost_usd

    def _take_tick(self, body: Mapping[str, Any]) -> None:
        flags = body["flags"]
        self.ticks += 1
        self.asked += not ("asleep" in flags or "ruined" in flags)
        judged = [verdict for verdict in body["verdicts"] if verdict["outcome"] != "noop"]
        if not judged:
            self.noops[flags[0] if flags else UNFLAGGED] += 1
        for verdict in judged:
            self.proposed += 1
            if verdict["duplicate"]:
                self.rejections["R12_DUPLICATE"] += 1
            elif verdict["outcome"] == "refused":
                self.rejections[verdict["code"]] += 1
            else:
                self.accepted += 1

    def outcome(self, from_at: Instant, to_at: Instant, interval_ms: int, initial_usd: Decimal) -> Outcome:
        """The input of the metrics."""
        return Outcome(
            from_at=from_at,
            to_at=to_at,
            interval_ms=interval_ms,
            initial_usd=initial_usd,
            equity_at=self.equity_at,
            equity_usd=floats(self.equity_usd),
            receipts=self.receipts,
            ticks=self.ticks,
            proposed=self.proposed,
            accepted=self.accepted,
            rejections_by_rule=dict(sorted(self.rejections.items())),
            noops_by_flag=dict(sorted(self.noops.items())),
            ai_cost_usd=self.cost_usd,
            decisions_asked=self.asked,
        )


def floats(amounts: Sequence[str]) -> Floats:
    """The nearest floats to exact amounts: `float(text)` of each, at a tenth of the cost."""
    return np.array(codec.loads(f"[{','.join(amounts)}]"), dtype=np.float64)


UNFLAGGED = "plain"
"""The flag under which ordinary no-ops are counted."""


def read_ledger(records: Iterable[Record]) -> Ledger:
    """Go through stored records once."""
    ledger = Ledger()
    for record in records:
        body = codec.loads(record.covered)
        if body["equity"]:
            times, values = zip(*body["equity"], strict=True)
            ledger.equity_at.extend(times)
            ledger.equity_usd.extend(values)
        receipts = [Receipt(**receipt) for receipt in body["receipts"]]
        cost = codec.loads(record.extra)["cost_usd"] if record.kind == "tick" else "0"
        ledger.take(record.kind, body, receipts, None if cost is None else Decimal(cost))
    return ledger


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
