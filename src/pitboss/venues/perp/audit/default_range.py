"""The default range of a memorisation report: the newest month of the data. Reads the extents of the data only."""

from dataclasses import replace

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import DAY_MS, INTERVALS, Instant, interval_ms
from pitboss.data.feed import choose_venue
from pitboss.runs.preview import newest_tick
from pitboss.venues.perp.assembly import read_skill
from pitboss.venues.perp.request import PerpRequest

DAYS = 30
"""Enough days for intervals, at a limited cost of model calls."""


def with_range(
    workspace: Workspace, request: PerpRequest, from_at: Instant | None, to_at: Instant | None
) -> PerpRequest:
    """The request with missing ends of its range filled in."""
    skill, lake = read_skill(request.skill), workspace.lake
    symbols, period = skill.context.sorted_symbols, interval_ms(skill.schedule.every)
    data_venue = request.data_venue or workspace.settings.data_venue
    if to_at is None:
        to_at = newest_tick(lake, data_venue, symbols, period)
    if from_at is None:
        venue = choose_venue(data_venue, lake, symbols)
        first = [
            extent[0]
            for symbol in symbols
            for interval in lake.intervals(venue, symbol)
            if period % INTERVALS[interval] == 0 and (extent := lake.extent(venue, symbol, interval))
        ]
        from_at = max(to_at - DAYS * DAY_MS, min(first, default=0))
    return replace(request, from_at=from_at, to_at=to_at)
