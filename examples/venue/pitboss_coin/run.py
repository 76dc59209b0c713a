"""A run on the coin venue: its ports for the tick, its course for the replay, and its preparation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np

from pitboss.agent.decider import Decider, Plan
from pitboss.agent.reflection import Reflector
from pitboss.bootstrap.settings import Settings
from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.curve import Curve
from pitboss.core.errors import InvariantError, UserError
from pitboss.core.instant import Instant
from pitboss.core.market import Ints
from pitboss.core.money import text
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.core.state import State
from pitboss.core.trace import SILENT, Tracer
from pitboss.core.verdict import Verdict
from pitboss.data.feed import check_gaps, choose_venue, data_digest, load_market
from pitboss.data.lake import Lake
from pitboss.engine.execute import Placed
from pitboss.engine.guard import Judgement, guard
from pitboss.models.catalog import unknown
from pitboss.models.decisions import DecisionFile
from pitboss.models.standin import NAME, StandIn
from pitboss.runs.tool_loop import tool_loop
from pitboss.sim.connections import UNCONNECTED, Connections
from pitboss.sim.course import COMMIT_RECORDS, ticks_between
from pitboss.sim.prepared_run import PreparedRun
from pitboss.sim.request import BacktestRequest, check_range
from pitboss.sim.speculation import Speculation
from pitboss.skill.load import read_skill
from pitboss.tools.registry import registry_of
from pitboss_coin.agent import AlwaysHeads, CoinObservation, CoinPrompts, answer
from pitboss_coin.intents import DECISION, Bet
from pitboss_coin.skill import CoinSkill
from pitboss_coin.world import CoinRuleBook, CoinWorld, equity, flip, place


class CoinBroker:
    """The paper broker: bets are taken at once."""

    async def submit(self, world: CoinWorld, request: Bet, at: Instant) -> Placed:
        after, receipts = place(world, request, at)
        return Placed(after, receipts, receipts[0].order_id)

    async def cancel(self, world: CoinWorld, order_id: str, at: Instant) -> Placed:
        del order_id, at
        return Placed(world, refusal="a bet cannot be cancelled")


@noun
class CoinPorts:
    """Everything a tick needs that is not its state."""

    skill: CoinSkill
    market: Market
    decider: Decider
    context: CoinPrompts
    keep_prompts: bool
    build_prompts: bool
    broker: CoinBroker = CoinBroker()
    tracer: Tracer = SILENT
    reflector: Reflector | None = None

    def observe(self, state: State, at: Instant) -> CoinObservation:
        return CoinObservation(at, self.skill, self.market.view(at), state.world, state.last)

    def skip_flag(self, state: State, observation: CoinObservation) -> str:
        del observation
        return "ruined" if equity(state.world) <= 0 else ""

    def with_shown(self, state: State, observation: CoinObservation) -> State:
        del observation
        return state

    def guard(self, observation: CoinObservation, state: State, intent: Any, at: Instant) -> Judgement:
        return guard(CoinRuleBook(state.world, observation.skill.max_stake), state.seen, intent, at)

    def halt(self, world: CoinWorld, at: Instant) -> tuple[CoinWorld, Sequence[Receipt]]:
        return world, (Receipt("halted", at, "", "", {"halt": "invariant"}),)

    def summary(self, world: CoinWorld) -> dict[str, Any]:
        return {"cash": text(world.cash), "equity": text(equity(world)), "positions": []}

    def summary_after(
        self, world: CoinWorld, world_before: CoinWorld, summary_before: dict[str, Any]
    ) -> dict[str, Any]:
        return summary_before if world is world_before else self.summary(world)

    def remember(self, state: State, observation: Any, receipts: Sequence[Receipt], verdicts: Sequence[Verdict]) -> Any:
        del observation, receipts, verdicts
        return state.memory

    def wake_reference(self, state: State, observation: Any) -> tuple[Mapping[str, float], int]:
        del observation
        return state.asked_close, state.news_seen


@noun
class CoinLeg:
    """What some bars did."""

    world: CoinWorld
    receipts: tuple[Receipt, ...]
    equity: Curve
    index: int


@dataclass(frozen=True, slots=True, eq=False)
class CoinCourse:
    """The bars of a run as offsets, with its ticks among them."""

    ports: CoinPorts
    closed_at: list[int]
    heads: list[bool]
    tick_at: Ints
    to_at: Instant
    cash: Decimal
    speculation: Speculation | None = None
    commit_records: int = COMMIT_RECORDS
    most_errors: int = 5
    planned: bool = False
    asks_always: bool = True
    past: None = None

    def tick_offsets(self) -> list[int]:
        return np.searchsorted(self.closed_at, self.tick_at, side="right").tolist()

    def advance(self, world: CoinWorld, start: int, stop: int, pause_before_change: bool = False) -> CoinLeg:
        del pause_before_change
        receipts: list[Receipt] = []
        curve: list[tuple[int, int, str, int]] = []
        for index in range(start, stop):
            at = self.closed_at[index]
            world, happened = flip(world, self.heads[index], at)
            receipts += happened
            curve.append((at, self.ports.skill.every_ms, text(equity(world)), 1))
        return CoinLeg(world, tuple(receipts), curve, stop)

    def finish(self, world: CoinWorld, start: int) -> CoinLeg:
        return self.advance(world, start, len(self.closed_at))

    def until(self, to_at: Instant) -> "CoinCourse":
        return replace(
            self, tick_at=self.tick_at[self.tick_at < to_at], to_at=to_at, commit_records=1, speculation=None
        )

    def plan(self) -> Plan:
        raise InvariantError("no decider of this venue is planned")

    def over(self, world: CoinWorld) -> bool:
        return equity(world) <= 0

    def early(self, receipts: Sequence[Receipt], until: Instant) -> tuple[Receipt, ...]:
        return tuple(receipt for receipt in receipts if receipt.at <= until)

    def unchanged(self, before: State, after: State) -> bool:
        return before.world == after.world


def read_state(plain: object) -> State:
    """A stored state."""
    state = codec.parse(State, plain)
    return state.after(world=codec.parse(CoinWorld, state.world))


@dataclass(frozen=True, slots=True, eq=False)
class CoinRun(PreparedRun):
    """A checked request with its bars."""

    skill: CoinSkill
    market: Market

    def course(self, connections: Connections = UNCONNECTED) -> CoinCourse:
        request, skill = self.request, self.skill
        context = CoinPrompts(skill)
        ports = CoinPorts(
            skill,
            self.market,
            connections.decider or self.decider(connections, context),
            context,
            request.prompts is not False,
            request.builds_prompts,
            tracer=connections.tracer,
        )
        bars = self.market.bars[skill.symbol, skill.every]
        closed_at = bars.open_at + skill.every_ms
        inside = (closed_at > int(self.tick_at[0])) & (closed_at <= request.to_at)
        heads = (bars.close > bars.open)[inside].tolist()
        return CoinCourse(
            ports,
            closed_at[inside].tolist(),
            heads,
            self.tick_at,
            request.to_at,
            request.equity_usd,
            connections.speculation,
        )

    def decider(self, connections: Connections, context: CoinPrompts) -> Decider:
        request = self.request
        if request.decisions is not None:
            return DecisionFile.read(request.decisions.encode(), "decisions", set(self.tick_at.tolist()), DECISION)
        if request.is_program:
            if request.source != AlwaysHeads.name:
                raise unknown("policy", request.source, [AlwaysHeads.name])
            return AlwaysHeads()
        if connections.model is None and request.source == NAME:
            connections = replace(connections, model=StandIn(answer))
        return tool_loop(request.source, self.skill, DECISION, context, registry_of("pitboss_coin.tools"), connections)


def prepare(request: BacktestRequest, lake: Lake, settings: Settings) -> CoinRun:
    """Check a request and load its bars."""
    skill = read_skill(request.skill, CoinSkill)
    check_range(request)
    ticks = ticks_between(request.from_at, request.to_at, skill.every_ms)
    if not len(ticks):
        raise UserError(f"no {skill.every} tick falls into the range", "choose a longer range")
    data_venue = choose_venue(request.data_venue or settings.data_venue, lake, (skill.symbol,))
    market = load_market(
        lake, data_venue, [skill.symbol], [skill.every], request.to_at, 0, request.from_at, with_news=False
    )
    check_gaps(market.bars[skill.symbol, skill.every], request.from_at, request.to_at, request.max_gap)
    digest = data_digest(market, [skill.symbol], [skill.every], news=False, events=False)
    run = CoinRun(request, skill, data_venue, digest, lake.is_synthetic(data_venue), ticks, market)
    run.decider(UNCONNECTED, CoinPrompts(skill))
    return run
