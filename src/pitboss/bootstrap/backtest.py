"""Putting a backtest together: a request, the data it needs, the ports it ticks with.

A `Request` is everything needed to start the same run again from nothing; it is stored with the run, so that resume
and verify need no other input than the lake.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from pitboss.agent.context import Context
from pitboss.agent.decider import Decider, Judge, Planned
from pitboss.agent.loop import ToolLoop
from pitboss.agent.observation import Observation
from pitboss.bootstrap.settings import Settings
from pitboss.brokers.paper import PaperBroker
from pitboss.core.asof import Market
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, interval_ms
from pitboss.core.market import Ints, Points
from pitboss.core.past import NO_PAST, NO_RECORDINGS, Recordings
from pitboss.core.ports import Tool, ToolSpec
from pitboss.data.arrival import parse_latency
from pitboss.data.feed import base_interval, check_gaps, data_digest, load_market
from pitboss.data.lake import Lake
from pitboss.engine.guard import caps_of
from pitboss.models.catalog import resolve
from pitboss.models.decisions import DecisionFile
from pitboss.sim.past import RunPast
from pitboss.sim.replay import Script, ticks_between
from pitboss.skill.load import check_plain, summary
from pitboss.skill.schema import Skill
from pitboss.tick import Ports
from pitboss.tools.define import ToolContext, ToolDefinition
from pitboss.tools.registry import lookup, permit, registry
from pitboss.venues.perp.assets import SHIPPED, Asset
from pitboss.venues.perp.intents import TERMINAL
from pitboss.venues.perp.state import Terms
from pitboss.venues.perp.tape import Tape, make_tape

DEFAULT_VENUE = "hyperliquid"
LEAP_COMMITS = 100
"""Records of policies and decision files are cheap to make again: they share larger transactions."""


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for. `decisions` is the text of a decisions file, when one replaces the model."""

    skill: Mapping[str, Any]
    from_at: Instant
    to_at: Instant
    model: str = ""
    decisions: str | None = None
    data_venue: str = ""
    equity_usd: Decimal = Decimal(10_000)
    seed: int = 0
    taker_bps: Decimal = Decimal("4.5")
    maker_bps: Decimal = Decimal("1.5")
    slippage_bps_per_million: Decimal = Decimal(10)
    penalty_bps: Decimal = Decimal(50)
    news_latency_ms: int = 0
    news_latency: str = ""
    """Where news is not all equally late: what `data.arrival` reads. It stands instead of the milliseconds."""
    decision_latency_ms: int = 0
    close_at_end: bool = False
    prompts: bool | None = None
    max_gap: int = 12
    max_cost_usd: Decimal | None = None
    price_in: Decimal | None = None
    price_out: Decimal | None = None
    any_price: bool = False
    speculate: str = "auto"
    max_waste_pct: Decimal = Decimal(35)
    repeat: int = 0
    """Which repeat of the same question this run asks: a cached answer serves the same repeat only."""

    @property
    def source(self) -> str:
        """Who decides, as it is shown: a model's name, or that a file did."""
        return "decisions" if self.decisions is not None else self.model or str(self.skill.get("model", ""))


@dataclass(frozen=True, slots=True, eq=False)
class Assembly:
    """A backtest ready to run."""

    request: Request
    skill: Skill
    script: Script
    venue: str
    data_digest: str
    synthetic: bool


def assemble(request: Request, lake: Lake, settings: Settings) -> Assembly:
    """Check the request against the data and build everything the replay needs. Raises `UserError` before any work."""
    skill = read_skill(request.skill)
    symbols = skill.context.sorted_symbols
    if request.to_at <= request.from_at:
        raise UserError("the range is empty: --to is not after --from", "swap them, or choose a later --to")
    if request.equity_usd <= 0:
        raise UserError("equity must be above zero", "for example --equity 10000")
    venue = choose_venue(request.data_venue or settings.data_venue, lake, symbols)
    period = interval_ms(skill.schedule.every)
    base = base_interval(lake, venue, symbols, period, request.from_at, request.to_at)
    assets = _assets(lake, venue, symbols)
    ticks = ticks_between(request.from_at, request.to_at, period)
    if not len(ticks):
        raise UserError(f"no {skill.schedule.every} tick falls into the range", "choose a longer range")
    decider = make_decider(request, skill, ticks)
    prompts = wants_prompts(request, decider)
    shown = (skill.context.bars_interval, *(skill.context.timeframes() if prompts else ()))
    market = load_market(
        lake,
        venue,
        symbols,
        sorted({base, *shown}, key=interval_ms),
        request.to_at,
        request.news_latency_ms,
        request.from_at,
        with_news=prompts,
        news_latency=parse_latency(request.news_latency) if request.news_latency else None,
    )
    for symbol in symbols:
        check_gaps(market.bars[symbol, base], request.from_at, request.to_at, request.max_gap)
    script = make_script(request, skill, market, base, assets, decider, settings.commit_records)
    script = replace(script, most_errors=settings.model_errors)
    digest = data_digest(market, symbols, {base, *shown}, news=prompts, events=prompts)
    return Assembly(request, skill, script, venue, digest, lake.is_synthetic(venue))


def wants_prompts(request: Request, decider: Decider) -> bool:
    """Planned deciders read no prompt, so none is built unless asked for; models always get one."""
    return bool(request.prompts) if isinstance(decider, Planned) else True


