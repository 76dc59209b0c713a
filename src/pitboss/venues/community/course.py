"""The course of a scenario: heartbeats at multiples of the skill's period; between them the participants and the owner act."""

from collections.abc import Sequence
from dataclasses import dataclass

from pitboss.core.leg import Leg
from pitboss.sim.course import Course
from pitboss.venues.community.scenario import Scenario
from pitboss.venues.community.simulated_world import SimulatedWorld, advance, first_world


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ScenarioCourse(Course):
    """A scenario that begins at the first tick. Offset n is the moment of the tick with index n - 1."""

    scenario: Scenario
    comment_limit: int
    every_ms: int
    equity: str

    def first_world(self) -> SimulatedWorld:
        """The world before the first tick."""
        return first_world(self.scenario, int(self.tick_at[0]), self.comment_limit)

    def tick_offsets(self) -> Sequence[int]:
        """Each tick is one step."""
        return range(1, len(self.tick_at) + 1)

    def advance(self, world: SimulatedWorld, start: int, stop: int, pause_before_change: bool = False) -> Leg:
        """Apply what happens up to and including the moments of the steps `[start, stop)`."""
        curve = []
        receipts = []
        for index in range(start, stop):
            at = int(self.tick_at[index])
            after, happened = advance(world, self.scenario, int(self.tick_at[0]), at + 1, self.comment_limit)
            if pause_before_change and happened:
                return Leg(world, tuple(receipts), curve, index)
            world = after
            receipts += happened
            curve.append((at, self.every_ms, self.equity, 1))
        return Leg(world, tuple(receipts), curve, stop)

    def finish(self, world: SimulatedWorld, start: int) -> Leg:
        """Apply what happens after the last tick, up to the end of the range."""
        del start
        after, receipts = advance(world, self.scenario, int(self.tick_at[0]), self.to_at, self.comment_limit)
        return Leg(after, receipts, (), len(self.tick_at))
