"""The history of a stored run, for tool calls outside of the run.

Records are read from the newest back, as few as possible. It answers as the run itself would have at that tick
(`sim.past.RunPast`), but has every decision.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from pitboss.core.instant import Instant
from pitboss.core.past import PastDecision
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import Record
from pitboss.sim.past import body_of, command_text, past_decision, receipts_of, was_asked
from pitboss.store import recent_records
from pitboss.store.database import Database


class StoredPast:
    """`core.past.Past` of a run in the database. `base_ms` is the length of the bars that it was simulated on."""

    def __init__(self, database: Database, run_id: str, base_ms: int, decision_tool: str) -> None:
        self._decision_tool = decision_tool
        self._database = database
        self._run_id = run_id
        self._base_ms = base_ms

    def decisions(self, before: Instant, count: int | None = None) -> Sequence[PastDecision]:
        """The newest decisions made before `before`, newest first; all without a count."""
        ticks = (record for record in self._newest(before - 1) if was_asked(record))
        return [past_decision(record, self._decision_tool) for record in islice(ticks, count)]

    def receipts(self, before: Instant, count: int | None = None) -> Sequence[Receipt]:
        """The newest receipts before `before`, newest first; all without a count.

        An event within a bar carries the time of the bar's open and is known at its close, so an instant within a bar
        is treated as the bar's open.
        """
        until = before - before % self._base_ms
        early = (
            receipt
            for record in self._newest(before)
            for receipt in reversed(receipts_of(record))
            if receipt.at < until
        )
        return list(islice(early, count))

    def snapshot(self, at: Instant, before: Instant) -> dict[str, Any] | None:
        """Everything recorded about the decision at `at`, or None if there is none before `before`."""
        record = recent_records.at(self._database, self._run_id, at) if at < before else None
        return body_of(record) if record is not None and was_asked(record) else None

    def commands(self, before: Instant, count: int) -> Sequence[str]:
        """The newest commands of people before `before`, newest first; a simulation has none."""
        early = (receipt for receipt in self.receipts(before) if receipt.kind == "command")
        return [command_text(receipt) for receipt in islice(early, count)]

    def _newest(self, until: Instant) -> Iterator[Record]:
        return recent_records.newest(self._database, self._run_id, until)