def make_script(
    request: Request,
    skill: Skill,
    market: Market,
    base: str,
    assets: dict[str, Asset],
    decider: Decider,
    commit_records: int,
) -> Script:
    """The replay of a request over a market that has been loaded."""
    ticks = ticks_between(request.from_at, request.to_at, interval_ms(skill.schedule.every))
    quick, prompts = isinstance(decider, Planned), wants_prompts(request, decider)
    terms = _terms(request, skill, assets)
    leaps = quick and not prompts
    ports = Ports(
        skill=skill,
        limits=caps_of(skill),
        terms=terms,
        view=market.view,
        decider=decider,
        broker=PaperBroker(terms, request.decision_latency_ms),
        context=decider.context if isinstance(decider, ToolLoop) else Context(skill),
        started_at=int(ticks[0]),
        keep_prompts=request.prompts is not False,
        build_prompts=prompts,
        wakes=not quick,
    )
    return Script(
        ports=ports,
        market=market,
        base_interval=base,
        tape=_tape(market, skill.context.sorted_symbols, base, int(ticks[0]), request.to_at),
        tick_at=ticks,
        to_at=request.to_at,
        initial_usd=request.equity_usd,
        close_at_end=request.close_at_end,
        planned=leaps,
        commit_records=commit_records * LEAP_COMMITS if leaps else commit_records,
        past=_past_of(decider),
    )


def read_skill(plain: Mapping[str, Any]) -> Skill:
    """A skill from its plain document, with tool names checked."""
    check = check_plain(plain)
    if check.skill is None:
        raise summary(str(plain.get("name", "skill")), check.errors)
    permit([name for name in check.skill.tools.built_in if name != TERMINAL], "write")
    return check.skill


def tool_names() -> dict[str, str]:
    """Every tool, and why the agent of a skill cannot have it; empty where it can."""
    why = "is for questions about a run, not for an agent that decides"
    return {name: "" if "write" in tool.modes else why for name, tool in registry().items()}


def choose_venue(asked: str, lake: Lake, symbols: tuple[str, ...]) -> str:
    """The venue asked for; else hyperliquid if it has any bars here, else the only venue that has."""
    if asked:
        return asked
    holding = [venue for venue in lake.venues("bars") if all(lake.intervals(venue, symbol) for symbol in symbols)]
    if len(holding) == 1:
        return holding[0]
    return DEFAULT_VENUE


def _assets(lake: Lake, venue: str, symbols: tuple[str, ...]) -> dict[str, Asset]:
    known = {**lake.assets(venue), **SHIPPED}
    for symbol in symbols:
        if symbol not in known:
            raise UserError(
                f"nothing is known about {symbol}: lot, leverage and margin tiers are missing",
                "import the exchange's `meta` reply with `pitboss data import meta.json --kind meta`",
            )
    return {symbol: known[symbol] for symbol in symbols}


def _terms(request: Request, skill: Skill, assets: dict[str, Asset]) -> Terms:
    return Terms(
        assets=assets,
        maker_bps=request.maker_bps,
        taker_bps=request.taker_bps,
        slippage_bps_per_million=request.slippage_bps_per_million,
        penalty_bps=request.penalty_bps,
        daily_loss_halt_pct=skill.risk.daily_loss_halt_pct,
        drawdown_halt_pct=skill.risk.drawdown_halt_pct,
    )


def _tape(market: Market, symbols: tuple[str, ...], base: str, start: Instant, to_at: Instant) -> Tape:
    def points(kind: str) -> dict[str, Points]:
        return {symbol: market.points[kind, symbol] for symbol in symbols if (kind, symbol) in market.points}

    prices = {**points("mark"), **points("oracle")}
    return make_tape({symbol: market.bars[symbol, base] for symbol in symbols}, start, to_at, points("funding"), prices)


def make_decider(request: Request, skill: Skill, ticks: Ints) -> Decider:
    if request.decisions is not None:
        return DecisionFile.read(request.decisions.encode(), "decisions", set(ticks.tolist()))
    found = resolve(request.source, request.seed)
    if isinstance(found, Planned):
        return found
    looks = tuple(permit([name for name in skill.tools.built_in if name != TERMINAL], "write"))
    terminal = lookup(TERMINAL)
    return ToolLoop(
        name=request.source,
        model=found,
        context=Context(skill),
        hydrate=Toolbox(looks, RunPast() if looks else None),
        terminal=ToolSpec(terminal.name, terminal.description, terminal.schema),
        max_steps=skill.max_steps,
        retry_refused=skill.retry_refused,
        settings=skill.model_settings.request(),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Toolbox:
    """The built-in tools of a skill, built anew for every tick. Their past is told by the replay that has the decider."""

    looks: tuple[ToolDefinition, ...]
    past: RunPast | None
    recordings: Recordings = NO_RECORDINGS
    outside: Callable[[Instant], Mapping[str, Tool]] | None = None
    """Tools of other programs as they are at an instant."""

    def __call__(self, observation: Observation, judge: Judge) -> Mapping[str, Tool]:
        """The tools of one tick."""
        context = ToolContext(observation, "write", judge, self.past or NO_PAST, self.recordings)
        tools = {look.name: look.build(context) for look in self.looks}
        return tools if self.outside is None else {**tools, **self.outside(observation.at)}


def _past_of(decider: Decider) -> RunPast | None:
    tools = decider.hydrate if isinstance(decider, ToolLoop) else None
    return tools.past if isinstance(tools, Toolbox) else None
