"""`BarCourse`: a course whose world advances with every closed bar of one symbol."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pitboss.core.curve import Piece
from pitboss.core.leg import Leg
from pitboss.core.market import Bar, Bars, plain_ints
from pitboss.core.money import text
from pitboss.core.receipt import Receipt
from pitboss.sim.course import Course
from pitboss.tick.bar_ports import BarPorts


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BarCourse(Course):
    """The bars of a run, with one equity point each. A tick sees the bars that have closed by then."""

    ports: BarPorts
    first_world: Any
    """The world before the first bar."""
    bars: Bars
    step: Callable[[Any, Bar], tuple[Any, tuple[Receipt, ...]]]
    """The venue's pure function: the world after a bar, and its receipts."""

    def tick_offsets(self) -> Sequence[int]:
        """The number of bars that have closed by each tick."""
        return plain_ints(np.searchsorted(self.bars.open_at + self.bars.interval_ms, self.tick_at, side="right"))

    def advance(self, world: Any, start: int, stop: int, pause_before_change: bool = False) -> Leg:
        """Apply the bars `[start, stop)`."""
        receipts: list[Receipt] = []
        curve: list[Piece] = []
        for index, bar in enumerate(self.bars.slice(start, stop).rows(), start):
            after, happened = self.step(world, bar)
            if pause_before_change and after != world:
                return Leg(world, tuple(receipts), curve, index)
            world = after
            receipts += happened
            curve.append((bar.closed_at, self.bars.interval_ms, text(self.ports.equity(world)), 1))
        return Leg(world, tuple(receipts), curve, stop)

    def finish(self, world: Any, start: int) -> Leg:
        """Apply the bars after the last tick."""
        return self.advance(world, start, len(self.bars))
