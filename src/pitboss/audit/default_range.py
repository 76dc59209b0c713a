"""The default range of an audit: the newest month of the data, for a skill of any venue; without data a fixed range."""

from dataclasses import replace
from functools import cache
from typing import TypeVar

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import DAY_MS, INTERVALS, BeforeEnd, Instant, resolved
from pitboss.data.feed import choose_venue
from pitboss.data.lake import Lake
from pitboss.runs.venues import venue_of
from pitboss.sim.request import BacktestRequest
from pitboss.skill.load import read_skill

DAYS = 30

R = TypeVar("R", bound=BacktestRequest)


def with_range(
    workspace: Workspace,
    request: R,
    from_: Instant | BeforeEnd | None,
    to: Instant | BeforeEnd | None,
    most_ticks: int | None = None,
) -> R:
    """The request with missing ends of its range filled in, at most so many ticks before its end."""
    venue = venue_of(request.skill)

    @cache
    def end() -> Instant:
        return venue.preview(replace(request, from_at=0, to_at=1), workspace.lake, workspace.settings).at

    to_at = end() if to is None else resolved(to, end)
    if from_ is not None:
        from_at = resolved(from_, end)
    else:
        skill = read_skill(request.skill, venue.skill_type())
        length = DAYS * DAY_MS
        from_at = to_at - (length if most_ticks is None else min(length, most_ticks * skill.every_ms))
        if venue.uses_bars:
            symbols = venue.charts(skill).symbols
            data_venue = choose_venue(request.data_venue or workspace.settings.data_venue, workspace.lake, symbols)
            from_at = max(from_at, _first_bar_at(workspace.lake, data_venue, symbols, skill.every_ms))
    return replace(request, from_at=from_at, to_at=to_at)


def _first_bar_at(lake: Lake, data_venue: str, symbols: tuple[str, ...], period: int) -> Instant:
    """The first instant from which every symbol has bars that fit the schedule."""
    firsts = [
        min(
            (
                extent[0]
                for interval in lake.intervals(data_venue, symbol)
                if period % INTERVALS[interval] == 0 and (extent := lake.extent(data_venue, symbol, interval))
            ),
            default=0,
        )
        for symbol in symbols
    ]
    return max(firsts, default=0)
