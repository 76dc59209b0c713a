"""Assembles a perp backtest: checks the request, loads the data, and builds the ports over its connections."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pitboss.agent.decider import Decider, Planned
from pitboss.agent.loop import ToolLoop
from pitboss.bootstrap.settings import Settings
from pitboss.core.asof import Market, View
from pitboss.core.asset import Asset
from pitboss.core.errors import UserError
from pitboss.core.instant import HOUR_MS, INTERVALS, Instant, interval_hint, interval_ms
from pitboss.core.market import Points
from pitboss.core.order_book import Books
from pitboss.core.past import NO_PAST
from pitboss.core.receipt import Receipt
from pitboss.data.books import load_books
from pitboss.data.feed import base_intervals, check_symbols, choose_venue, data_digest, load_market, with_listings
from pitboss.data.lake import Lake
from pitboss.data.news_latency import parse_latency
from pitboss.engine.execute import Broker
from pitboss.runs.deciders import Deciders
from pitboss.sim.connections import UNCONNECTED, Connections
from pitboss.sim.course import ticks_of
from pitboss.sim.past import RunPast
from pitboss.sim.prepared_run import PreparedRun, ports_fields
from pitboss.sim.request import check_range
from pitboss.skill.load import read_skill as read_document
from pitboss.tools.registry import Registry, permit, registry_of
from pitboss.venues.perp.assets import SHIPPED
from pitboss.venues.perp.blind.anonymiser import PerpAnonymiser, read_anonymiser
from pitboss.venues.perp.blind.setup import anonymiser_for
from pitboss.venues.perp.broker import PaperBroker
from pitboss.venues.perp.context import PerpPrompts
from pitboss.venues.perp.course import PerpCourse
from pitboss.venues.perp.intents import DECISION, TERMINAL
from pitboss.venues.perp.memory import memory_settings
from pitboss.venues.perp.policy import policy
from pitboss.venues.perp.ports import PerpPorts
from pitboss.venues.perp.reflection import TradeReflector
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.skill_caps import caps_of
from pitboss.venues.perp.standin.analyst import Analyst
from pitboss.venues.perp.state import PerpWorld, TradingTerms
from pitboss.venues.perp.tape import Tape, make_tape

TOOLS = "pitboss.venues.perp.tools"
DECIDERS = Deciders(DECISION, TOOLS, policy, Analyst)
"""How the deciders of this venue are built."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PerpRun(PreparedRun):
    """A checked perp backtest with its data."""

    request: PerpRequest
    skill: PerpSkill
    market: Market
    base_interval: str
    base_gap: str
    """Why finer bars, which the lake has, are not used; empty if the finest are."""
    assets: Mapping[str, Asset]
    books: Mapping[str, Books] | None
    anonymiser: PerpAnonymiser | None = None

    def course(self, connections: Connections = UNCONNECTED) -> PerpCourse:
        """Build the course with its ports."""
        return make_course(self, connections)


def tools() -> Registry:
    """Return the built-in tools of this venue."""
    return registry_of(TOOLS)


def prepare(request: PerpRequest, lake: Lake, settings: Settings) -> PerpRun:
    """Check a request against the data and load it; raises `UserError` before any work."""
    skill = read_skill(request.skill)
    symbols = skill.context.sorted_symbols
    check_range(request)
    if request.requested_base and request.requested_base not in INTERVALS:
        raise UserError(
            f"the base interval {request.requested_base!r} is not the length of a bar",
            interval_hint(request.requested_base),
        )
    data_venue = choose_venue(request.data_venue or settings.data_venue, lake, symbols)
    check_symbols(lake, data_venue, symbols)
    period = skill.every_ms
    assets = assets_of(lake, data_venue, symbols)
    ticks = ticks_of(request, period)
    prompts = request.builds_prompts
    intervals = (skill.context.bars_interval, *(skill.context.timeframes() if prompts else ()))
    market, base, gap = _market(request, lake, data_venue, skill, intervals)
    books = run_books(request, lake, data_venue, symbols, int(ticks[0]))
    check_volume(request, market, symbols, base)
    digest = data_digest(market, symbols, {base, *intervals}, news=prompts, events=prompts, books=books)
    run = PerpRun(
        request=request,
        skill=skill,
        data_venue=data_venue,
        data_digest=digest,
        synthetic=lake.is_synthetic(data_venue),
        tick_at=ticks,
        market=market,
        base_interval=base,
        base_gap=gap,
        assets=assets,
        books=books,
        anonymiser=anonymiser_of_run(request, skill, market, base, int(ticks[0])),
        commit_records=settings.commit_records,
        most_errors=settings.model_errors,
    )
    DECIDERS.of_run(run, PerpPrompts(skill))  # refuses an invalid decisions file, an unknown policy or model
    return run


