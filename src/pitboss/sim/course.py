"""`Course`: the interface between a replay and a venue: its ticks, and how the world advances between them.

A `Course` is a range of recorded time with an account in it; each venue has its own. The replay, its spans and its
speculation are the same for all of them.
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
"""Ticks without cost per transaction: a commit takes as long as several ticks."""

LEAP_COMMITS = 100
"""Records per transaction for policies and decision files, which are cheap to compute again."""

MAX_MODEL_ERRORS = 5


class Leg(Protocol):
    """The result of advancing along a part of the course: world, receipts, equity points, and the offset reached."""

    @property
    def world(self) -> Any: ...
    @property
    def receipts(self) -> tuple[Receipt, ...]: ...
    @property
    def equity(self) -> Curve: ...
    @property
    def index(self) -> int: ...


class Course(Protocol):
    """A range to replay, with the ports for its ticks. The venue numbers the steps of its world as
    offsets; every tick is at one of them.
    """

    @property
    def ports(self) -> Ports: ...
    @property
    def tick_at(self) -> Ints: ...
    @property
    def to_at(self) -> Instant: ...
    @property
    def planned(self) -> bool:
        """Whether the decider can plan its holds, so that they can be skipped."""
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
        """Whether the model is called at every tick, so that the cost of the remaining ticks can be relied on."""
        ...

    def tick_offsets(self) -> list[int]:
        """The offset of each tick: everything before that offset has happened when the tick begins."""
        ...

    def advance(self, world: Any, start: int, stop: int, pause_before_change: bool = False) -> Leg:
        """Advance the world from one offset to another; with a pause, only as long as the account does not change."""
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
        """Whether nothing is left to decide."""
        ...

    def early(self, receipts: Sequence[Receipt], until: Instant) -> tuple[Receipt, ...]:
        """The receipts of a leg that belong to the time up to this tick."""
        ...

    def unchanged(self, before: State, after: State) -> bool:
        """Whether a tick has changed nothing that later prompts show."""
        ...


def ticks_between(from_at: Instant, to_at: Instant, period_ms: int) -> Ints:
    """The multiples of a period in `[from_at, to_at)`, aligned to the epoch."""
    first = -(-from_at // period_ms) * period_ms
    return np.arange(first, to_at, period_ms, dtype=np.int64)
