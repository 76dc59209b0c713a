"""Everything that an agent could be told something from, as one value: the market, the run's records, the recordings.

The audit makes copies of it that differ after an instant (`copies`). It is not a view: nobody is handed this whole.
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
"""Records before and after an instant that a past is made of: few enough that a past never drops its oldest."""


class Lazy(Mapping[tuple[str, str], Any]):
    """Columns by key that are cut when first asked for. A cut makes new objects, so no memo can take them for others."""

    def __init__(
        self,
        inner: Mapping[tuple[str, str], Any],
        cut: Callable[[tuple[str, str], Any], Any],
        extra: Mapping[tuple[str, str], Any] | None = None,
    ) -> None:
        self._inner = inner
        self._cut = cut
        self._extra = extra or {}
        self._made: dict[tuple[str, str], Any] = {}

    def __getitem__(self, key: tuple[str, str]) -> Any:
        if key in self._extra:
            return self._extra[key]
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._cut(key, self._inner[key])
        return made

    def __contains__(self, key: object) -> bool:
        return key in self._extra or key in self._inner

    def __iter__(self) -> Iterator[tuple[str, str]]:
        yield from self._inner
        yield from self._extra

    def __len__(self) -> int:
        return len(self._inner) + len(self._extra)


class HeldRecordings:
    """Recordings in memory, by question and time: `core.past.Recordings`, and how many there are."""

    def __init__(self, recordings: Iterable[Recording] = ()) -> None:
        self.all = sorted(recordings, key=lambda one: one.known_at)

    @cached_property
    def questions(self) -> list[Recording]:
        """One recording of every question that was ever asked."""
        return list({(one.server, one.tool, one.arguments): one for one in self.all}.values())

    def known(self, at: Instant) -> int:
        """How many were known by an instant."""
        return bisect_right(self.all, at, key=lambda one: one.known_at)

    def latest(self, server: str, tool: str, arguments: str, by: Instant) -> Recording | None:
        """The newest answer to exactly these arguments that was known by `by`."""
        asked = (server, tool, arguments)
        for one in reversed(self.all):
            if one.known_at <= by and (one.server, one.tool, one.arguments) == asked:
                return one
        return None

    def count(self, server: str, tool: str, by: Instant) -> int:
        """How many answers of a tool, to whatever arguments, were known by `by`."""
        return sum(1 for one in self.all if one.known_at <= by and (one.server, one.tool) == (server, tool))


PastOf = Callable[[Sequence[Record], Sequence[Receipt], Sequence[Record]], Past]
"""A past from the records before a tick, what has happened up to it, and records that come later (or none)."""


def past_of(prior: Sequence[Record], happened: Sequence[Receipt], later: Sequence[Record]) -> Past:
    """A run's own past, as it would be if it had been told what comes later as well."""
    past = RunPast(TERMINAL)
    past.begin(lambda: prior, len(prior))
    past.happened(happened)
    for place, record in enumerate(later):
        # the record of the tick itself repeats what had happened up to it
        receipts = receipts_of(record)[len(happened) if place == 0 else 0 :]
        past.take(record, receipts, codec.loads(record.covered)["flags"])
    return past


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What there is. `records` are those of ticks, by time."""

    market: Market
    records: Sequence[Record]
    recordings: HeldRecordings

    def split(self, at: Instant) -> tuple[Sequence[Record], Sequence[Record]]:
        """The records before an instant and those from it on: the record of a tick is made after it was answered."""
        place = bisect_left(self.records, at, key=lambda record: record.tick_at)
        return self.records[max(0, place - PRIOR) : place], self.records[place : place + LATER]
