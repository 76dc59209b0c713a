"""Builds the request that a model would get at the first tick of a perp run: `skill preview`.

It uses the same preparation, observation and prompts as a backtest, so the text is the same byte for byte. It neither
needs nor calls a model.
"""

from dataclasses import replace

import numpy as np

from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, interval_ms
from pitboss.core.ports import ToolSpec
from pitboss.data.feed import check_symbols, choose_venue
from pitboss.data.lake import Lake
from pitboss.data.listings import run_listings
from pitboss.runs.preview import Preview, check_tick, offered
from pitboss.sim.connections import UNCONNECTED, Connections, ServerTools
from pitboss.tools.registry import permit
from pitboss.venues.perp.assembly import PerpRun, prepare, read_skill, tools
from pitboss.venues.perp.course import PerpCourse, first_state
from pitboss.venues.perp.intents import DECISION
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.skill import PerpSkill

ANY_GAP = 10**9


def preview(
    request: PerpRequest,
    lake: Lake,
    settings: Settings,
    at: Instant | None = None,
    server_tools: ServerTools | None = None,
) -> Preview:
    """Build the preview at tick `at`, by default the newest tick that has data; the request's own range is ignored."""
    connections = UNCONNECTED if server_tools is None else Connections(server_tools=server_tools)
    skill, at, course = course_at(request, lake, settings, at, connections)
    prompt = course.ports.context.prompt(course.ports.observe(first_state(course), at))
    specs: list[ToolSpec] = []
    if skill.max_steps > 1:  # with a single step only the decision is offered
        listed = permit(tools(), skill.tool_names, "write")
        specs = [ToolSpec(tool.name, tool.description, tool.schema) for tool in listed]
        specs += connections.server_tools.specs
    return Preview(at, prompt.system, prompt.user, offered([*specs, DECISION.spec]))


def course_at(
    request: PerpRequest,
    lake: Lake,
    settings: Settings,
    at: Instant | None = None,
    connections: Connections = UNCONNECTED,
) -> tuple[PerpSkill, Instant, PerpCourse]:
    """Build the course of a single tick of a skill, with a flat account and no model.

    `at` defaults to the newest tick that has data.
    """
    skill = read_skill(request.skill)
    period = skill.every_ms
    if at is None:
        at = newest_tick(lake, request.data_venue or settings.data_venue, skill.context.sorted_symbols, period)
    else:
        check_tick(at, period, skill.schedule.every)
    # A policy replaces the model, so that an unreachable model does not make the preview fail.
    quiet = replace(request, model="policy/hold", decisions=None, prompts=True, max_gap=ANY_GAP)
    run = _prepare(quiet, lake, settings, at, period)
    # Any gap is accepted here; the request's own limit still decides when a symbol counts as delisted.
    bars = {symbol: run.market.bars[symbol, run.base_interval] for symbol in skill.context.sorted_symbols}
    listings = run_listings(lake.listings(run.data_venue), bars, at, at + period, request.max_gap)
    market = replace(run.market, listings=listings)
    course = run.course(connections)
    ports = replace(course.ports, started_at=at, wakes=False, view=market.view)
    return skill, at, replace(course, market=market, tick_at=np.array([at], dtype=np.int64), ports=ports)


def _prepare(request: PerpRequest, lake: Lake, settings: Settings, at: Instant, period: int) -> PerpRun:
    try:
        return prepare(replace(request, from_at=at, to_at=at + period), lake, settings)
    except UserError as error:
        # At the end of the data there is no bar after the tick; the model sees only what is before it.
        try:
            return prepare(replace(request, from_at=at - period, to_at=at), lake, settings)
        except UserError:
            raise error from None


def newest_tick(lake: Lake, venue_name: str, symbols: tuple[str, ...], period: int) -> Instant:
    """Return the newest tick at which the last bar of every symbol has closed."""
    venue = choose_venue(venue_name, lake, symbols)
    check_symbols(lake, venue, symbols)
    ends: list[Instant] = []
    for symbol in symbols:
        closes = [
            extent[1] + interval_ms(interval)
            for interval in lake.intervals(venue, symbol)
            if period % interval_ms(interval) == 0 and (extent := lake.extent(venue, symbol, interval))
        ]
        if not closes:
            raise UserError(f"no bars of {symbol} fit the schedule", "see `pitboss data list`")
        ends.append(max(closes))
    return min(ends) // period * period
