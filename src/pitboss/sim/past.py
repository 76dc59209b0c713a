"""The history of a run while it runs: its newest decisions and all its receipts in memory, for tools that look back.

The replay passes every record to `RunPast` after its tick; a record is decoded only when a tool asks for it, so a run
whose tools never look back pays for two appends per tick. A resumed run reads the same records back from its journal,
so it answers like one that never stopped. This is not the complete history of a run, which is its journal.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any

from pitboss.core import codec
from pitboss.core.instant import Instant, iso
from pitboss.core.intent import NOT_ASKED
from pitboss.core.past import DECISIONS, PastDecision
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import Record


@dataclass(slots=True)
class _Entry:
    """A record, and its decoded form once it was needed."""

    record: Record
    decoded: PastDecision | None = None

    def decision(self, decision_tool: str) -> PastDecision:
        if self.decoded is None:
            self.decoded = past_decision(self.record, decision_tool)
        return self.decoded


class RunPast:
    """`core.past.Past` of a run in progress."""

    def __init__(self, decision_tool: str) -> None:
        """`decision_tool` is the tool by which the model decides: its calls are not listed among the tool calls."""
        self._decision_tool = decision_tool
        self._decisions: deque[_Entry] = deque(maxlen=DECISIONS)
        self._receipts: list[Receipt] = []
        self._recorded = 0
        """How many of the receipts are in the form in which a record returns them."""
        self._earlier: tuple[Callable[[], Iterable[Record]], int] | None = None

    # Called by the replay ---------------------------------------------------------------------------------------------

    def begin(self, records: Callable[[], Iterable[Record]], count: int) -> None:
        """Reset; the history is the first `count` of these records, which are read on the first query."""
        self._decisions.clear()
        self._receipts.clear()
        self._recorded = 0
        self._earlier = (records, count) if count else None

    def add_receipts(self, receipts: Iterable[Receipt]) -> None:
        """Add what the world did up to a tick that is about to begin."""
        self._receipts.extend(receipts)

    def add_tick(self, record: Record, receipts: Iterable[Receipt], flags: Collection[str]) -> None:
        """Add a finished tick: its record, and the receipts of its decision."""
        self._receipts.extend(receipts)
        if NOT_ASKED.isdisjoint(flags):
            self._decisions.append(_Entry(record))

    def _load(self) -> None:
        """Read the records from before this process and put them before the newer ones."""
        if self._earlier is None:
            return
        records, count = self._earlier
        self._earlier = None
        newer_decisions, newer_receipts = list(self._decisions), self._receipts
        self._decisions.clear()
        self._receipts = []
        for record in islice(records(), count):
            self._receipts.extend(receipts_of(record))
            if was_asked(record):
                self._decisions.append(_Entry(record))
        self._recorded = len(self._receipts)
        self._decisions.extend(newer_decisions)
        self._receipts.extend(newer_receipts)

    # Called by tools --------------------------------------------------------------------------------------------------

    def decisions(self, before: Instant, count: int | None = None) -> Sequence[PastDecision]:
        """The newest decisions made before `before`, newest first; without a count all that are in memory."""
        self._load()
        early = (entry for entry in reversed(self._decisions) if entry.record.tick_at < before)
        return [entry.decision(self._decision_tool) for entry in islice(early, count)]

    def receipts(self, before: Instant, count: int | None = None) -> Sequence[Receipt]:
        """The newest receipts before `before`, newest first; all without a count. Amounts are texts, as recorded."""
        self._load()
        self._receipts[self._recorded :] = map(_as_recorded, self._receipts[self._recorded :])
        self._recorded = len(self._receipts)
        early = (receipt for receipt in reversed(self._receipts) if receipt.at < before)
        return list(islice(early, count))

    def snapshot(self, at: Instant, before: Instant) -> dict[str, Any] | None:
        """Everything recorded about the decision at `at`, if it is still in memory."""
        self._load()
        if at >= before:
            return None
        return next((body_of(entry.record) for entry in self._decisions if entry.record.tick_at == at), None)

    def commands(self, before: Instant, count: int) -> Sequence[str]:
        """The newest commands of people before `before`, newest first; a simulation has none."""
        early = (receipt for receipt in self.receipts(before) if receipt.kind == "command")
        return [command_text(receipt) for receipt in islice(early, count)]


# Reading records ------------------------------------------------------------------------------------------------------


def was_asked(record: Record) -> bool:
    """Whether a record is a tick at which the decider was called."""
    return record.kind == "tick" and NOT_ASKED.isdisjoint(codec.loads(record.covered)["flags"])


def receipts_of(record: Record) -> list[Receipt]:
    """The receipts of a record, in the order in which they came."""
    return [Receipt(**receipt) for receipt in codec.loads(record.covered).get("receipts", ())]


def command_text(receipt: Receipt) -> str:
    """A command of a person on one line."""
    facts = receipt.facts
    reason = f": {facts['reason']}" if facts.get("reason") else ""
    return f"{iso(receipt.at)} {facts['command']} by {facts['by']}{reason}"


def _as_recorded(receipt: Receipt) -> Receipt:
    """A new receipt in the form in which a record returns it, so that a resumed run gives the same answers."""
    return Receipt(receipt.kind, receipt.at, receipt.symbol, receipt.order_id, codec.plain(receipt.facts))


def body_of(record: Record) -> dict[str, Any]:
    """Everything a record holds, as plain values."""
    return {**record.body(), "tick_at": record.tick_at}


def past_decision(record: Record, decision_tool: str) -> PastDecision:
    """A tick's record as one decision."""
    body, extra = codec.loads_exact(record.covered), codec.loads(record.extra)
    proposals, verdicts, before = body["proposals"], body["verdicts"], body["before"]
    is_hold = not verdicts or verdicts[0]["outcome"] == "noop"
    cost = extra["cost_usd"]
    result: dict[str, Any] = {"outcome": "noop"}
    if not is_hold:
        verdict = verdicts[0]
        result = {
            "outcome": "accepted" if verdict["outcome"] in ("allowed", "reduced") else "refused",
            "code": verdict["code"] or "",
            "detail": verdict["detail"],
            "proposal": codec.dumps(codec.number_fragments(proposals[0])).decode(),
        }
    return PastDecision(
        at=record.tick_at,
        text=(_reason(proposals) if is_hold else "") or body["text"],
        flags=tuple(body["flags"]),
        calls=tuple(call["name"] for step in body["steps"] for call in step["calls"] if call["name"] != decision_tool),
        equity_usd=Decimal(before["equity_usd"] if "equity_usd" in before else before["equity"]),
        cost_usd=None if cost is None else Decimal(cost),
        **result,
    )


def _reason(proposals: Sequence[Any]) -> str:
    """The reason given with a no-op."""
    first = proposals[0] if proposals else None
    reason = (first.get("reason") or first.get("reasoning")) if isinstance(first, dict) else None
    return reason if isinstance(reason, str) else ""