def _market(
    request: PerpRequest, lake: Lake, data_venue: str, skill: PerpSkill, intervals: Sequence[str]
) -> tuple[Market, str, str]:
    """The market, its base interval, and the gap for which finer bars are not used.

    The base interval is the finest whose bars have no long gap. If each has one, the gap of the finest is the error.
    """
    symbols, from_at, to_at, max_gap = skill.context.sorted_symbols, request.from_at, request.to_at, request.max_gap
    gaps: list[UserError] = []
    for base in base_intervals(
        lake, data_venue, symbols, skill.every_ms, from_at, to_at, max_gap, request.requested_base
    ):
        market = load_market(
            lake,
            data_venue,
            symbols,
            sorted({base, *intervals}, key=interval_ms),
            to_at,
            request.news_latency_ms,
            from_at,
            with_news=request.builds_prompts,
            news_latency=parse_latency(request.news_latency) if request.news_latency else None,
            extracted=request.extracted_events,
        )
        try:
            market = with_listings(market, lake, data_venue, base, from_at, to_at, max_gap)
        except UserError as error:
            gaps.append(error)
        else:
            return market, base, gaps[0].message if gaps else ""
    raise gaps[0]


def read_skill(plain: Mapping[str, object]) -> PerpSkill:
    """Parse a skill from its plain document and check its tool names."""
    skill = read_document(plain, PerpSkill)
    permit(tools(), skill.tool_names, "write")
    return skill


def make_course(run: PerpRun, connections: Connections = UNCONNECTED) -> PerpCourse:
    """Build the course of a prepared run."""
    request, skill, market = run.request, run.skill, run.market
    start, prompts = int(run.tick_at[0]), request.builds_prompts
    anonymiser = run.anonymiser
    context = PerpPrompts(skill, anonymiser)
    has_tools = skill.tool_names or connections.tools
    past = RunPast(TERMINAL) if has_tools and not request.is_program else None
    decider = connections.decider or DECIDERS.of_run(
        run,
        context,
        connections,
        past=past or NO_PAST,
        retry_refused=skill.retry_refused,
        past_filter=anonymiser,
    )
    leaps = request.is_program and not prompts and isinstance(decider, Planned)
    terms = terms_of(request, skill, run.assets)
    broker = PaperBroker(terms, request.decision_latency_ms)
    ports = make_ports(
        request, skill, terms, decider, broker, market.view, start, run.base_interval, connections, context
    )
    return PerpCourse(
        ports=ports,
        market=market,
        base_interval=run.base_interval,
        tape=tape_of(market, skill.context.sorted_symbols, run.base_interval, start, request.to_at, run.books),
        initial_usd=request.equity_usd,
        close_at_end=request.close_at_end,
        past=past,
        **run.course_fields(connections, leaps),
    )


def make_ports(
    request: PerpRequest,
    skill: PerpSkill,
    terms: TradingTerms,
    decider: Decider,
    broker: Broker,
    view: Callable[[Instant], View],
    started_at: Instant,
    base_interval: str,
    connections: Connections,
    context: PerpPrompts,
    reread: Callable[[PerpWorld], Awaitable[tuple[PerpWorld, Sequence[Receipt]]]] | None = None,
) -> PerpPorts:
    """Build the ports of a tick, the same for a backtest and a live account."""
    return PerpPorts(
        skill=skill,
        limits=caps_of(skill),
        terms=terms,
        view=view,
        decider=decider,
        broker=broker,
        context=decider.context if isinstance(decider, ToolLoop) else context,
        started_at=started_at,
        wakes=not request.is_program,
        memory_settings=memory_settings(skill, base_interval) if request.builds_prompts else None,
        reflector=_reflector(request, skill, connections, decider, context),
        reread=reread,
        **ports_fields(request, connections),
    )


