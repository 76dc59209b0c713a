"""Prepares a predict backtest: checks the request, loads prices and surfaces, and builds the ports once.

Surfaces come from a file if the request names one. Otherwise they are flat surfaces computed from the volatility
realised up to each instant. The kind of surface is stored with the run and shown in its report.
"""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pitboss.agent.decider import Planned
from pitboss.bootstrap.settings import Settings
from pitboss.core.asof import Market
from pitboss.core.errors import UserError
from pitboss.core.instant import MINUTE_MS
from pitboss.data.lake import Lake
from pitboss.runs.bar_run import BarRun
from pitboss.sim.connections import UNCONNECTED, Connections
from pitboss.sim.request import check_range
from pitboss.venues.predict.agent import DECIDERS, ports_of, prompts_of, read_predict_skill
from pitboss.venues.predict.blind import PredictAnonymiser
from pitboss.venues.predict.broker import PredictPaper
from pitboss.venues.predict.course import PredictCourse, Updates, updates_of
from pitboss.venues.predict.data.recorded import Surfaces, read_surfaces
from pitboss.venues.predict.ladder_policy import LEAST, LadderPolicy
from pitboss.venues.predict.recorded_surfaces import RecordedSurfaces
from pitboss.venues.predict.request import PredictRequest
from pitboss.venues.predict.skill import PredictSkill
from pitboss.venues.predict.state import QUOTE, Grid
from pitboss.venues.predict.surface import realised_at
from pitboss.venues.predict.svi import FLOAT

BASE = "1m"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PredictRun(BarRun):
    """A checked predict backtest with its data."""

    request: PredictRequest
    skill: PredictSkill
    surfaces: Surfaces | None
    anonymiser_type = PredictAnonymiser

    def course(self, connections: Connections = UNCONNECTED) -> PredictCourse:
        """Build the course with its ports."""
        return make_course(self, connections)


def prepare(request: PredictRequest, lake: Lake, settings: Settings) -> PredictRun:
    """Check a request against the available data and load that data. Raises `UserError` before any work is done."""
    skill = read_predict_skill(request.skill)
    _check(request)
    underlying = skill.context.underlying
    run = PredictRun.load(request, skill, lake, settings, (underlying,), BASE, surfaces=None)
    if request.surfaces:
        surfaces = read_surfaces(Path(request.surfaces))
        run = replace(run, surfaces=surfaces, data_digest=_digest(run.data_digest, surfaces))
    DECIDERS.of_run(run, prompts_of(skill))  # rejects an unknown policy or an invalid decisions file
    check_quotable(underlying, updates_between(run.market, underlying, int(run.tick_at[0]), request.to_at))
    return run


def make_course(run: PredictRun, connections: Connections = UNCONNECTED) -> PredictCourse:
    """Build the course of a prepared run."""
    request, skill = run.request, run.skill
    context = prompts_of(skill).blind(run.anonymiser)
    decider = connections.decider or DECIDERS.of_run(run, context, connections)
    ports = ports_of(skill, decider, PredictPaper(), run.market.view, context=context, **run.ports_fields(connections))
    leaps = request.is_program and not request.builds_prompts and isinstance(decider, (LadderPolicy, Planned))
    updates = updates_between(run.market, skill.context.underlying, int(run.tick_at[0]), request.to_at)
    return PredictCourse(
        ports=ports,
        market=run.market,
        updates=updates,
        cash=int(request.equity_usd * QUOTE),
        tiers=skill.context.sorted_tiers(),
        vault=int(request.vault_usd * QUOTE),
        surface=None if run.surfaces is None else RecordedSurfaces(run.surfaces, updates),
        least_spend=LEAST if isinstance(decider, LadderPolicy) else None,
        **run.course_fields(connections, leaps),
    )


def updates_between(market: Market, underlying: str, first_tick: int, to_at: int) -> Updates:
    """Return closes as price updates, each timestamped at the end of its bar, with the volatility realised by then."""
    bars = market.bars[underlying, BASE]
    spot = np.rint(bars.close * FLOAT).astype(np.int64)
    updates = updates_of(bars.open_at + MINUTE_MS, spot, realised_at(bars.close), first_tick, to_at)
    if not len(updates) or updates.at[-1] < first_tick:
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
        raise UserError("the vault must be above zero", "for example --vault 1000000")


def _digest(bars: str, surfaces: Surfaces) -> str:
    """Return the SHA-256 of all data the run reads."""
    total = hashlib.sha256(bars.encode())
    total.update(surfaces.at.astype("<i8").tobytes())
    total.update("\n".join(surfaces.market_id).encode())
    for column in surfaces.columns:
        total.update(column.astype("<f8").tobytes())
    return total.hexdigest()
