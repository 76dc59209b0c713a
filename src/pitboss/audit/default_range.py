"""The range of a memorisation report where none is given: the newest month that the data has. Reads extents only."""

from dataclasses import replace

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import DAY_MS, INTERVALS, Instant, interval_ms
from pitboss.venues.perp.assembly import PerpRequest, choose_venue, read_skill
from pitboss.venues.perp.preview import newest_tick

DAYS = 30
"""Enough for intervals over days, and no more than has to be paid for."""


def spanned(workspace: Workspace, request: PerpRequest, from_at: Instant | None, to_at: Instant | None) -> PerpRequest:
    """The request with both ends of its range."""
    skill, lake = read_skill(request.skill), workspace.lake
    symbols, period = skill.context.sorted_symbols, interval_ms(skill.schedule.every)
    asked = request.data_venue or workspace.settings.data_venue
    if to_at is None:
        to_at = newest_tick(lake, asked, symbols, period)
    if from_at is None:
        venue = choose_venue(asked, lake, symbols)
        first = [
            extent[0]
            for symbol in symbols
            for interval in lake.intervals(venue, symbol)
            if period % INTERVALS[interval] == 0 and (extent := lake.extent(venue, symbol, interval))
        ]
        from_at = max(to_at - DAYS * DAY_MS, min(first, default=0))
    return replace(request, from_at=from_at, to_at=to_at)
