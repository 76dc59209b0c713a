"""Backtests to measure: temporary workspaces on generated markets, requests, scripted models, and a timed replay.

Runs go through the code that users run: the lake on disk, the venue's `prepare`, the stored journal, SQLite. Only the model
is passed in directly, because a scripted one has no name that a request could give.
"""

import asyncio
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core import codec
from pitboss.core.instant import DAY_MS, Instant
from pitboss.core.ports import Model, ModelReply, ModelRequest
from pitboss.data.lake import Lake
from pitboss.models.scripted import ScriptedModel, calls
from pitboss.runs.venues import venue_of
from pitboss.sim.connections import Connections
from pitboss.sim.course import Course
from pitboss.sim.prepared_run import PreparedRun
from pitboss.sim.replay import replay
from pitboss.sim.request import BacktestRequest
from pitboss.sim.speculation import Speculation
from pitboss.sim.watch import Watch
from pitboss.skill.digest import skill_digest
from pitboss.store.journal import StoredJournal
from pitboss.venues.perp.request import PerpRequest
from pitboss_dev.bench.market import START_AT, VENUE, MarketShape, write_market

EQUITY_USD = Decimal(1_000_000)
"""Large relative to the price of one unit, so that a peer which trades whole units only does the same work."""

POSITION_PCT = 25


class BenchFolder:
    """The temporary folder of a suite: one generated market for each shape, and workspaces on them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._databases = 0

    def market(self, shape: MarketShape) -> Path:
        """A workspace folder whose lake holds this market; written once."""
        home = self.path / f"market-{shape.name}"
        if not (home / "lake").is_dir():
            write_market(Lake(home / "lake"), shape)
        return home

    def workspace(
        self, shape: MarketShape, processes: Literal["one", "several"] = "several", commit_records: int = 50
    ) -> Workspace:
        """A workspace on a market, with a new database."""
        self._databases += 1
        home = self.market(shape)
        # Constructed, not loaded: variables of the environment must not point a benchmark at a user's workspace.
        settings = Settings.model_construct(
            home=home,
            database_url=str(home / f"bench-{self._databases}.db"),
            sqlite_processes=processes,
            commit_records=commit_records,
            data_venue=VENUE,
        )
        return open_workspace(settings)


def policy_request(shape: MarketShape, from_at: Instant | None = None, model: str = "policy/sma_cross") -> PerpRequest:
    """A policy that decides on every bar: a quarter of the equity, fees, no slippage, and no halt that ends it early."""
    return PerpRequest(
        skill=bench_skill(shape, model, "5m"),
        from_at=START_AT if from_at is None else from_at,
        to_at=shape.end_at,
        data_venue=VENUE,
        equity_usd=EQUITY_USD,
        slippage_bps_per_million=Decimal(0),
    )


def model_request(shape: MarketShape, ticks: int, every: str = "5m", step_ms: int = 300_000) -> PerpRequest:
    """A model asked at each of `ticks` ticks, starting where every window of bars in its prompt is full.

    The stand-in is a placeholder for the model that `model_course` is given. Reflections are as rare as a skill allows,
    which is never in a benchmark: a scripted model cannot write lessons.
    """
    skill = bench_skill(shape, "standin/analyst", every)
    skill["context"]["memory"] = {"reflection_every": 1_000}
    from_at = START_AT + 3 * DAY_MS
    return PerpRequest(
        skill=skill,
        from_at=from_at,
        to_at=min(from_at + ticks * step_ms, shape.end_at),
        data_venue=VENUE,
        equity_usd=EQUITY_USD,
        prompts=True,
    )


def bench_skill(shape: MarketShape, model: str, every: str) -> dict[str, Any]:
    """The skill of the benchmarks: 100 bars of 5m and, for models, bars of 15m and 1h."""
    return {
        "pitboss": 1,
        "name": "bench",
        "venue": "perp",
        "model": model,
        "schedule": {"every": every},
        "strategy": {
            "mode": "thesis",
            "thesis": "Short trends on this market go on for a few hours after they have become visible.",
            "look_for": "A clear direction on two timeframes at once, and room to a sensible stop.",
            "avoid": "Opening into a market that has only just turned, and adding to a position that loses.",
            "sizing": "Small and steady; less after a loss.",
        },
        "context": {
            "symbols": list(shape.symbols),
            "bars_interval": "5m",
            "bars_lookback": 100,
            "higher_timeframes": ["15m", "1h"],
        },
        "tools": {"built_in": ["fetch_recent_bars", "get_portfolio"]},
        "risk": {
            "max_position_pct": POSITION_PCT,
            "max_orders_per_hour": 1_000,
            "daily_loss_halt_pct": 1_000,
            "drawdown_halt_pct": 1_000,
        },
    }


class TimedModel:
    """A scripted model that adds up the time of its replies, so that it can be subtracted from the time of a run."""

    def __init__(self, inner: ScriptedModel) -> None:
        self.name = inner.name
        self.inner = inner
        self.requests = 0
        self.seconds = 0.0

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The reply of the scripted model."""
        start = perf_counter()
        reply = await self.inner.complete(request)
        self.inner.requests.clear()  # it keeps every prompt, which would use more memory than the run itself
        self.requests += 1
        self.seconds += perf_counter() - start
        return reply


def trading_model(symbol: str = "SOL") -> TimedModel:
    """A scripted perp model that mostly holds, opens at every 40th request and closes 20 requests later."""
    hold = calls("propose_order", action="no_op", symbol=symbol, reason="Nothing has changed enough to act on it.")
    enter = calls(
        "propose_order", action="open_long", symbol=symbol, size_usd=20_000, leverage=2, reason="It turns up."
    )
    leave = calls("propose_order", action="close", symbol=symbol, reason="The move has had its time.")
    count = 0

    def reply(request: ModelRequest) -> ModelReply:
        nonlocal count
        del request
        count += 1
        return enter if count % 40 == 10 else leave if count % 40 == 30 else hold

    return TimedModel(ScriptedModel(reply))


def prepare(workspace: Workspace, request: BacktestRequest) -> PreparedRun:
    """A backtest over the workspace's lake, checked and loaded."""
    return venue_of(request.skill).prepare(request, workspace.lake, workspace.settings)


def model_course(prepared: PreparedRun, model: Model, speculation: Speculation | None = None) -> Course:
    """The replay of a prepared backtest with this model in its tool loop."""
    return prepared.course(Connections(model=model, speculation=speculation))


def new_journal(workspace: Workspace, prepared: PreparedRun) -> StoredJournal:
    """The journal of a new run of this backtest."""
    skill = prepared.skill
    stored = workspace.skills.save(skill.name, skill_digest(skill), codec.dumps(skill.normal()))
    run_id = workspace.runs.create(stored.id, stored.version, prepared.request.source, {}, prepared.data_digest)
    return StoredJournal(workspace.database, run_id, workspace.runs.claim(run_id))


def replay_seconds(
    workspace: Workspace,
    prepared: PreparedRun,
    course: Course,
    inspect: Callable[[StoredJournal], None] | None = None,
    clock: Callable[[], float] = perf_counter,
) -> float:
    """How long a replay takes with its records stored; loading before it and metrics after it do not count.

    `inspect` is called with the journal after the clock has been read.
    """
    journal, venue = new_journal(workspace, prepared), venue_of(prepared.request.skill)

    async def run() -> float:
        start = clock()
        await replay(course, journal, venue.first_state(course), Watch())
        return clock() - start

    duration = asyncio.run(run())
    if inspect is not None:
        inspect(journal)
    return duration
