"""Putting a perp backtest together: a request, the data it needs, the ports it ticks with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pitboss.agent.decider import Decider, Judge, Planned
from pitboss.agent.loop import ToolLoop
from pitboss.bootstrap.settings import Settings
from pitboss.core.asof import Market
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, interval_ms
from pitboss.core.market import Ints, Points
from pitboss.core.order_book import Books
from pitboss.core.past import NO_PAST, NO_RECORDINGS, Recordings
from pitboss.core.ports import Tool, ToolSpec
from pitboss.data.news_latency import parse_latency
from pitboss.data.books import load_books
from pitboss.data.feed import base_interval, data_digest, load_market, with_listings
from pitboss.data.lake import Lake
from pitboss.models.catalog import resolve
from pitboss.models.decisions import DecisionFile
from pitboss.sim.course import ticks_between
from pitboss.sim.past import RunPast
from pitboss.sim.request import PreparedRun
from pitboss.skill.load import check_plain, summary
from pitboss.skill.schema import Skill
from pitboss.tools.define import ToolContext, ToolDefinition
from pitboss.tools.registry import lookup, permit, registry
from pitboss.venues.perp.assets import SHIPPED, Asset
from pitboss.venues.perp.blind.anonymiser import Disguise, read_disguise
from pitboss.venues.perp.blind.setup import disguise_for
from pitboss.venues.perp.broker import PaperBroker
from pitboss.venues.perp.context import PerpPrompts
from pitboss.venues.perp.course import PerpCourse
from pitboss.venues.perp.guard import caps_of
from pitboss.venues.perp.intents import TERMINAL
from pitboss.venues.perp.memory import recall_of
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.ports import PerpPorts
from pitboss.venues.perp.reflection import Reflector
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.state import TradingTerms
from pitboss.venues.perp.tape import Tape, make_tape

DEFAULT_VENUE = "hyperliquid"
LEAP_COMMITS = 100
"""Records of policies and decision files are cheap to make again: they share larger transactions."""


@dataclass(frozen=True, slots=True, eq=False)
class Assembly(PreparedRun):
    """A perp backtest ready to run."""

    request: PerpRequest
    skill: Skill
    script: PerpCourse


def assemble(request: PerpRequest, lake: Lake, settings: Settings) -> Assembly:
    """Check the request against the data and build everything the replay needs. Raises `UserError` before any work."""
    skill = read_skill(request.skill)
    symbols = skill.context.sorted_symbols
    if request.to_at <= request.from_at:
        raise UserError("the range is empty: --to is not after --from", "swap them, or choose a later --to")
    if request.equity_usd <= 0:
        raise UserError("equity must be above zero", "for example --equity 10000")
    venue = choose_venue(request.data_venue or settings.data_venue, lake, symbols)
    period = interval_ms(skill.schedule.every)
    base = base_interval(lake, venue, symbols, period, request.from_at, request.to_at, request.max_gap)
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
        extracted=request.extracted_events,
    )
    market = with_listings(market, lake, venue, base, request.from_at, request.to_at, request.max_gap)
    books = run_books(request, lake, venue, symbols, int(ticks[0]))
    check_volume(request, market, symbols, base)
    script = make_script(request, skill, market, base, assets, decider, settings.commit_records, books)
    script = replace(script, most_errors=settings.model_errors)
    digest = data_digest(market, symbols, {base, *shown}, news=prompts, events=prompts, books=books)
    return Assembly(request, skill, script, venue, digest, lake.is_synthetic(venue))


def wants_prompts(request: PerpRequest, decider: Decider) -> bool:
    """Planned deciders read no prompt, so none is built unless asked for; models always get one."""
    return bool(request.prompts) if isinstance(decider, Planned) else True


def make_script(
    request: PerpRequest,
    skill: Skill,
    market: Market,
    base: str,
    assets: dict[str, Asset],
    decider: Decider,
    commit_records: int,
    books: Mapping[str, Books] | None = None,
) -> PerpCourse:
    """The replay of a request over a market that has been loaded."""
    ticks = ticks_between(request.from_at, request.to_at, interval_ms(skill.schedule.every))
    quick, prompts = isinstance(decider, Planned), wants_prompts(request, decider)
    disguise = _disguise(request, skill, market, base, int(ticks[0]), quick)
    decider = blinded(decider, skill, disguise)
    terms = _terms(request, skill, assets)
    leaps = quick and not prompts
    ports = PerpPorts(
        skill=skill,
        limits=caps_of(skill),
        terms=terms,
        view=market.view,
        decider=decider,
        broker=PaperBroker(terms, request.decision_latency_ms),
        context=decider.context if isinstance(decider, ToolLoop) else PerpPrompts(skill, disguise),
        started_at=int(ticks[0]),
        keep_prompts=request.prompts is not False,
        build_prompts=prompts,
        wakes=not quick,
        recall=recall_of(skill, base) if prompts else None,
        reflector=reflector_of(decider, skill),
    )
    return PerpCourse(
        ports=ports,
        market=market,
        base_interval=base,
        tape=_tape(market, skill.context.sorted_symbols, base, int(ticks[0]), request.to_at, books),
        tick_at=ticks,
        to_at=request.to_at,
        initial_usd=request.equity_usd,
        close_at_end=request.close_at_end,
        planned=leaps,
        commit_records=commit_records * LEAP_COMMITS if leaps else commit_records,
        past=_past_of(decider),
    )


def reflector_of(decider: Decider, skill: Skill) -> Reflector | None:
    """Who writes lessons: the model that decides. Where none does, nobody."""
    if not isinstance(decider, ToolLoop) or not skill.context.memory.enabled:
        return None
    every = skill.context.memory.reflection_every
    return Reflector(decider.model, decider.context, every, decider.settings, decider.forcing)


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


def run_books(
    request: PerpRequest, lake: Lake, venue: str, symbols: tuple[str, ...], start: Instant
) -> dict[str, Books] | None:
    """The order books that can price a fill of the run, where they were asked for."""
    if request.slippage == "linear":
        return None
    if request.slippage != "book":
        raise UserError(f"there is no slippage {request.slippage!r}", "linear, or book where order books were imported")
    return load_books(lake, venue, symbols, start - request.book_max_age_ms, request.to_at)


def check_volume(request: PerpRequest, market: Market, symbols: tuple[str, ...], base: str) -> None:
    """Refuse to bound fills by a volume that nobody has recorded."""
    if request.max_volume_pct is None:
        return
    if not 0 < request.max_volume_pct <= 100:
        raise UserError("the share of the volume is not above 0 and at most 100", "for example --max-volume-pct 10")
    for symbol in symbols:
        bars = market.bars[symbol, base]
        first, end = bars.open_at.searchsorted((request.from_at, request.to_at))
        if end > first and not bars.volume[first:end].any():
            raise UserError(
                f"the bars of {symbol} have no volume, so no share of it can be taken",
                "leave --max-volume-pct out, or import bars that have it",
            )


def _terms(request: PerpRequest, skill: Skill, assets: dict[str, Asset]) -> TradingTerms:
    return TradingTerms(
        assets=assets,
        maker_bps=request.maker_bps,
        taker_bps=request.taker_bps,
        slippage_bps_per_million=request.slippage_bps_per_million,
        penalty_bps=request.penalty_bps,
        daily_loss_halt_pct=skill.risk.daily_loss_halt_pct,
        drawdown_halt_pct=skill.risk.drawdown_halt_pct,
        book_max_age_ms=request.book_max_age_ms if request.slippage == "book" else None,
        max_volume_pct=request.max_volume_pct,
    )


def _tape(
    market: Market,
    symbols: tuple[str, ...],
    base: str,
    start: Instant,
    to_at: Instant,
    books: Mapping[str, Books] | None,
) -> Tape:
    # what goes on after the end of a listing moves nobody's account
    ends = {symbol: listing.delisted_at for symbol, listing in market.listings.items() if listing.delisted_at}

    def points(kind: str) -> dict[str, Points]:
        found = {symbol: market.points[kind, symbol] for symbol in symbols if (kind, symbol) in market.points}
        for symbol in found.keys() & ends.keys():
            one, stop = found[symbol], int(found[symbol].at.searchsorted(ends[symbol]))
            found[symbol] = replace(one, at=one.at[:stop], value=one.value[:stop])
        return found

    prices = {**points("mark"), **points("oracle")}
    bars = {symbol: market.bars[symbol, base] for symbol in symbols}
    for symbol in bars.keys() & ends.keys():
        bars[symbol] = bars[symbol].slice(0, int(bars[symbol].open_at.searchsorted(ends[symbol])))
    return make_tape(bars, start, to_at, points("funding"), prices, books)


def make_decider(request: PerpRequest, skill: Skill, ticks: Ints) -> Decider:
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
        context=PerpPrompts(skill),
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
    disguise: Disguise | None = None

    def __call__(self, observation: Observation, judge: Judge) -> Mapping[str, Tool]:
        """The tools of one tick."""
        past = self.past or NO_PAST
        past = past if self.disguise is None else self.disguise.past(past)
        context = ToolContext(observation, "write", judge, past, self.recordings)
        tools = {look.name: look.build(context) for look in self.looks}
        return tools if self.outside is None else {**tools, **self.outside(observation.at)}


def _disguise(
    request: PerpRequest, skill: Skill, market: Market, base: str, start: Instant, strangers: bool
) -> Disguise | None:
    if not request.blind:
        return None
    if request.disguise is not None:
        return read_disguise(request.disguise)
    return replace(disguise_for(market, skill.context.sorted_symbols, base, request.seed, start), strangers=strangers)


def blinded(decider: Decider, skill: Skill, disguise: Disguise | None) -> Decider:
    """The decider of a blind run: its model sees a disguise, and no tools whose answers cannot be disguised."""
    if disguise is None or not isinstance(decider, ToolLoop):
        return decider
    tools = decider.hydrate
    if isinstance(tools, Toolbox):
        looks = tuple(look for look in tools.looks if look.reach == "as_of")
        tools = replace(tools, looks=looks, disguise=disguise)
    return replace(decider, context=PerpPrompts(skill, disguise), hydrate=tools)


def _past_of(decider: Decider) -> RunPast | None:
    tools = decider.hydrate if isinstance(decider, ToolLoop) else None
    return tools.past if isinstance(tools, Toolbox) else None
