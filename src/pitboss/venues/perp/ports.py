"""The ports of a tick on the perp venue: how it is observed, judged, halted and remembered."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY
from typing import Any

from pitboss.core.asof import View
from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.core.state import State
from pitboss.core.verdict import Verdict
from pitboss.tick.ports import Ports
from pitboss.venues.perp.caps import PerpCaps
from pitboss.venues.perp.context import PerpPrompts
from pitboss.venues.perp.memory import MemorySettings, remember
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.portfolio import summary, summary_after
from pitboss.venues.perp.reflection import TradeReflector
from pitboss.venues.perp.rule_book import PerpRuleBook
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.state import PerpWorld, TradingTerms, halts_at
from pitboss.venues.perp.trade_memory import PerpMemory
from pitboss.venues.perp.wake import awake, closes
from pitboss.venues.perp.world import halt, lift_halts

HALT_CAUSES = {
    "drawdown": "the drawdown limit is reached",
    "operator": "a person or the watchdog halted the account",
    "invariant": "a rule itself failed",
}
"""Why an account stays halted until a person lifts it."""


@noun
class PerpPorts(Ports):
    """Everything that a tick needs on the perp venue except its state."""

    _: KW_ONLY
    context: PerpPrompts
    reflector: TradeReflector | None = None
    skill: PerpSkill
    limits: PerpCaps
    terms: TradingTerms
    view: Callable[[Instant], View]
    started_at: Instant
    wakes: bool = True
    memory_settings: MemorySettings | None = None
    """The settings of the agent's memory; None if nothing is remembered, as in runs that build no prompt."""

    def observe(self, state: State, at: Instant) -> Observation:
        """Return what the agent may know now."""
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

    def is_over(self, world: PerpWorld) -> bool:
        """Return whether the account has no cash, no positions and no orders, so that asking the model is pointless."""
        return not world.positions and not world.orders and world.cash <= 0

    def skip_flag(self, state: State, observation: Observation) -> str:
        """Return why the model is not asked: `ruined`, `asleep`, or empty if it is asked."""
        if self.is_over(state.world):
            return "ruined"
        if self.wakes and not awake(observation, state.asked_close, state.news_seen):
            return "asleep"
        return ""

    def rule_book(self, observation: Observation, state: State, at: Instant) -> PerpRuleBook:
        """Return R1 to R13 over the account."""
        return PerpRuleBook(observation.limits, self.terms, state.world, state.accepted_opens, at)

    def halt(self, world: PerpWorld, at: Instant) -> tuple[PerpWorld, Sequence[Receipt]]:
        """Set the `invariant` halt, which stops opens, after a rule itself has failed."""
        return halt(world, self.terms, "invariant", at)

    def standing_halt(self, world: PerpWorld, at: Instant) -> tuple[str, str]:
        """Return the first halt that does not end by itself; the daily-loss halt ends at 00:00 UTC."""
        for kind in halts_at(world, at):
            if kind != "daily_loss":
                return kind, HALT_CAUSES[kind]
        return "", ""

    def lift_halts(self, world: PerpWorld, at: Instant) -> tuple[PerpWorld, Sequence[Receipt]]:
        """Lift all halts; drawdown is counted from the present equity on."""
        return lift_halts(world, at)

    def closing_intents(self, world: PerpWorld) -> tuple[dict[str, Any], ...]:
        """Return a cancel for every working order and a close for every position."""
        reason = "a person commanded to flatten"
        cancels = [
            {"action": "cancel", "symbol": order.symbol, "order_id": order.id, "reason": reason}
            for order in world.orders
        ]
        closes = [{"action": "close", "symbol": symbol, "reason": reason} for symbol in sorted(world.positions)]
        return (*cancels, *closes)

    def summary(self, world: PerpWorld) -> dict[str, Any]:
        """Return cash, equity, positions and working orders in the form that snapshots store."""
        return summary(world)

    def summary_after(
        self, world: PerpWorld, world_before: PerpWorld, summary_before: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the same as `summary`, reusing the summary before the tick where nothing has changed."""
        return summary_after(world, world_before, summary_before)

    def remember(
        self, state: State, observation: Observation, receipts: Sequence[Receipt], verdicts: Sequence[Verdict]
    ) -> PerpMemory:
        """Return the memory after a tick: closed trades, refusals, the day's result."""
        if self.memory_settings is None:
            return state.memory
        view = observation.view
        return remember(state.memory, self.memory_settings, observation.at, receipts, verdicts, state.world, view)

    def wake_reference(self, state: State, observation: Observation) -> tuple[Mapping[str, float], int]:
        """Return the closes and the news count to store after a call to the model; unchanged without `wake_when`."""
        if not (self.wakes and self.skill.schedule.wake_when):
            return state.asked_close, state.news_seen
        return closes(observation), observation.view.news_count()
