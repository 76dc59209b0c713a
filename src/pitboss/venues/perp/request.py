"""The request for a backtest on the perp venue; it imports no market code, so listing runs stays cheap."""

from dataclasses import dataclass
from decimal import Decimal

from pitboss.core.order_book import MAX_AGE_MS
from pitboss.sim.request import BacktestRequest


@dataclass(frozen=True, slots=True)
class PerpRequest(BacktestRequest):
    """A request for a backtest on the perp venue."""

    taker_bps: Decimal = Decimal("4.5")
    maker_bps: Decimal = Decimal("1.5")
    slippage_bps_per_million: Decimal = Decimal(10)
    penalty_bps: Decimal = Decimal(50)
    news_latency_ms: int = 0
    news_latency: str = ""
    """News latency that differs by source or item, as `data.news_latency` parses it; replaces `news_latency_ms`."""
    extracted_events: bool = False
    """Whether events extracted from headlines are shown, marked as unconfirmed."""
    decision_latency_ms: int = 0
    slippage: str = "linear"
    """The price model of a taker's fill: `linear`, or `book` where an imported order book is available."""
    book_max_age_ms: int = MAX_AGE_MS
    max_volume_pct: Decimal | None = None
    """The share of a bar's volume that fills may take; None = any size fills."""
    close_at_end: bool = False
    requested_base: str = ""
    """Length of the bars in which the market moves; empty: the finest that have no long gap."""
