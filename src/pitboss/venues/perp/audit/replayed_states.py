"""The ticks of a run in order: the state before each tick, and the record of each.

No model is called: a random decider decides and a program writes the lessons, or both are taken from a stored run. Every
tick gets its own record, including those that a policy's run skips, because the audit may rebuild any tick.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from typing import Any

from numpy.random import PCG64, Generator  # noqa: TID251  seeded: same seed, same bytes

from pitboss.agent.decider import Judge
from pitboss.core.errors import ReplayMismatch, TransientError
from pitboss.core.instant import Instant
from pitboss.core.intent import Decision
from pitboss.core.money import CONTEXT
from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.core.snapshot import Record
from pitboss.core.state import State
from pitboss.models.replayed import Replayed
from pitboss.runs.fork import recorded_decision
from pitboss.tick import WorldEvents, tick
from pitboss.venues.perp.course import PerpCourse, first_state
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.world import advance


@dataclass(frozen=True, slots=True)
class TickStart:
    """A tick before its decision. `before` is the state after the tick at `since`; for the first tick `since` is `at`."""

    at: Instant
    since: Instant
    before: State


@dataclass(frozen=True, slots=True)
class ReplayedTicks:
    """The ticks of a range and their records."""

    ticks: tuple[TickStart, ...]
    records: tuple[Record, ...]


async def replay_ticks(course: PerpCourse, start: TickStart | None = None) -> ReplayedTicks:
    """Run all ticks of a range, from its beginning or from a given first tick.

    Prompts are not built, because they are what is audited.
    """
    ports = replace(course.ports, build_prompts=False, keep_prompts=False)
    ticks: list[TickStart] = []
    records: list[Record] = []
    with localcontext(CONTEXT):
        state, since = (first_state(course), 0) if start is None else (start.before, start.since)
        bar = 0
        for at in course.tick_at.tolist():
            ticks.append(TickStart(at, since or at, state))
            stretch = advance(state.world, ports.terms, course.tape, bar, course.tape.index_of(at))
            result = await tick(
                replace(state, world=stretch.world), at, WorldEvents(stretch.receipts, stretch.equity), ports
            )
            state, since, bar = result.state, at, stretch.index
            records.append(result.record)
    return ReplayedTicks(tuple(ticks), tuple(records))


class RandomDecider:
    """Acts at one tick in four with random orders, some of which the engine refuses, so that the run has a history."""

    name = "audit/dice"

    def __init__(self, seed: int) -> None:
        self._seed = seed

    async def decide(self, observation: Observation, judge: Judge) -> Decision:
        """No intent, or one in a random symbol."""
        del judge
        dice = Generator(PCG64([self._seed, observation.at]))
        symbols = observation.skill.context.sorted_symbols
        symbol, chance = symbols[int(dice.integers(len(symbols)))], dice.random()
        mark = observation.world.marks.get(symbol)
        if chance > 0.25 or mark is None:
            return Decision()
        if symbol in observation.world.positions and dice.random() < 0.6:
            return Decision(({"action": "close", "symbol": symbol, "reason": "by chance"},), text="out again")
        price, long = float(mark), dice.random() < 0.5
        away = 1 if long else -1
        intent: dict[str, Any] = {
            "action": "open_long" if long else "open_short",
            "symbol": symbol,
            "size_usd": _exact(float(observation.world.cash) * dice.uniform(0.01, 0.2)),
            "leverage": int(dice.integers(1, 4)),
            "stop_loss": _exact(price * (1 - 0.02 * away)),
            "take_profit": _exact(price * (1 + 0.03 * away)),
            "reason": "by chance",
        }
        if dice.random() < 0.5:
            intent |= {"order_type": "limit", "limit_price": _exact(price * (1 - 0.01 * away))}
        return Decision((intent,), text="in by chance")


def _exact(value: float) -> Decimal:
    return Decimal(f"{value:.5g}")


class RecordedDecider:
    """Repeats the decisions of a stored run."""

    name = "recorded"

    def __init__(self, records: Iterable[Record]) -> None:
        self._records = {record.tick_at: record for record in records if record.kind == "tick"}

    async def decide(self, observation: Observation, judge: Judge) -> Decision:
        """The recorded decision of this tick; a hold if there is none."""
        del judge
        record = self._records.get(observation.at)
        return Decision() if record is None else recorded_decision(record)


class RecordedReflections:
    """Repeats the reflections of a stored run; a request that the run never made fails."""

    name = "recorded"

    def __init__(self, records: Iterable[Record]) -> None:
        self._answers = Replayed(records)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The recorded answer."""
        try:
            return await self._answers.complete(request)
        except ReplayMismatch as error:
            raise TransientError(str(error)) from None
