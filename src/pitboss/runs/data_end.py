"""Where the data of a skill ends: what times such as `-30d` are counted back from, and where a range ends by default."""

from collections.abc import Mapping
from typing import Any

from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import UserError
from pitboss.core.instant import INTERVALS, Instant
from pitboss.data.feed import choose_venue
from pitboss.data.lake import Lake
from pitboss.runs.preview import newest_tick
from pitboss.runs.venues import venue_of
from pitboss.skill.load import read_skill


def end_of_data(plain: Mapping[str, Any], lake: Lake, settings: Settings, requested_venue: str = "") -> Instant:
    """The newest tick of a skill at which the last bar of each of its symbols has closed."""
    venue = venue_of(plain)
    if not venue.uses_bars:
        raise UserError(
            f"the {venue.name} venue has no market data, so its end is not known",
            "write both ends of the range as dates, such as 2025-06-01",
        )
    skill = read_skill(plain, venue.skill_type())
    charts = venue.charts(skill)
    data_venue = choose_venue(requested_venue or settings.data_venue, lake, charts.symbols)
    symbols = charts.symbols or tuple(lake.symbols(data_venue)[:1])
    shown = charts.tables[0][0]
    interval = shown if INTERVALS[shown] < skill.every_ms else ""
    return newest_tick(lake, data_venue, symbols, skill.every_ms, interval)
