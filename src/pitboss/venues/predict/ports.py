"""The ports of a tick on the predict venue: how it observes, checks decisions, halts and summarises the account.

The world of a tick is a `Desk`, which also holds orders that wait for their price update.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from pitboss.core.asof import View
from pitboss.core.instant import MINUTE_MS, Instant
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.core.state import State, parse_state
from pitboss.tick.ports import Ports
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.desk import Desk, spend_with_reserves, summary
from pitboss.venues.predict.observation import PredictObservation, Shown, Tape, no_tape
from pitboss.venues.predict.rule_book import PredictRuleBook
from pitboss.venues.predict.state import ACCOUNT, NO_ACCOUNT

NO_QUOTE = "no_quote"
"""Flag of a tick at which the price lies outside the strikes of every open market."""


@noun
class PredictPorts(Ports):
    """The dependencies of a tick on the predict venue; the state is passed separately."""

    caps: PredictCaps
    view: Callable[[Instant], View] | None = None
    """Returns candles as of an instant; None without candle data."""
    tape: Tape = no_tape
    candles_minutes: int = 60
    underlying: str = "BTC"
    account_id: str = ACCOUNT
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

    def is_over(self, world: Desk) -> bool:
        """Whether the account has no cash, positions or waiting orders, so that no decision can have an effect."""
        account = world.world.accounts.get(self.account_id, NO_ACCOUNT)
        return account.cash <= 0 and not account.positions and not world.waiting

    def skip_flag(self, state: State, observation: PredictObservation) -> str:
        """Return why the decider is not asked: `ruined` if nothing is left, `no_quote` if nothing could be traded."""
        if self.is_over(state.world):
            return "ruined"
        return "" if may_trade(state.world, observation.underlying, self.account_id) else NO_QUOTE

    def rule_book(self, observation: PredictObservation, state: State, at: Instant) -> PredictRuleBook:
        """Return rules B1 to B15 on the account, with the asks shown at this tick."""
        desk: Desk = state.world
        spent = replace(spend_with_reserves(desk, at), shown=observation.shown.asks)
        return PredictRuleBook(self.caps, desk.world, spent, at, at, self.account_id)

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


def read_state(plain: object) -> State:
    """Parse a stored state, with its world as a `Desk`."""
    return parse_state(plain, Desk)
