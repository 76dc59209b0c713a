"""The scout: lives on from a tick as if every answer were a hold, and meets the questions that would be asked then.

It decides nothing and asks nobody; what becomes of the questions is `sim.speculate`.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pitboss.core.receipt import Receipt
from pitboss.core.state import State
from pitboss.sim.course import Course
from pitboss.tick import foresee

SCAN = 256
"""Ticks a window may look ahead in search of one at which the model will be asked."""


@dataclass(frozen=True, slots=True)
class SpeculativeTick:
    """A tick at which the model will be asked if nothing but holds comes before it."""

    place: int
    state: State
    observation: Any


class Scout:
    """Lives on from a tick as if every answer were a hold, tick by tick, only as far as it is told."""

    def __init__(self, course: Course) -> None:
        self._course, self._ports = course, course.ports
        self._tick_at: list[int] = course.tick_at.tolist()
        self._places = course.places()
        self._place, self._end = 0, 0
        self._state: State | None = None
        self.ready: deque[SpeculativeTick] = deque()
        """What it has met and nobody has asked yet."""

    def begin(self, index: int, state: State, receipts: Sequence[Receipt]) -> None:
        """Stand behind this tick."""
        after, _ = foresee(state, self._tick_at[index], receipts, self._ports)
        self._place, self._end = index, min(index + SCAN, len(self._tick_at))
        self._state = None if self._reflects(after) else after
        self.ready.clear()

    def forget(self) -> None:
        """What was assumed is not so."""
        self._state = None
        self.ready.clear()

    def step(self) -> bool:
        """One tick on; False where there is none, or none within reach at which the model would be asked."""
        place = self._place + 1
        if self._state is None or place >= self._end:
            return False
        leg = self._course.advance(self._state.world, self._places[place - 1], self._places[place])
        before = replace(self._state, world=leg.world)
        after, observation = foresee(before, self._tick_at[place], leg.receipts, self._ports)
        if self._reflects(after):
            self._state = None
            return False
        if observation is not None:
            self.ready.append(SpeculativeTick(place, before, observation))
            self._end = min(place + SCAN, len(self._tick_at))
        self._place, self._state = place, after
        return True

    def _reflects(self, state: State) -> bool:
        """Whether the tick that led here would have begun with lessons: nobody knows what they say, or what follows."""
        reflector = self._ports.reflector
        return reflector is not None and reflector.due(state.memory)
