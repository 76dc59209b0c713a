"""Runs to measure: a temporary workspace with a market in it, requests for it, and the replay of one with a stopwatch.

Everything goes through what a user gets: the lake on disk, `assemble`, the stored journal, SQLite. Only the model of
the tool loop is put in by hand, because a scripted one has no name that could be asked for.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, TypeVar

from pitboss.agent.loop import ToolLoop
from pitboss.bench.market import START_AT, VENUE, MarketShape, write_market
from pitboss.bootstrap.kits import kit_of
from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core import codec
from pitboss.core.instant import DAY_MS, Instant
from pitboss.core.ports import Model, ModelReply, ModelRequest
from pitboss.data.lake import Lake
from pitboss.models.scripted import ScriptedModel, calls
from pitboss.sim.replay import replay
from pitboss.sim.request import BacktestRequest, PreparedRun
from pitboss.sim.watch import Watch
from pitboss.skill.digest import normal, skill_digest
from pitboss.store.journal import StoredJournal
from pitboss.venues.perp.assembly import PerpRequest

P = TypeVar("P", bound=PreparedRun)
EQUITY_USD = Decimal(1_000_000)
"""Large against the price of one unit, so that a peer which trades whole units only does the same work."""

POSITION_PCT = 25


class Grounds:
    """Where measurements take place: one folder, one market in it for each shape asked for, workspaces on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made = 0

    def market(self, shape: MarketShape) -> Path:
        """A workspace folder whose lake holds this market; made once."""
        home = self.folder / f"market-{shape.name}"
        if not (home / "lake").is_dir():
            write_market(Lake(home / "lake"), shape)
        return home

    def workspace(
        self, shape: MarketShape, processes: Literal["one", "several"] = "several", commit_records: int = 50
    ) -> Workspace:
        """A new workspace with its own database on a market."""
        self._made += 1
        home = self.market(shape)
        # Built, not loaded: variables of the environment must not lead a benchmark into somebody's own workspace.
        settings = Settings.model_construct(
            home=home,
            database_url=str(home / f"trial-{self._made}.db"),
            sqlite_processes=processes,
            commit_records=commit_records,
            data_venue=VENUE,
        )
        return open_workspace(settings)


def policy_request(shape: MarketShape, from_at: Instant | None = None, model: str = "policy/sma_cross") -> PerpRequest:
    """A policy deciding on every bar: a quarter of the equity, fees but no slippage, and no halt that ends it early."""
    return PerpRequest(
        skill=skill(shape, model, "5m"),
        from_at=START_AT if from_at is None else from_at,
        to_at=shape.end_at,
        data_venue=VENUE,
        equity_usd=EQUITY_USD,
        slippage_bps_per_million=Decimal(0),
    )


def model_request(shape: MarketShape, ticks: int, every: str = "5m", step_ms: int = 300_000) -> PerpRequest:
    """A model asked at each of so many ticks, once all windows it is shown are full. The stand-in only holds the place."""
    from_at = START_AT + 3 * DAY_MS
    return PerpRequest(
        skill=skill(shape, "standin/analyst", every),
        from_at=from_at,
        to_at=min(from_at + ticks * step_ms, shape.end_at),
        data_venue=VENUE,
        equity_usd=EQUITY_USD,
        prompts=True,
    )


def skill(shape: MarketShape, model: str, every: str) -> dict[str, Any]:
    """The skill of the benchmark: 100 bars of 5m and, for models, 15m and 1h above them."""
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


class Stopwatch:
    """A model that answers through another and adds up how long that took, to be taken off the time of a run."""

    def __init__(self, inner: ScriptedModel) -> None:
        self.name = inner.name
        self.inner = inner
        self.asked = 0
        self.seconds = 0.0

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The other model's answer."""
        began = perf_counter()
        reply = await self.inner.complete(request)
        self.inner.requests.clear()  # its memory of every prompt would become the largest thing in the process
        self.asked += 1
        self.seconds += perf_counter() - began
        return reply


def trader(symbol: str = "SOL") -> Stopwatch:
    """A scripted model that mostly holds, opens at every 40th question and closes 20 questions later."""
    hold = calls("propose_order", action="no_op", symbol=symbol, reason="Nothing has changed enough to act on it.")
    enter = calls(
        "propose_order", action="open_long", symbol=symbol, size_usd=20_000, leverage=2, reason="It turns up."
    )
    leave = calls("propose_order", action="close", symbol=symbol, reason="The move has had its time.")
    asked = 0

    def answer(request: ModelRequest) -> ModelReply:
        nonlocal asked
        del request
        asked += 1
        return enter if asked % 40 == 10 else leave if asked % 40 == 30 else hold

    return Stopwatch(ScriptedModel(answer))


def with_model(assembly: P, model: Model) -> P:
    """The same backtest with another model in its tool loop."""
    ports = assembly.script.ports
    loop = ports.decider
    assert isinstance(loop, ToolLoop)
    # Who answers by a script has no answer to a question about lessons.
    changed = replace(ports, decider=replace(loop, name=model.name, model=model), reflector=None)
    return replace(assembly, script=replace(assembly.script, ports=changed))


def journal(workspace: Workspace, assembly: PreparedRun) -> StoredJournal:
    """The journal of a new run of this backtest."""
    made = assembly.skill
    saved = workspace.skills.save(made.name, skill_digest(made), codec.dumps(normal(made)))
    run_id = workspace.runs.create(saved.id, saved.version, assembly.request.source, {}, assembly.data_digest)
    return StoredJournal(workspace.database, run_id, workspace.runs.claim(run_id))


def replay_seconds(
    workspace: Workspace,
    assembly: PreparedRun,
    ready: Callable[[StoredJournal], None] | None = None,
    clock: Callable[[], float] = perf_counter,
) -> float:
    """How long the replay of an assembled backtest takes, its records stored, nothing read or measured after it."""
    into = journal(workspace, assembly)

    async def run() -> float:
        began = clock()
        await replay(assembly.script, into, kit_of(assembly.request.skill).first_state(assembly.script), Watch())
        return clock() - began

    taken = asyncio.run(run())
    if ready is not None:
        ready(into)
    return taken


def assembled(workspace: Workspace, request: BacktestRequest) -> PreparedRun:
    """A backtest over the workspace's lake, loaded and checked."""
    return kit_of(request.skill).assemble(request, workspace.lake, workspace.settings)