def _reflector(
    request: PerpRequest, skill: PerpSkill, connections: Connections, decider: Decider, context: PerpPrompts
) -> TradeReflector | None:
    """Return the reflector, which uses the deciding model; a replay reads its lessons from the records."""
    memory = skill.context.memory
    if not memory.enabled or request.is_program:
        return None
    model = decider.model if isinstance(decider, ToolLoop) else connections.model
    if model is None:
        return None
    settings = connections.policy.settings(skill.model_settings.request())
    return TradeReflector(model, context, memory.reflection_every, settings, connections.policy.forcing)


def anonymiser_of_run(
    request: PerpRequest, skill: PerpSkill, market: Market, base: str, start: Instant
) -> PerpAnonymiser | None:
    """Return the anonymiser of a blind run: the stored one, or a new one from the seed and the prices at the start."""
    if not request.blind:
        return None
    if request.disguise is not None:
        return read_anonymiser(request.disguise)
    anonymiser = anonymiser_for(market, skill.context.sorted_symbols, base, request.seed, start)
    return replace(anonymiser, author_saw_market=request.is_program)


def assets_of(lake: Lake, venue: str, symbols: tuple[str, ...]) -> dict[str, Asset]:
    """Return lot, leverage and margin tiers of the symbols; raises `UserError` where they are not known."""
    assets = {**lake.assets(venue), **SHIPPED}
    for symbol in symbols:
        if symbol not in assets:
            raise UserError(
                f"lot, leverage and margin tiers of {symbol} are missing",
                "import the exchange's `meta` reply with `pitboss data import meta.json --kind meta`",
            )
    return {symbol: assets[symbol] for symbol in symbols}


def run_books(
    request: PerpRequest, lake: Lake, venue: str, symbols: tuple[str, ...], start: Instant
) -> dict[str, Books] | None:
    """Return the order books that can price a fill of the run; None if it uses linear slippage."""
    if request.slippage == "linear":
        return None
    if request.slippage != "book":
        raise UserError(f"slippage {request.slippage!r} is neither linear nor book", "book needs imported order books")
    return load_books(lake, venue, symbols, start - request.book_max_age_ms, request.to_at)


def check_volume(request: PerpRequest, market: Market, symbols: tuple[str, ...], base: str) -> None:
    """Refuse to cap fills by volume if the bars have no recorded volume."""
    if request.max_volume_pct is None:
        return
    if not 0 < request.max_volume_pct <= 100:
        raise UserError("max_volume_pct must be above 0 and at most 100", "for example --max-volume-pct 10")
    for symbol in symbols:
        bars = market.bars[symbol, base]
        first, end = bars.open_at.searchsorted((request.from_at, request.to_at))
        if end > first and not bars.volume[first:end].any():
            raise UserError(
                f"the bars of {symbol} have no volume, so fills cannot be limited to a share of it",
                "leave --max-volume-pct out, or import bars with volume",
            )


def terms_of(request: PerpRequest, skill: PerpSkill, assets: Mapping[str, Asset]) -> TradingTerms:
    """Return the costs, assets and halt thresholds of a run."""
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


def tape_of(
    market: Market,
    symbols: tuple[str, ...],
    base: str,
    start: Instant,
    to_at: Instant,
    books: Mapping[str, Books] | None = None,
) -> Tape:
    """Return the base bars of the symbols that open in `[start, to_at)`, with their funding."""
    # data after the end of a listing must not affect the account
    ends = {symbol: listing.delisted_at for symbol, listing in market.listings.items() if listing.delisted_at}

    def points(kind: str) -> dict[str, Points]:
        by_symbol = {symbol: market.points[kind, symbol] for symbol in symbols if (kind, symbol) in market.points}
        for symbol in by_symbol.keys() & ends.keys():
            series = by_symbol[symbol]
            end = ends[symbol]
            if kind == "funding":  # the rows of an hour that begins before the end are still due
                end = -(-end // HOUR_MS) * HOUR_MS
            stop = int(series.at.searchsorted(end))
            by_symbol[symbol] = replace(series, at=series.at[:stop], value=series.value[:stop])
        return by_symbol

    prices = {**points("mark"), **points("oracle")}
    bars = {symbol: market.bars[symbol, base] for symbol in symbols}
    for symbol in bars.keys() & ends.keys():
        bars[symbol] = bars[symbol].slice(0, int(bars[symbol].open_at.searchsorted(ends[symbol])))
    return make_tape(bars, start, to_at, points("funding"), prices, books)
