"""From stored records to what a run left behind: the only input of metrics, reports and exports."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np

from pitboss.core import codec
from pitboss.core.instant import Instant
from pitboss.core.market import Floats
from pitboss.core.money import ZERO
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import Record
from pitboss.sim.metrics import Outcome


@dataclass(slots=True)
class Ledger:
    """Everything read off the records of a run, in order."""

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
    """Go through the records once."""
    ledger = Ledger()
    for record in records:
        body = codec.loads(record.covered)
        if body["equity"]:
            times, values = zip(*body["equity"], strict=True)
            ledger.equity_at.extend(times)
            ledger.equity_usd.extend(values)
        ledger.receipts.extend(Receipt(**receipt) for receipt in body["receipts"])
        if record.kind == "span":
            ledger.ticks += body["ticks"]
            flagged = sum(body["flags"].values())
            ledger.noops.update(body["flags"])
            ledger.noops[UNFLAGGED] += body["ticks"] - flagged
        elif record.kind == "tick":
            _count_tick(ledger, body)
            cost = codec.loads(record.extra)["cost_usd"]
            ledger.cost_usd = None if cost is None or ledger.cost_usd is None else ledger.cost_usd + Decimal(cost)
    ledger.noops = +ledger.noops
    return ledger


def _count_tick(ledger: Ledger, body: dict[str, Any]) -> None:
    ledger.ticks += 1
    if not {"asleep", "ruined"} & set(body["flags"]):
        ledger.asked += 1
    judged = [verdict for verdict in body["verdicts"] if verdict["outcome"] != "noop"]
    if not judged:
        ledger.noops[body["flags"][0] if body["flags"] else UNFLAGGED] += 1
    for verdict in judged:
        ledger.proposed += 1
        if verdict["outcome"] == "refused":
            ledger.rejections[verdict["code"]] += 1
        else:
            ledger.accepted += 1


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
