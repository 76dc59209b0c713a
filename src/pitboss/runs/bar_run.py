"""`BarRun`: a prepared run whose market is the bars of some symbols, all of one interval."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pitboss.agent.blind.anonymiser import Anonymiser
from pitboss.bootstrap.settings import Settings
from pitboss.core.asof import Market
from pitboss.core.market import Bars
from pitboss.data.feed import check_gaps, choose_venue, data_digest, load_market
from pitboss.data.lake import Lake
from pitboss.sim.course import ticks_of
from pitboss.sim.prepared_run import PreparedRun
from pitboss.sim.request import BacktestRequest, check_range
from pitboss.skill.schema import SkillDocument


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BarRun(PreparedRun):
    """A checked request with its bars. A venue derives its own class, which builds the course."""

    market: Market
    anonymiser_type: ClassVar[type[Anonymiser]] = Anonymiser
    """What anonymises its blind runs; a venue with prices among its values derives its own."""

    @classmethod
    def load(
        cls,
        request: BacktestRequest,
        skill: SkillDocument,
        lake: Lake,
        settings: Settings,
        symbols: tuple[str, ...],
        interval: str,
        **more: Any,
    ) -> Self:
        """Check a request against the data and load it. `more` are the fields that a derived class adds."""
        check_range(request)
        data_venue = choose_venue(request.data_venue or settings.data_venue, lake, symbols)
        ticks = ticks_of(request, skill.every_ms)
        market = load_market(lake, data_venue, symbols, [interval], request.to_at, 0, request.from_at, with_news=False)
        for symbol in symbols:
            check_gaps(market.bars[symbol, interval], request.from_at, request.to_at, request.max_gap)
        return cls(
            request=request,
            skill=skill,
            data_venue=data_venue,
            data_digest=data_digest(market, symbols, [interval], news=False, events=False),
            synthetic=lake.is_synthetic(data_venue),
            tick_at=ticks,
            market=market,
            commit_records=settings.commit_records,
            most_errors=settings.model_errors,
            anonymiser=cls.anonymiser_type.of_request(request, symbols),
            **more,
        )

    def bars_inside(self, symbol: str, interval: str) -> Bars:
        """The bars that open at or after the first tick and close by the end of the range."""
        bars = self.market.bars[symbol, interval]
        first, last = bars.open_at.searchsorted((int(self.tick_at[0]), self.request.to_at - bars.interval_ms + 1))
        return bars.slice(int(first), int(last))
