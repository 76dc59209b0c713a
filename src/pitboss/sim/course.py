"""What a replay needs to know of a venue: where the ticks are, and how its world comes from one to the next.

A `Course` is a range of recorded time with an account in it; each venue has its own. The replay, its spans and its
speculation are the same over each.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from pitboss.agent.decider import Plan
from pitboss.core.curve import Curve
from pitboss.core.instant import Instant
from pitboss.core.market import Ints
from pitboss.core.receipt import Receipt
from pitboss.core.state import State
from pitboss.sim.past import RunPast
from pitboss.sim.speculation import Speculation
from pitboss.tick import Ports

COMMIT_RECORDS = 50
"""Ticks that paid for nothing share a transaction: a commit costs as much as several ticks."""

LEAP_COMMITS = 100
"""Records of policies and decision files are cheap to make again: they share larger transactions."""

MAX_MODEL_ERRORS = 5


class Leg(Protocol):
    """What happened on a part of the course: the world after it, the receipts, the equity, the place reached."""

    @property
    def world(self) -> Any: ...
    @property
    def receipts(self) -> tuple[Receipt, ...]: ...
    @property
    def equity(self) -> Curve: ...
    @property
    def index(self) -> int: ...


class Course(Protocol):
    """A range to replay, and the ports to tick with. The venue counts places; every tick stands at one of them."""

    @property
    def ports(self) -> Ports: ...
    @property
    def tick_at(self) -> Ints: ...
    @property
    def to_at(self) -> Instant: ...
    @property
    def planned(self) -> bool:
        """Whether the decider foresees its holds, so that they can be leapt over."""
        ...

    @property
    def commit_records(self) -> int: ...
    @property
    def speculation(self) -> Speculation | None: ...
    @property
    def most_errors(self) -> int: ...
    @property
    def past(self) -> RunPast | None: ...
    @property
    def asks_always(self) -> bool:
        """Whether somebody is asked at every tick, so that what the rest will cost can be counted on."""
        ...

    def places(self) -> list[int]:
        """Where each tick stands: all before that place has happened when it begins."""
        ...

    def advance(self, world: Any, start: int, stop: int, pause_before_change: bool = False) -> Leg:
        """What the world does from one place to another; with a pause, no further than the account stays as it is."""
        ...

    def finish(self, world: Any, start: int) -> Leg:
        """What happens after the last tick, up to the end of the range."""
        ...

    def plan(self) -> Plan:
        """When a planned decider acts."""
        ...

    def until(self, to_at: Instant) -> "Course":
        """The same course up to a tick, without speculation and without closing positions at its end."""
        ...

    def over(self, world: Any) -> bool:
        """Whether nothing is left to decide about."""
        ...

    def early(self, receipts: Sequence[Receipt], until: Instant) -> tuple[Receipt, ...]:
        """Those of a leg's receipts that belong to the time up to this tick."""
        ...

    def unchanged(self, before: State, after: State) -> bool:
        """Whether a tick has left everything as it was that the prompts after it tell of."""
        ...


def ticks_between(from_at: Instant, to_at: Instant, period_ms: int) -> Ints:
    """The multiples of a period in `[from_at, to_at)`, aligned to the epoch."""
    first = -(-from_at // period_ms) * period_ms
    return np.arange(first, to_at, period_ms, dtype=np.int64)
