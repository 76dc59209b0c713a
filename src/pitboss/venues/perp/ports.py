"""The ports of a tick on the perp venue: how it is observed, judged, halted and remembered."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pitboss.agent.decider import Decider
from pitboss.core.asof import View
from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.core.state import State
from pitboss.core.trace import SILENT, Tracer
from pitboss.core.verdict import Verdict
from pitboss.engine.execute import Broker
from pitboss.engine.guard import Judgement, guard
from pitboss.venues.perp.caps import PerpCaps
from pitboss.venues.perp.context import PerpPrompts
from pitboss.venues.perp.memory import Recall, remember
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.portfolio import summary, summary_after
from pitboss.venues.perp.reflection import TradeReflector
from pitboss.venues.perp.rule_book import PerpRuleBook
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.state import PerpWorld, TradingTerms
from pitboss.venues.perp.trade_memory import PerpMemory
from pitboss.venues.perp.wake import awake, closes
from pitboss.venues.perp.world import halt


@noun
class PerpPorts:
    """Everything a tick needs on the perp venue that is not its state."""

    skill: PerpSkill
    limits: PerpCaps
    terms: TradingTerms
    view: Callable[[Instant], View]
    decider: Decider
    broker: Broker
    context: PerpPrompts
    started_at: Instant
    keep_prompts: bool = True
    build_prompts: bool = True
    wakes: bool = True
    tracer: Tracer = SILENT
    notes: Callable[[], tuple[str, ...]] = tuple
    """What the agent is told about its own means at this tick."""
    recall: Recall | None = None
    """How the agent remembers; None where nothing is remembered, as in runs that build no prompt."""
    reflector: TradeReflector | None = None
    """Who writes lessons from closed trades; None where no model is there to ask."""

    def observe(self, state: State, at: Instant) -> Observation:
        """What the agent may know now."""
        view = self.view(at)
        return Observation(
            at,
            self.started_at,
            self.skill,
            view,
            state.world,
            self.terms,
            self.limits.without(view.unlisted(self.limits.symbols)),
            state.accepted_opens,
            state.last,
            state.memory,
            self.notes(),
        )

    def unasked(self, state: State, observation: Observation) -> str:
        """Nobody is asked about a ruined account, nor while the skill has nothing to wake for."""
        if ruined(state.world):
            return "ruined"
        if self.wakes and not awake(observation, state.asked_close, state.news_seen):
            return "asleep"
        return ""

    def told(self, state: State, observation: Observation) -> State:
        """Nothing: no rule of this venue asks what was shown."""
        del observation
        return state

    def guard(self, observation: Observation, state: State, intent: Any, at: Instant) -> Judgement:
        """One intent against R1 to R13."""
        return judge(observation.limits, self.terms, state, intent, at)

    def halt(self, world: PerpWorld, at: Instant) -> tuple[PerpWorld, Sequence[Receipt]]:
        """No opens any more: a rule broke."""
        return halt(world, self.terms, "invariant", at)

    def summary(self, world: PerpWorld) -> dict[str, Any]:
        """Cash, equity, positions, working orders."""
        return summary(world)

    def summary_after(self, world: PerpWorld, found: PerpWorld, told: dict[str, Any]) -> dict[str, Any]:
        """The same for less, where little has changed."""
        return summary_after(world, found, told)

    def remember(
        self, state: State, observation: Observation, receipts: Sequence[Receipt], verdicts: Sequence[Verdict]
    ) -> PerpMemory:
        """Closed trades, refusals, the day's result."""
        if self.recall is None:
            return state.memory
        view = observation.view
        return remember(state.memory, self.recall, observation.at, receipts, verdicts, state.world, view)

    def noted(self, state: State, observation: Observation) -> tuple[Mapping[str, float], int]:
        """Closes and count of news, where the skill waits for either."""
        if not (self.wakes and self.skill.schedule.wake_when):
            return state.asked_close, state.news_seen
        return closes(observation), observation.view.news_count()


def judge(caps: PerpCaps, terms: TradingTerms, state: State, intent: Any, now: Instant) -> Judgement:
    """One intent against R1 to R13, on the state as it is at this moment."""
    book = PerpRuleBook(caps, terms, state.world, state.accepted_opens, now)
    return guard(book, state.seen, intent, now)


def ruined(world: PerpWorld) -> bool:
    """Nothing left and nothing open: there is no point in asking any more."""
    return not world.positions and not world.orders and world.cash <= 0
