"""Replays the recorded decisions of a span in the paper world: the same tick, guard and broker as in a backtest.

Decisions are judged again on the paper account, so an order that the deployment could not place can be placed here and the
reverse. The agent is not asked, no prompt is built, and nothing is stored.
"""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, replace
from decimal import localcontext
from typing import Any, TypeVar

from pitboss.agent.decider import Judge
from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.errors import InvariantError
from pitboss.core.instant import Instant, interval_ms
from pitboss.core.intent import Decision
from pitboss.core.money import CONTEXT
from pitboss.core.receipt import Receipt
from pitboss.core.state import State
from pitboss.skill.document import to_plain
from pitboss.skill.load import read_skill
from pitboss.tick import WorldEvents, tick
from pitboss.venues.perp.account_trades import SpanStep
from pitboss.venues.perp.assembly import tape_of
from pitboss.venues.perp.broker import PaperBroker
from pitboss.venues.perp.context import PerpPrompts
from pitboss.venues.perp.portfolio import summary
from pitboss.venues.perp.ports import PerpPorts
from pitboss.venues.perp.recorded_span import RecordedSpan, start_world
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.skill_caps import caps_of
from pitboss.venues.perp.state import TradingTerms
from pitboss.venues.perp.trade_memory import NO_MEMORY
from pitboss.venues.perp.world import advance, lift_halts

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReplaySetup:
    """What a replay needs besides the span: the skill, the costs, and the bars of the market."""

    skill: PerpSkill
    terms: TradingTerms
    market: Market
    base_interval: str
    latency_ms: int = 0


class RecordedProposals:
    """Decides what was decided at each tick. Orders have other ids here: `ids` maps those of the deployment to them."""

    name = "recorded"

    def __init__(self) -> None:
        self.proposals: tuple[Any, ...] = ()
        self.ids: dict[str, str] = {}

    async def decide(self, observation: Any, judge: Judge) -> Decision:
        """Return the recorded proposals of this tick."""
        del observation, judge
        return Decision(tuple(map(self._translated, self.proposals)))

    def _translated(self, proposal: Any) -> Any:
        order_id = proposal.get("order_id") if isinstance(proposal, Mapping) else None
        if not isinstance(order_id, str) or order_id not in self.ids:
            return proposal
        return {**proposal, "order_id": self.ids[order_id]}


def replay_span(span: RecordedSpan, setup: ReplaySetup) -> tuple[SpanStep, ...]:
    """Return the steps of the paper account; the last one has the account at the end of the span."""
    with localcontext(CONTEXT):
        return _completed(_SpanReplay(span, setup).run())


def _completed(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that waits for nothing, with or without an event loop around it."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    work.close()
    raise InvariantError("a replay has nothing to wait for")


class _SpanReplay:
    def __init__(self, span: RecordedSpan, setup: ReplaySetup) -> None:
        self._span = span
        self._setup = setup
        self._symbols = setup.skill.context.sorted_symbols
        self._bar_ms = interval_ms(setup.base_interval)
        self._advanced_to = span.started_at // self._bar_ms * self._bar_ms
        self._decider = RecordedProposals()
        self._ports = self._with_caps(span.earlier.caps)
        end = max(span.ended_at, span.started_at) // self._bar_ms * self._bar_ms
        self._tape = tape_of(setup.market, self._symbols, setup.base_interval, self._advanced_to, end)
        self._offset = 0

    def _with_caps(self, caps: str) -> PerpPorts:
        """The ports with caps that were recorded as JSON text; empty for those of the skill."""
        setup = self._setup
        skill, terms = setup.skill, setup.terms
        if caps:
            skill = read_skill({**to_plain(skill), "risk": codec.loads(caps)}, PerpSkill)
            risk = skill.risk
            terms = replace(
                terms, daily_loss_halt_pct=risk.daily_loss_halt_pct, drawdown_halt_pct=risk.drawdown_halt_pct
            )
        return PerpPorts(
            skill=skill,
            limits=caps_of(skill),
            terms=terms,
            view=setup.market.view,
            decider=self._decider,
            broker=PaperBroker(terms, setup.latency_ms),
            context=PerpPrompts(skill),
            started_at=self._span.started_at,
            wakes=False,
            build_prompts=False,
            keep_prompts=False,
        )

    async def run(self) -> tuple[SpanStep, ...]:
        span, setup = self._span, self._setup
        world = start_world(span, setup.market, self._symbols, setup.base_interval, self._bar_ms, setup.latency_ms)
        state = State(world, memory=NO_MEMORY, accepted_opens=span.earlier.accepted_opens)
        steps: list[SpanStep] = []
        for index, step in enumerate(span.steps):
            receipts: tuple[Receipt, ...] = ()
            if index in span.ticks:
                state, receipts = self._advance(state, step.at)
            elif any(each.kind == "resumed" and each.facts.get("halt") != "daily_loss" for each in step.receipts):
                lifted, receipts = lift_halts(state.world, step.at)
                state = state.after(world=lifted)
            for receipt in step.receipts:
                if receipt.kind == "caps":
                    self._ports = self._with_caps(str(receipt.facts["caps"]))
            decision = span.decisions.get(index)
            if decision is not None:
                self._decider.proposals = decision.proposals
                result = await tick(state, step.at, WorldEvents(receipts), self._ports)
                state, receipts = result.state, tuple(result.receipts)
                ids = (verdict["order_id"] for verdict in result.covered["verdicts"])
                pairs = zip(decision.order_ids, ids, strict=False)
                self._decider.ids.update((theirs, mine) for theirs, mine in pairs if theirs and mine)
            steps.append(SpanStep(step.at, receipts, summary(state.world)))
        state, receipts = self._advance(state, span.ended_at)
        steps.append(SpanStep(span.ended_at, receipts, summary(state.world)))
        return tuple(steps)

    def _advance(self, state: State, at: Instant) -> tuple[State, tuple[Receipt, ...]]:
        """Process the bars that have closed by an instant."""
        stop = self._tape.index_of(at // self._bar_ms * self._bar_ms)
        if stop <= self._offset:
            return state, ()
        leg = advance(state.world, self._ports.terms, self._tape, self._offset, stop)
        self._offset = stop
        return state.after(world=leg.world), leg.receipts
