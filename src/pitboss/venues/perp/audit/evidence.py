"""All data from which an agent's inputs are made, as one value: the market, the run's records, the recordings.

The audit makes copies of it that differ after an instant (`truncation`). It is not a view: it holds the future and is
never passed to an agent.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.instant import Instant
from pitboss.core.past import Past, Recording
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import Record
from pitboss.sim.past import RunPast, receipts_of
from pitboss.venues.perp.intents import TERMINAL

PRIOR, LATER = 50, 6
"""Records before and after an instant that a history is made of: few enough that `RunPast` never drops its oldest."""


class LazyColumns(Mapping[tuple[str, str], Any]):
    """Columns by key that are cut on first access. A cut makes new objects, so that no cache confuses them with others."""

    def __init__(
        self,
        inner: Mapping[tuple[str, str], Any],
        transform: Callable[[tuple[str, str], Any], Any],
        extra: Mapping[tuple[str, str], Any] | None = None,
    ) -> None:
        self._inner = inner
        self._transform = transform
        self._extra = extra or {}
        self._columns: dict[tuple[str, str], Any] = {}

    def __getitem__(self, key: tuple[str, str]) -> Any:
        if key in self._extra:
            return self._extra[key]
        columns = self._columns.get(key)
        if columns is None:
            columns = self._columns[key] = self._transform(key, self._inner[key])
        return columns

    def __contains__(self, key: object) -> bool:
        return key in self._extra or key in self._inner

    def __iter__(self) -> Iterator[tuple[str, str]]:
        yield from self._inner
        yield from self._extra

    def __len__(self) -> int:
        return len(self._inner) + len(self._extra)


class MemoryRecordings:
    """Recordings in memory: `core.past.Recordings`, with counts."""

    def __init__(self, recordings: Iterable[Recording] = ()) -> None:
        self.all = sorted(recordings, key=lambda recording: recording.known_at)

    @cached_property
    def questions(self) -> list[Recording]:
        """One recording of each distinct call."""
        return list(
            {(recording.server, recording.tool, recording.arguments): recording for recording in self.all}.values()
        )

    def count_known(self, at: Instant) -> int:
        """How many recordings were known by an instant."""
        return bisect_right(self.all, at, key=lambda recording: recording.known_at)

    def latest(self, server: str, tool: str, arguments: str, by: Instant) -> Recording | None:
        """The newest answer to exactly these arguments that was known by `by`."""
        call = (server, tool, arguments)
        for recording in reversed(self.all):
            if recording.known_at <= by and (recording.server, recording.tool, recording.arguments) == call:
                return recording
        return None

    def count(self, server: str, tool: str, by: Instant) -> int:
        """How many answers of a tool, to any arguments, were known by `by`."""
        return sum(
            1
            for recording in self.all
            if recording.known_at <= by and (recording.server, recording.tool) == (server, tool)
        )


PastOf = Callable[[Sequence[Record], Sequence[Receipt], Sequence[Record]], Past]
"""Makes a run's history from the records before a tick, the receipts up to it, and later records (or none)."""


def past_of(prior: Sequence[Record], receipts_before: Sequence[Receipt], later: Sequence[Record]) -> Past:
    """A run's history that has also been given later records."""
    past = RunPast(TERMINAL)
    past.begin(lambda: prior, len(prior))
    past.add_receipts(receipts_before)
    for number, record in enumerate(later):
        # The record of the tick itself repeats the receipts up to it.
        receipts = receipts_of(record)[len(receipts_before) if number == 0 else 0 :]
        past.add_tick(record, receipts, codec.loads(record.covered)["flags"])
    return past


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """The complete data. `records` are those of ticks, by time."""

    market: Market
    records: Sequence[Record]
    recordings: MemoryRecordings

    def split(self, at: Instant) -> tuple[Sequence[Record], Sequence[Record]]:
        """The records before an instant and those from it on; the record of a tick is made after its decision."""
        index = bisect_left(self.records, at, key=lambda record: record.tick_at)
        return self.records[max(0, index - PRIOR) : index], self.records[index : index + LATER]
