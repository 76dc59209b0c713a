"""Putting a predict backtest together: a request, one-minute prices from the lake, surfaces, the ports it ticks with.

Surfaces are those of a file where one is given, and flat ones from the volatility realised by then elsewhere; which of
them a run had is stored with it, and its report says so.
"""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from pitboss.agent.decider import Decider, Planned
from pitboss.agent.loop import ToolLoop
from pitboss.agent.terminal import DecisionFormat
from pitboss.bootstrap.settings import Settings
from pitboss.core.asof import Market
from pitboss.core.errors import UserError
from pitboss.core.instant import MINUTE_MS
from pitboss.core.market import Ints
from pitboss.data.feed import check_gaps, data_digest, load_market
from pitboss.data.lake import Lake
from pitboss.models.decisions import DecisionFile
from pitboss.sim.course import ticks_between
from pitboss.sim.request import PreparedRun
from pitboss.venues.perp.assembly import LEAP_COMMITS, choose_venue
from pitboss.venues.predict.agent import decider_of, ports_of, read_predict_skill
from pitboss.venues.predict.broker import PredictPaper
from pitboss.venues.predict.course import PredictCourse, Updates, updates_of
from pitboss.venues.predict.data.recorded import Surfaces, read_surfaces
from pitboss.venues.predict.form import PredictRequest
from pitboss.venues.predict.intents import ALIASES, KEYS, read
from pitboss.venues.predict.ladder_policy import LEAST, Rungs
from pitboss.venues.predict.recorded_surfaces import Recorded
from pitboss.venues.predict.skill import PredictSkill
from pitboss.venues.predict.state import QUOTE
from pitboss.venues.predict.surface import realised_at
from pitboss.venues.predict.svi import FLOAT

BASE = "1m"


@dataclass(frozen=True, slots=True, eq=False)
class PredictAssembly(PreparedRun):
    """A predict backtest ready to run."""

    request: PredictRequest
    skill: PredictSkill
    script: PredictCourse


def assemble(request: PredictRequest, lake: Lake, settings: Settings) -> PredictAssembly:
    """Check the request against the data and build everything the replay needs. Raises `UserError` before any work."""
    skill = read_predict_skill(request.skill)
    _check(request)
    underlying = skill.context.underlying
    venue = choose_venue(request.data_venue or settings.data_venue, lake, (underlying,))
    ticks = ticks_between(request.from_at, request.to_at, skill.schedule.every_ms)
    if not len(ticks):
        raise UserError(f"no {skill.schedule.every} tick falls into the range", "choose a longer range")
    market = load_market(lake, venue, [underlying], [BASE], request.to_at, 0, request.from_at, with_news=False)
    check_gaps(market.bars[underlying, BASE], request.from_at, request.to_at, request.max_gap)
    surfaces = read_surfaces(Path(request.surfaces)) if request.surfaces else None
    script = make_script(request, skill, market, ticks, settings.commit_records, surfaces)
    digest = _digest(data_digest(market, [underlying], [BASE], news=False, events=False), surfaces)
    script = replace(script, most_errors=settings.model_errors)
    return PredictAssembly(request, skill, script, venue, digest, lake.is_synthetic(venue))


def make_script(
    request: PredictRequest,
    skill: PredictSkill,
    market: Market,
    ticks: Ints,
    commit_records: int,
    surfaces: Surfaces | None = None,
    decider: Decider | None = None,
) -> PredictCourse:
    """The replay of a request over a market that has been loaded; with `decider`, somebody else decides."""
    decider = decider or make_decider(request, skill, ticks)
    is_program = not isinstance(decider, ToolLoop)
    prompts = bool(request.prompts) if is_program else True
    ports = ports_of(
        skill, decider, PredictPaper(), market.view, keep_prompts=request.prompts is not False, build_prompts=prompts
    )
    leaps = is_program and not prompts
    updates = updates_between(market, skill.context.underlying, int(ticks[0]), request.to_at)
    return PredictCourse(
        ports=ports,
        market=market,
        updates=updates,
        tick_at=ticks,
        to_at=request.to_at,
        cash=int(request.equity_usd * QUOTE),
        tiers=skill.context.sorted_tiers(),
        vault=int(request.vault_usd * QUOTE),
        surface=None if surfaces is None else Recorded(surfaces, updates),
        least_spend=LEAST if isinstance(decider, Rungs) else None,
        planned=leaps and isinstance(decider, (Rungs, Planned)),
        commit_records=commit_records * LEAP_COMMITS if leaps else commit_records,
    )


def updates_between(market: Market, underlying: str, first_tick: int, to_at: int) -> Updates:
    """Closes as prices, each known since its bar is over, with the volatility realised by then."""
    bars = market.bars[underlying, BASE]
    spot = np.rint(bars.close * FLOAT).astype(np.int64)
    found = updates_of(bars.open_at + MINUTE_MS, spot, realised_at(bars.close), first_tick, to_at)
    if not len(found):
        raise UserError(f"no price of {underlying} is known in the range", "import more one-minute bars")
    return found


def make_decider(request: PredictRequest, skill: PredictSkill, ticks: Ints) -> Decider:
    """Who decides: a file, a heuristic, or a model that is connected later."""
    if request.decisions is None:
        return decider_of(skill, request.source)
    keys = (*KEYS, *ALIASES)
    return DecisionFile.read(
        request.decisions.encode(), "decisions", set(ticks.tolist()), DecisionFormat(read, "hold"), keys
    )


def _check(request: PredictRequest) -> None:
    if request.to_at <= request.from_at:
        raise UserError("the range is empty: --to is not after --from", "swap them, or choose a later --to")
    if request.equity_usd <= 0 or request.vault_usd <= 0:
        raise UserError("equity and vault must be above zero", "for example --equity 200")
    if request.blind:
        raise UserError("runs of the predict venue cannot be blind", "leave --blind out")


def _digest(bars: str, surfaces: Surfaces | None) -> str:
    """SHA-256 of everything the run reads."""
    if surfaces is None:
        return bars
    total = hashlib.sha256(bars.encode())
    total.update(surfaces.at.astype("<i8").tobytes())
    total.update("\n".join(surfaces.market_id).encode())
    for column in surfaces.columns:
        total.update(column.astype("<f8").tobytes())
    return total.hexdigest()
