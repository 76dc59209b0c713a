"""Prepares a predict backtest: checks the request, loads prices and surfaces, and builds the ports once.

Surfaces come from a file if the request names one. Otherwise they are flat surfaces computed from the volatility
realised up to each instant. The kind of surface is stored with the run and shown in its report.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pitboss.agent.decider import Decider, Planned
from pitboss.bootstrap.settings import Settings
from pitboss.core.asof import Market
from pitboss.core.errors import UserError
from pitboss.core.instant import MINUTE_MS
from pitboss.data.feed import check_gaps, choose_venue, data_digest, load_market
from pitboss.data.lake import Lake
from pitboss.models.decisions import DecisionFile
from pitboss.sim.connections import UNCONNECTED, Connections
from pitboss.sim.course import LEAP_COMMITS, ticks_between
from pitboss.sim.prepared_run import PreparedRun
from pitboss.sim.request import check_range
from pitboss.venues.predict.agent import decider_of, ports_of, read_predict_skill
from pitboss.venues.predict.broker import PredictPaper
from pitboss.venues.predict.course import PredictCourse, Updates, updates_of
from pitboss.venues.predict.data.recorded import Surfaces, read_surfaces
from pitboss.venues.predict.intents import DECISION
from pitboss.venues.predict.ladder_policy import LEAST, Rungs
from pitboss.venues.predict.recorded_surfaces import Recorded
from pitboss.venues.predict.request import PredictRequest
from pitboss.venues.predict.skill import PredictSkill
from pitboss.venues.predict.state import QUOTE, Grid
from pitboss.venues.predict.surface import realised_at
from pitboss.venues.predict.svi import FLOAT

BASE = "1m"


@dataclass(frozen=True, slots=True, eq=False)
class PredictRun(PreparedRun):
    """A checked predict backtest with its data."""

    request: PredictRequest
    skill: PredictSkill
    market: Market
    surfaces: Surfaces | None
    commit_records: int
    most_errors: int

    def course(self, connections: Connections = UNCONNECTED) -> PredictCourse:
        """Build the course with its ports."""
        return make_course(self, connections)


def prepare(request: PredictRequest, lake: Lake, settings: Settings) -> PredictRun:
    """Check a request against the available data and load that data. Raises `UserError` before any work is done."""
    skill = read_predict_skill(request.skill)
    _check(request)
    underlying = skill.context.underlying
    data_venue = choose_venue(request.data_venue or settings.data_venue, lake, (underlying,))
    ticks = ticks_between(request.from_at, request.to_at, skill.every_ms)
    if not len(ticks):
        raise UserError(f"no {skill.schedule.every} tick falls into the range", "choose a longer range")
    market = load_market(lake, data_venue, [underlying], [BASE], request.to_at, 0, request.from_at, with_news=False)
    check_gaps(market.bars[underlying, BASE], request.from_at, request.to_at, request.max_gap)
    surfaces = read_surfaces(Path(request.surfaces)) if request.surfaces else None
    bars_digest = data_digest(market, [underlying], [BASE], news=False, events=False)
    run = PredictRun(
        request=request,
        skill=skill,
        data_venue=data_venue,
        data_digest=_digest(bars_digest, surfaces),
        synthetic=lake.is_synthetic(data_venue),
        tick_at=ticks,
        market=market,
        surfaces=surfaces,
        commit_records=settings.commit_records,
        most_errors=settings.model_errors,
    )
    run_decider(run)  # rejects an unknown policy or an invalid decisions file
    check_quotable(underlying, updates_between(market, underlying, int(ticks[0]), request.to_at))
    return run


def run_decider(run: PredictRun, connections: Connections = UNCONNECTED) -> Decider:
    """Build the decider of a request: a decisions file, a heuristic, or a model with tools."""
    request = run.request
    if request.decisions is None:
        return decider_of(run.skill, request.source, connections)
    return DecisionFile.read(request.decisions.encode(), "decisions", set(run.tick_at.tolist()), DECISION)


def make_course(run: PredictRun, connections: Connections = UNCONNECTED) -> PredictCourse:
    """Build the course of a prepared run."""
    request, skill = run.request, run.skill
    decider = connections.decider or run_decider(run, connections)
    ports = ports_of(
        skill,
        decider,
        PredictPaper(),
        run.market.view,
        keep_prompts=request.prompts is not False,
        build_prompts=request.builds_prompts,
        tracer=connections.tracer,
        notes=connections.server_tools.notes,
    )
    leaps = request.is_program and not request.builds_prompts
    updates = updates_between(run.market, skill.context.underlying, int(run.tick_at[0]), request.to_at)
    return PredictCourse(
        ports=ports,
        market=run.market,
        updates=updates,
        tick_at=run.tick_at,
        to_at=request.to_at,
        cash=int(request.equity_usd * QUOTE),
        tiers=skill.context.sorted_tiers(),
        vault=int(request.vault_usd * QUOTE),
        surface=None if run.surfaces is None else Recorded(run.surfaces, updates),
        least_spend=LEAST if isinstance(decider, Rungs) else None,
        planned=leaps and isinstance(decider, (Rungs, Planned)),
        commit_records=run.commit_records * LEAP_COMMITS if leaps else run.commit_records,
        speculation=connections.speculation,
        most_errors=run.most_errors,
    )


def updates_between(market: Market, underlying: str, first_tick: int, to_at: int) -> Updates:
    """Return closes as price updates, each timestamped at the end of its bar, with the volatility realised by then."""
    bars = market.bars[underlying, BASE]
    spot = np.rint(bars.close * FLOAT).astype(np.int64)
    updates = updates_of(bars.open_at + MINUTE_MS, spot, realised_at(bars.close), first_tick, to_at)
    if not len(updates):
        raise UserError(f"no price of {underlying} is known in the range", "import more one-minute bars")
    return updates


def check_quotable(underlying: str, updates: Updates) -> None:
    """Raise `UserError` if no price lies among the strikes: every tick would be asked for nothing."""
    grid = Grid()
    lowest, highest = int(updates.spot.min()), int(updates.spot.max())
    if highest < grid.min_strike or lowest > grid.max_strike:
        prices = f"{lowest / FLOAT:,.0f} to {highest / FLOAT:,.0f}"
        strikes = f"{grid.min_strike // FLOAT:,} to {grid.max_strike // FLOAT:,}"
        raise UserError(
            f"no contract could be quoted: prices of {underlying} are {prices}, strikes are {strikes}",
            "choose another range, or another context.underlying in the skill",
        )


def _check(request: PredictRequest) -> None:
    check_range(request)
    if request.vault_usd <= 0:
        raise UserError("equity and vault must be above zero", "for example --equity 200")
    if request.blind:
        raise UserError("runs of the predict venue cannot be blind", "leave --blind out")


def _digest(bars: str, surfaces: Surfaces | None) -> str:
    """Return the SHA-256 of all data the run reads."""
    if surfaces is None:
        return bars
    total = hashlib.sha256(bars.encode())
    total.update(surfaces.at.astype("<i8").tobytes())
    total.update("\n".join(surfaces.market_id).encode())
    for column in surfaces.columns:
        total.update(column.astype("<f8").tobytes())
    return total.hexdigest()
