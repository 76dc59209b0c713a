"""Small perp markets and backtests for tests: no files and no database; every other part is the real one."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pitboss.agent.decider import Decider, Planned
from pitboss.agent.loop import ToolLoop
from pitboss.core.asof import Market
from pitboss.core.asset import Asset
from pitboss.core.instant import INTERVALS, Instant, interval_ms
from pitboss.core.market import Bars, PointKind, Points
from pitboss.core.order_book import Books, Level, write_levels
from pitboss.core.state import State
from pitboss.engine.guard import Judgement, guard
from pitboss.sim.connections import Connections
from pitboss.sim.course import MAX_MODEL_ERRORS, ticks_between
from pitboss.sim.past import RunPast
from pitboss.sim.replay import replay
from pitboss.sim.watch import Watch
from pitboss.testing.journal import MemoryJournal
from pitboss.tools.toolbox import Toolbox
from pitboss.venues.perp.assembly import PerpRun, anonymiser_of_run, read_skill
from pitboss.venues.perp.assets import SHIPPED
from pitboss.venues.perp.caps import PerpCaps
from pitboss.venues.perp.context import PerpPrompts
from pitboss.venues.perp.course import PerpCourse, first_state
from pitboss.venues.perp.outcome import PerpLedger, read_ledger
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.rule_book import PerpRuleBook
from pitboss.venues.perp.state import TradingTerms
from pitboss.venues.perp.tape import Tape, make_tape

Row = tuple[int, float, float, float, float]
"""Open time, open, high, low, close."""
RowWithVolume = tuple[int, float, float, float, float, float]
"""A row with a volume; rows without one get volume 1."""
Rows = Sequence[Row] | Sequence[RowWithVolume]

Series = Mapping[str, Sequence[tuple[int, float]]]


def plain_skill(symbols: Sequence[str] = ("BTC",), every: str = "5m", **more: Any) -> dict[str, Any]:
    """Return a small valid skill document; `more` replaces whole top-level parts, usually `risk={…}`."""
    return {
        "pitboss": 1,
        "name": "sample",
        "venue": "perp",
        "model": "policy/hold",
        "schedule": {"every": every},
        "strategy": {"mode": "thesis", "thesis": "Prices that rise keep rising.", "avoid": "Nothing in particular."},
        "context": {"symbols": list(symbols), "bars_interval": "5m", "bars_lookback": 50},
        **more,
    }


def make_bars(symbol: str, interval: str, rows: Rows) -> Bars:
    """Build bars from rows; the volume is 1 where a row has none."""
    times = np.array([row[0] for row in rows], dtype=np.int64)
    opened, high, low, close = np.array([row[1:5] for row in rows], dtype=np.float64).reshape(-1, 4).T.copy()
    volume = np.array([row[5] if len(row) > 5 else 1.0 for row in rows], dtype=np.float64)
    return Bars(symbol, interval, interval_ms(interval), times, opened, high, low, close, volume)


def make_market(
    bars: Mapping[str, Rows], interval: str = "5m", funding: Series | None = None, marks: Series | None = None
) -> Market:
    """Build a market of one interval."""
    point_series: tuple[tuple[PointKind, Series], ...] = (("funding", funding or {}), ("mark", marks or {}))
    points = {
        (str(kind), symbol): Points(
            symbol,
            kind,
            np.array([at for at, _ in rows], dtype=np.int64),
            np.array([value for _, value in rows], dtype=np.float64),
        )
        for kind, series in point_series
        for symbol, rows in series.items()
    }
    return Market({(symbol, interval): make_bars(symbol, interval, rows) for symbol, rows in bars.items()}, points)


def make_tape_of(
    bars: Mapping[str, Rows],
    interval: str = "5m",
    funding: Series | None = None,
    marks: Series | None = None,
    from_at: Instant | None = None,
    books: Mapping[str, Books] | None = None,
) -> Tape:
    """Build the tape of a small market: all its bars, or those that open at or after `from_at`."""
    market = make_market(bars, interval, funding, marks)
    columns = {symbol: market.bars[symbol, interval] for symbol in bars}
    opens = [int(column.open_at[0]) for column in columns.values() if len(column)]
    ends = [int(column.open_at[-1]) + 1 for column in columns.values() if len(column)]
    points = {
        kind: {s: series for (k, s), series in market.points.items() if k == kind} for kind in ("funding", "mark")
    }
    start = min(opens) if from_at is None else from_at
    return make_tape(columns, start, max(ends), points["funding"], points["mark"], books)


def interval_name(length_ms: int) -> str:
    """Return the name of an interval by its length."""
    return next(name for name, length in INTERVALS.items() if length == length_ms)


def build(
    request: PerpRequest,
    market: Market,
    base: str = "5m",
    decider: Decider | None = None,
    assets: Mapping[str, Asset] = SHIPPED,
    commit_records: int = 50,
    books: Mapping[str, Books] | None = None,
) -> PerpCourse:
    """Build a replay over a given market; without a decider the request's own model or decisions decide."""
    if decider is not None and not isinstance(decider, Planned) and request.is_program:
        request = replace(request, model="scripted/model", decisions=None)
    skill = read_skill(request.skill)
    ticks = ticks_between(request.from_at, request.to_at, skill.every_ms)
    run = PerpRun(
        request=request,
        skill=skill,
        data_venue="made",
        data_digest="",
        synthetic=True,
        tick_at=ticks,
        market=market,
        base_interval=base,
        base_gap="",
        assets={symbol: assets[symbol] for symbol in skill.context.symbols},
        books=books,
        anonymiser=anonymiser_of_run(request, skill, market, base, int(ticks[0])),
        commit_records=commit_records,
        most_errors=MAX_MODEL_ERRORS,
    )
    if isinstance(decider, ToolLoop) and run.anonymiser is not None:
        hydrate = decider.hydrate
        if isinstance(hydrate, Toolbox):
            offered = tuple(tool for tool in hydrate.definitions if tool.reach == "as_of")
            hydrate = replace(hydrate, definitions=offered, past_filter=run.anonymiser)
        decider = replace(decider, context=PerpPrompts(skill, run.anonymiser), hydrate=hydrate)
    course = run.course(Connections(decider=decider))
    if isinstance(decider, ToolLoop) and isinstance(decider.hydrate, Toolbox):
        past = decider.hydrate.past
        course = replace(course, past=past if isinstance(past, RunPast) else None)
    return course


def make_books(symbol: str, rows: Sequence[tuple[int, Sequence[Level], Sequence[Level]]]) -> Books:
    """Build order books from rows of instant, bids and asks."""
    return Books(
        symbol,
        np.array([row[0] for row in rows], dtype=np.int64),
        [write_levels(row[1]) for row in rows],
        [write_levels(row[2]) for row in rows],
    )


def judge(caps: PerpCaps, terms: TradingTerms, state: State, intent: Any, now: Instant) -> Judgement:
    """Judge one intent by R1 to R13 on the present state."""
    return guard(PerpRuleBook(caps, terms, state.world, state.accepted_opens, now), state.seen, intent, now)


def play(course: PerpCourse, watch: Watch | None = None) -> tuple[State, MemoryJournal, PerpLedger]:
    """Run a replay to its end in memory."""
    journal = MemoryJournal()
    state = asyncio.run(replay(course, journal, first_state(course), watch or Watch()))
    return state, journal, read_ledger(journal.records())
