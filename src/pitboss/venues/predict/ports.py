"""The ports of a tick on the predict venue: how it is observed, judged, halted and told.

A tick's world is a `Desk`. What differs from the perp venue beyond words: the asks a model was shown are kept with the
desk, because the slippage rule asks for them, and a decision may wait there for the update it is carried out at.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pitboss.agent.decider import Decider
from pitboss.agent.reflection import Reflector
from pitboss.core import codec
from pitboss.core.asof import View
from pitboss.core.instant import MINUTE_MS, Instant
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.core.state import State
from pitboss.core.trace import SILENT, Tracer
from pitboss.core.verdict import Verdict
from pitboss.engine.execute import Broker
from pitboss.engine.guard import Judgement, guard
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.context import PredictPrompts
from pitboss.venues.predict.desk import Desk, reckoned, summary, told
from pitboss.venues.predict.observation import PredictObservation, Shown, Tape, no_tape
from pitboss.venues.predict.rule_book import PredictRuleBook
from pitboss.venues.predict.state import ACCOUNT, NO_ACCOUNT


@noun
class PredictPorts:
    """Everything a tick needs on the predict venue that is not its state."""

    caps: PredictCaps
    decider: Decider
    broker: Broker
    context: PredictPrompts
    view: Callable[[Instant], View] | None = None
    """Candles as of an instant; None where there are none to look at."""
    tape: Tape = no_tape
    candles_minutes: int = 60
    underlying: str = "BTC"
    account_id: str = ACCOUNT
    keep_prompts: bool = True
    build_prompts: bool = True
    tracer: Tracer = SILENT
    notes: Callable[[], tuple[str, ...]] = tuple
    """What the agent is told about its own means at this tick."""
    reflector: Reflector | None = None
    every_ms: int = MINUTE_MS
    """Time between ticks: it numbers them."""

    def observe(self, state: State, at: Instant) -> PredictObservation:
        """What the agent may know now."""
        return PredictObservation(
            at,
            at // self.every_ms,
            state.world,
            self.caps,
            None if self.view is None else self.view(at),
            state.last,
            self.tape,
            self.candles_minutes,
            self.underlying,
            self.account_id,
            self.notes(),
            state.memory,
            Shown(),
        )

    def unasked(self, state: State, observation: PredictObservation) -> str:
        """Nobody is asked about an account with nothing left, nothing held and nothing on its way."""
        del observation
        return "ruined" if ruined(state.world, self.account_id) else ""

    def told(self, state: State, observation: PredictObservation) -> State:
        """With the asks that the prompt and the tools have shown."""
        desk = told(state.world, observation.shown.asks)
        return state if desk is state.world else state.after(world=desk)

    def guard(self, observation: PredictObservation, state: State, intent: Any, at: Instant) -> Judgement:
        """One intent against B1 to B15."""
        desk: Desk = state.world
        spent = reckoned(desk, at)
        shown = {**spent.shown, **observation.shown.asks} if observation.shown.asks else spent.shown
        book = PredictRuleBook(self.caps, desk.world, replace(spent, shown=shown), at, at, self.account_id)
        return guard(book, state.seen, intent, at)

    def halt(self, world: Desk, at: Instant) -> tuple[Desk, Sequence[Receipt]]:
        """No mints any more: a rule broke. What is held can still be redeemed."""
        terms = world.world.terms
        if terms.paused:
            return world, ()
        halted = replace(world, world=replace(world.world, terms=replace(terms, paused=True)))
        return halted, (Receipt("halted", at, "", "", {"halt": "invariant"}),)

    def summary(self, world: Desk) -> dict[str, Any]:
        """Cash, equity, spend, positions, what waits."""
        return summary(world, self.account_id)

    def summary_after(self, world: Desk, found: Desk, told: dict[str, Any]) -> dict[str, Any]:
        """The same, or what was told where neither the world nor what waits has changed."""
        if world.world is found.world and world.waiting is found.waiting:
            return told
        return summary(world, self.account_id)

    def remember(
        self, state: State, observation: PredictObservation, receipts: Sequence[Receipt], verdicts: Sequence[Verdict]
    ) -> Any:
        """Nothing yet: what came of orders is kept with the desk."""
        del observation, receipts, verdicts
        return state.memory

    def noted(self, state: State, observation: PredictObservation) -> tuple[Mapping[str, float], int]:
        """Nothing: this venue's agents are asked at every tick."""
        del observation
        return state.asked_close, state.news_seen


def ruined(desk: Desk, account_id: str = ACCOUNT) -> bool:
    """Nothing left, nothing open and nothing waiting: there is no point in asking any more."""
    account = desk.world.accounts.get(account_id, NO_ACCOUNT)
    return account.cash <= 0 and not account.positions and not desk.waiting


def read_state(plain: object) -> State:
    """A stored state, with its world as this venue's own type."""
    state = codec.parse(State, plain)
    return state.after(world=codec.parse(Desk, state.world))
