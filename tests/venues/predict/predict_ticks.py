"""Ticks of the predict venue over a generated price path, for the tests of everything above the pure world."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np

from pitboss.agent.decider import Decider, Judge
from pitboss.agent.loop import ToolLoop
from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.instant import MINUTE_MS, Instant
from pitboss.core.intent import Decision
from pitboss.core.market import Bars
from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.core.snapshot import Record
from pitboss.core.state import State
from pitboss.models.scripted import ScriptedModel
from pitboss.tick import TickResult, WorldEvents, tick
from pitboss.tools.define import ToolContext
from pitboss.tools.registry import hydrate
from pitboss.venues.predict.broker import PredictPaper
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.context import PredictPrompts
from pitboss.venues.predict.desk import Desk
from pitboss.venues.predict.execution import apply_update
from pitboss.venues.predict.intents import DECISION
from pitboss.venues.predict.observation import PredictObservation
from pitboss.venues.predict.ports import PredictPorts
from pitboss.venues.predict.state import QUOTE, open_world
from pitboss.venues.predict.svi import FLOAT
from pitboss.venues.predict.venue import VENUE
from pitboss.venues.predict.world import feed
from venues.predict.scene import NOW

TOOLS = ("list_btc_markets", "list_strikes", "recent_fills", "btc_candles", "get_my_positions", "quote")
MANDATE = "Buy what is cheap."
VOLATILITY = 0.5
SOON = "BTC-2026-05-27T13:00:00Z"
"""The hourly market an hour after the first tick."""


@dataclass
class ScriptedDecider:
    """Decides the intents that a function gives for an observation."""

    answers: Callable[[PredictObservation], Sequence[Any]]
    name: str = "mind"
    observations: list[PredictObservation] = field(default_factory=list)

    async def decide(self, observation: PredictObservation, judge: Judge) -> Decision:
        self.observations.append(observation)
        return Decision(tuple(self.answers(observation)), "thinking")


def always_decides(*intents: Any) -> ScriptedDecider:
    """The same intents at every tick."""
    return ScriptedDecider(lambda observation: intents)


def deciding_loop(model: ScriptedModel, context: PredictPrompts, max_steps: int = 8, **more: Any) -> ToolLoop:
    """A tool loop with every tool of the venue."""
    return ToolLoop(
        name=model.name,
        model=model,
        context=context,
        hydrate=lambda observation, judge: hydrate(VENUE.tools(), TOOLS, ToolContext(observation, "write", judge)),
        format=DECISION,
        max_steps=max_steps,
        **more,
    )


def model_of(answer: Callable[[ModelRequest], ModelReply]) -> ScriptedModel:
    return ScriptedModel(answer)


def price_path(seed: int, minutes: int, start: int = 63_213) -> list[int]:
    """A spot for every minute, in billionths."""
    rng, spot, spots = Random(seed), float(start), []
    for _ in range(minutes):
        spots.append(round(spot * 100) * FLOAT // 100)
        spot *= 1 + rng.gauss(0, 0.0007)
    return spots


def candles(spots: Sequence[int], first_at: Instant = NOW) -> Market:
    """One-minute bars that close at the spots, each at its tick."""
    close = np.array(spots, np.float64) / FLOAT
    open_at = first_at - MINUTE_MS + MINUTE_MS * np.arange(len(spots), dtype=np.int64)
    flat = np.ones(len(spots))
    return Market({("BTC", "1m"): Bars("BTC", "1m", MINUTE_MS, open_at, close, close + 5, close - 5, close, flat)})


def ports(decider: Decider, caps: PredictCaps | None = None, **more: Any) -> PredictPorts:
    context = decider.context if isinstance(decider, ToolLoop) else PredictPrompts(MANDATE)
    fields = {"decider": decider, "broker": PredictPaper(), "context": context, **more}
    return PredictPorts(caps or PredictCaps(), **fields)


def new_state(cash: int = 100, vault: int = 1_000_000) -> State:
    return State(Desk(open_world(vault * QUOTE, cash * QUOTE)))


def state_after_update(
    state: State, given: PredictPorts, spot: int, at: Instant, **more: Any
) -> tuple[State, WorldEvents]:
    """The state after one update of the feed."""
    tiers = more.pop("tiers", ("15m", "1h"))
    step = feed(state.world.world, "BTC", spot, at, VOLATILITY, tiers=tiers)
    desk, receipts = apply_update(state.world, step, given.caps, at, given.account_id)
    return replace(state, world=desk), WorldEvents(receipts)


def step(state: State, given: PredictPorts, spot: int, at: Instant, **more: Any) -> TickResult:
    """One update and one tick at the same instant."""
    state, happened = state_after_update(state, given, spot, at, **more)
    return asyncio.run(tick(state, at, happened, given))


def tick_without_update(
    state: State,
    given: PredictPorts,
    at: Instant,
    happened: WorldEvents = WorldEvents(),  # noqa: B008
) -> TickResult:
    """One tick without an update."""
    return asyncio.run(tick(state, at, happened, given))


def run(
    state: State, given: PredictPorts, spots: Sequence[int], first: int = 0, until: int | None = None
) -> tuple[State, list[Record]]:
    """A tick a minute over a path."""
    records: list[Record] = []
    for place in range(first, len(spots) if until is None else until):
        done = step(state, given, spots[place], NOW + place * MINUTE_MS)
        state = done.state
        records.append(done.record)
    return state, records


def body(done: TickResult) -> Mapping[str, Any]:
    return codec.loads(done.record.covered)


def verdicts(done: TickResult) -> list[tuple[str, str | None]]:
    return [(one["outcome"], one["code"]) for one in body(done)["verdicts"]]
