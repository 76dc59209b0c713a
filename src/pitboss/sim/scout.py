"""The scout: simulates ahead from a tick as if every decision were a hold, and collects the requests on the way.

It decides nothing and calls no model; `sim.speculator` sends the requests.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pitboss.core.market import plain_ints
from pitboss.core.receipt import Receipt
from pitboss.core.state import State
from pitboss.sim.course import Course
from pitboss.tick import foresee

SCAN = 256
"""Most ticks to look ahead for one at which the model will be called."""


@dataclass(frozen=True, slots=True)
class SpeculativeTick:
    """A tick at which the model will be called if only holds come before it."""

    index: int
    state: State
    observation: Any


class Scout:
    """Simulates ahead from a tick as if every decision were a hold, one tick per `step`."""

    def __init__(self, course: Course) -> None:
        self._course, self._ports = course, course.ports
        self._tick_at = plain_ints(course.tick_at)
        self._offsets = course.tick_offsets()
        self._index, self._end = 0, 0
        self._state: State | None = None
        self.ready: deque[SpeculativeTick] = deque()
        """Ticks that were found and whose requests were not sent yet."""

    def begin(self, index: int, state: State, receipts: Sequence[Receipt]) -> None:
        """Start behind this tick."""
        after, _ = foresee(state, self._tick_at[index], receipts, self._ports)
        self._index, self._end = index, min(index + SCAN, len(self._tick_at))
        self._state = None if self._reflects(after) else after
        self.ready.clear()

    def forget(self) -> None:
        """Discard everything, because the assumption of holds was wrong."""
        self._state = None
        self.ready.clear()

    def step(self) -> bool:
        """Advance one tick; False if there is none, or none within reach at which the model would be called."""
        index = self._index + 1
        if self._state is None or index >= self._end:
            return False
        leg = self._course.advance(self._state.world, self._offsets[index - 1], self._offsets[index])
        before = replace(self._state, world=leg.world)
        after, observation = foresee(before, self._tick_at[index], leg.receipts, self._ports)
        if self._reflects(after):
            self._state = None
            return False
        if observation is not None:
            self.ready.append(SpeculativeTick(index, before, observation))
            self._end = min(index + SCAN, len(self._tick_at))
        self._index, self._state = index, after
        return True

    def _reflects(self, state: State) -> bool:
        """Whether the tick that led here would begin with a reflection, whose result cannot be predicted."""
        reflector = self._ports.reflector
        return reflector is not None and reflector.due(state.memory)
