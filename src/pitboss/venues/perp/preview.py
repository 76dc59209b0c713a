"""Builds the course of the first tick of a perp run, for `skill preview` and tool calls.

It uses the same preparation, observation and prompts as a backtest, so the text is the same byte for byte. It neither
needs nor calls a model.
"""

from dataclasses import replace

import numpy as np

from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.core.state import State
from pitboss.data.lake import Lake
from pitboss.data.listings import run_listings
from pitboss.runs.preview import ANY_GAP, check_tick, newest_tick
from pitboss.sim.connections import UNCONNECTED, Connections
from pitboss.venues.perp.assembly import PerpRun, prepare, read_skill
from pitboss.venues.perp.course import PerpCourse, first_state
from pitboss.venues.perp.request import PerpRequest


def course_at(
    request: PerpRequest,
    lake: Lake,
    settings: Settings,
    at: Instant | None = None,
    connections: Connections | None = None,
) -> tuple[PerpCourse, State, Instant]:
    """Build the course of a single tick of a skill, with a flat account and no model.

    `at` defaults to the newest tick that has data; the request's own range is ignored.
    """
    skill = read_skill(request.skill)
    period = skill.every_ms
    if at is None:
        at = newest_tick(lake, request.data_venue or settings.data_venue, skill.context.sorted_symbols, period)
    else:
        check_tick(at, period)
    # A policy replaces the model, so that an unreachable model does not make the preview fail.
    quiet = replace(request, model="policy/hold", decisions=None, prompts=True, max_gap=ANY_GAP)
    run = _prepare(quiet, lake, settings, at, period)
    # Any gap is accepted here; the request's own limit still decides when a symbol counts as delisted.
    bars = {symbol: run.market.bars[symbol, run.base_interval] for symbol in skill.context.sorted_symbols}
    listings = run_listings(lake.listings(run.data_venue), bars, at, at + period, request.max_gap)
    market = replace(run.market, listings=listings)
    course = run.course(connections or UNCONNECTED)
    ports = replace(course.ports, started_at=at, wakes=False, view=market.view)
    course = replace(course, market=market, tick_at=np.array([at], dtype=np.int64), ports=ports)
    return course, first_state(course), at


def _prepare(request: PerpRequest, lake: Lake, settings: Settings, at: Instant, period: int) -> PerpRun:
    try:
        return prepare(replace(request, from_at=at, to_at=at + period), lake, settings)
    except UserError as error:
        # At the end of the data there is no bar after the tick; the model sees only what is before it.
        try:
            return prepare(replace(request, from_at=at - period, to_at=at), lake, settings)
        except UserError:
            raise error from None
