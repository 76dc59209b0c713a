"""The prices that a backtest of a skill may run over, for choosing a range on a chart."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, INTERVALS, Instant
from pitboss.core.market import Bars
from pitboss.data.feed import choose_venue
from pitboss.data.lake import Lake
from pitboss.runs.venues import venue_of
from pitboss.skill.load import read_skill

USUAL_MS = 21 * DAY_MS
"""The range that is suggested: the newest three weeks."""


@dataclass(frozen=True, slots=True)
class PriceRange:
    """The bars of one symbol of a skill, and which part of them a backtest may cover."""

    data_venue: str
    bars: Bars
    first_at: Instant
    end_at: Instant
    synthetic: bool

    @property
    def suggested(self) -> tuple[Instant, Instant]:
        """The newest weeks, at whole days if the data is long enough."""
        end = self.end_at // DAY_MS * DAY_MS if self.end_at - self.first_at > 2 * DAY_MS else self.end_at
        return max(
            -(-self.first_at // DAY_MS) * DAY_MS if end - self.first_at > 2 * DAY_MS else self.first_at, end - USUAL_MS
        ), end


def price_range(
    plain: Mapping[str, Any], lake: Lake, settings: Settings, requested_venue: str = ""
) -> PriceRange | None:
    """The prices of the first symbol of a skill; None if it needs none. Raises `UserError` if there are none."""
    venue = venue_of(plain)
    if not venue.uses_bars:
        return None
    charts = venue.charts(read_skill(plain, venue.skill_type()))
    data_venue = choose_venue(requested_venue or settings.data_venue, lake, charts.symbols)
    symbols = charts.symbols or tuple(lake.symbols(data_venue))
    length = INTERVALS[charts.tables[0][0]] if charts.tables else DAY_MS
    for symbol in symbols:
        # Any interval from which the skill's bars can be built will do; the one with the longest extent is drawn.
        names = [name for name in lake.intervals(data_venue, symbol) if length % INTERVALS[name] == 0]
        extents = [(extent[1] - extent[0], name) for name in names if (extent := lake.extent(data_venue, symbol, name))]
        bars = lake.bars(data_venue, symbol, max(extents)[1]) if extents else None
        if bars is not None and len(bars):
            first, end = int(bars.open_at[0]), int(bars.open_at[-1]) + bars.interval_ms
            return PriceRange(data_venue, bars, first, end, lake.is_synthetic(data_venue))
    wanted = ", ".join(symbols) or "any symbol"
    raise UserError(
        f"there are no bars of {wanted} on {data_venue}", "choose other data, or import some on the page Data"
    )
