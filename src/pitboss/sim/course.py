"""`Course`: the interface between a replay and a venue: its ticks, and how the world advances between them.

A `Course` is a range of recorded time with an account in it; each venue has its own. The replay, its spans and its
speculation are the same for all of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from pitboss.agent.decider import Plan
from pitboss.core.errors import InvariantError, UserError
from pitboss.core.instant import Instant, duration_text
from pitboss.core.leg import Leg
from pitboss.core.market import Ints
from pitboss.core.receipt import Receipt
from pitboss.core.state import State
from pitboss.sim.past import RunPast
from pitboss.sim.request import BacktestRequest
from pitboss.sim.speculation import Speculation
from pitboss.tick import Ports

COMMIT_RECORDS = 50
"""Ticks without cost per transaction: a commit takes as long as several ticks."""

LEAP_COMMITS = 100
"""Records per transaction for policies and decision files, which are cheap to compute again."""

MAX_MODEL_ERRORS = 5


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Course(ABC):
    """A range to replay, with the ports for its ticks. The venue numbers the steps of its world as
    offsets; every tick is at one of them.
    """

    ports: Ports
    tick_at: Ints
    to_at: Instant
    planned: bool = False
    """Whether the decider can plan its holds, so that they can be skipped."""
    commit_records: int = COMMIT_RECORDS
    speculation: Speculation | None = None
    most_errors: int = MAX_MODEL_ERRORS
    past: RunPast | None = None

    @property
    def asks_always(self) -> bool:
        """Whether the model is called at every tick, so that the cost of the remaining ticks can be relied on."""
        return True

    @abstractmethod
    def tick_offsets(self) -> Sequence[int]:
        """The offset of each tick: everything before that offset has happened when the tick begins."""

    @abstractmethod
    def advance(self, world: Any, start: int, stop: int, pause_before_change: bool = False) -> Leg:
        """Advance the world from one offset to another; with a pause, only as long as the account does not change."""

    def advance_past_fill(self, world: Any, start: int, choose_stop: Callable[[Any], int]) -> Leg | None:
        """The legs from an order to the next act in one, as a faster way to the same records; None if it takes several.

        `choose_stop` returns the offset at which to stop, from the world after the fill, or `start` if there is none.
        By default the replay advances in steps.
        """
        del world, start, choose_stop
        return None

    @abstractmethod
    def finish(self, world: Any, start: int) -> Leg:
        """What happens after the last tick, up to the end of the range."""

    def plan(self) -> Plan:
        """When a planned decider acts."""
        raise InvariantError(f"{self.ports.decider.name} cannot plan its ticks")

    def until(self, to_at: Instant) -> Self:
        """The same course up to a tick, without speculation and without closing positions at its end."""
        ticks = self.tick_at[self.tick_at < to_at]
        return replace(self, tick_at=ticks, to_at=to_at, commit_records=1, speculation=None)

    def early(self, receipts: Sequence[Receipt], until: Instant) -> tuple[Receipt, ...]:
        """The receipts of a leg that belong to the time up to this tick."""
        return tuple(receipt for receipt in receipts if receipt.at <= until)

    def unchanged(self, before: State, after: State) -> bool:
        """Whether a tick has changed nothing that later prompts show."""
        return after.world is before.world or after.world == before.world


def ticks_between(from_at: Instant, to_at: Instant, period_ms: int) -> Ints:
    """The multiples of a period in `[from_at, to_at)`, aligned to the epoch."""
    first = -(-from_at // period_ms) * period_ms
    return np.arange(first, to_at, period_ms, dtype=np.int64)


def ticks_of(request: BacktestRequest, every_ms: int) -> Ints:
    """The ticks of a request; a range without any is refused."""
    ticks = ticks_between(request.from_at, request.to_at, every_ms)
    if not len(ticks):
        raise UserError(f"no {duration_text(every_ms)} tick falls into the range", "choose a longer range")
    return ticks
