"""The ports of a tick on the predict venue: how it observes, checks decisions, halts and summarises the account.

The world of a tick is a `Desk`, which also holds orders that wait for their price update.
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
from pitboss.venues.predict.desk import Desk, spend_with_reserves, summary
from pitboss.venues.predict.observation import PredictObservation, Shown, Tape, no_tape
from pitboss.venues.predict.rule_book import PredictRuleBook
from pitboss.venues.predict.state import ACCOUNT, NO_ACCOUNT

NO_QUOTE = "no_quote"
"""Flag of a tick at which the price lies outside the strikes of every open market."""


@noun
class PredictPorts:
    """The dependencies of a tick on the predict venue; the state is passed separately."""

    caps: PredictCaps
    decider: Decider
    broker: Broker
    context: PredictPrompts
    view: Callable[[Instant], View] | None = None
    """Returns candles as of an instant; None without candle data."""
    tape: Tape = no_tape
    candles_minutes: int = 60
    underlying: str = "BTC"
    account_id: str = ACCOUNT
    keep_prompts: bool = True
    build_prompts: bool = True
    tracer: Tracer = SILENT
    notes: Callable[[], tuple[str, ...]] = tuple
    """Returns notes for the agent about its own resources at this tick."""
    reflector: Reflector | None = None
    every_ms: int = MINUTE_MS
    """Time between ticks; it determines their numbers."""

    def observe(self, state: State, at: Instant) -> PredictObservation:
        """Return what the agent may see at this instant."""
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

    def skip_flag(self, state: State, observation: PredictObservation) -> str:
        """Return why the decider is not asked: `ruined` if nothing is left, `no_quote` if nothing could be traded."""
        if ruined(state.world, self.account_id):
            return "ruined"
        return "" if may_trade(state.world, observation.underlying, self.account_id) else NO_QUOTE

    def with_shown(self, state: State, observation: PredictObservation) -> State:
        """Return the state unchanged: the asks shown at a tick concern the orders of that tick only."""
        del observation
        return state

    def guard(self, observation: PredictObservation, state: State, intent: Any, at: Instant) -> Judgement:
        """Check one decision against rules B1 to B15."""
        desk: Desk = state.world
        spent = replace(spend_with_reserves(desk, at), shown=observation.shown.asks)
        book = PredictRuleBook(self.caps, desk.world, spent, at, at, self.account_id)
        return guard(book, state.seen, intent, at)

    def halt(self, world: Desk, at: Instant) -> tuple[Desk, Sequence[Receipt]]:
        """Stop minting because a rule failed. Open positions can still be redeemed."""
        terms = world.world.terms
        if terms.halted:
            return world, ()
        halted = replace(world, world=replace(world.world, terms=replace(terms, halted=True)))
        return halted, (Receipt("halted", at, "", "", {"halt": "invariant"}),)

    def summary(self, world: Desk) -> dict[str, Any]:
        """Return cash, equity, spend, positions and waiting orders."""
        return summary(world, self.account_id)

    def summary_after(self, world: Desk, world_before: Desk, summary_before: dict[str, Any]) -> dict[str, Any]:
        """Return the summary after a tick; `summary_before` is reused if world and waiting orders are unchanged."""
        if world.world is world_before.world and world.waiting is world_before.waiting:
            return summary_before
        return summary(world, self.account_id)

    def remember(
        self, state: State, observation: PredictObservation, receipts: Sequence[Receipt], verdicts: Sequence[Verdict]
    ) -> Any:
        """Return the memory unchanged: the results of orders are stored in the desk."""
        del observation, receipts, verdicts
        return state.memory

    def wake_reference(self, state: State, observation: PredictObservation) -> tuple[Mapping[str, float], int]:
        """Return the stored values unchanged: agents of this venue are asked at every tick."""
        del observation
        return state.asked_close, state.news_seen


def may_trade(desk: Desk, underlying: str, account_id: str = ACCOUNT) -> bool:
    """Whether a decision could have an effect: a position is open, or some market has strikes around its price."""
    world = desk.world
    if desk.waiting or not world.oracles or world.accounts.get(account_id, NO_ACCOUNT).positions:
        return True
    feed = world.feeds.get(underlying)
    return any(
        oracle.grid.spans(feed.spot if oracle.fed and feed is not None else oracle.spot)
        for oracle in world.oracles.values()
    )


def ruined(desk: Desk, account_id: str = ACCOUNT) -> bool:
    """Whether the account has no cash, no positions and no waiting orders, so that no decision can have an effect."""
    account = desk.world.accounts.get(account_id, NO_ACCOUNT)
    return account.cash <= 0 and not account.positions and not desk.waiting


def read_state(plain: object) -> State:
    """Parse a stored state, with its world as a `Desk`."""
    state = codec.parse(State, plain)
    return state.after(world=codec.parse(Desk, state.world))
