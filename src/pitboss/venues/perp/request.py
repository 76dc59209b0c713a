"""What a backtest of the perp venue is asked for, with nothing of what carries it out: a list of runs loads no market."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pitboss.core import codec
from pitboss.core.order_book import MAX_AGE_MS
from pitboss.sim.request import BacktestRequest


@dataclass(frozen=True, slots=True)
class PerpRequest(BacktestRequest):
    """What was asked for on the perp venue."""

    taker_bps: Decimal = Decimal("4.5")
    maker_bps: Decimal = Decimal("1.5")
    slippage_bps_per_million: Decimal = Decimal(10)
    penalty_bps: Decimal = Decimal(50)
    news_latency_ms: int = 0
    news_latency: str = ""
    """Where news is not all equally late: what `data.arrival` reads. It stands instead of the milliseconds."""
    extracted_events: bool = False
    """Whether events that were only read out of headlines are shown, marked as unconfirmed."""
    decision_latency_ms: int = 0
    slippage: str = "linear"
    """What prices a taker's fill: `linear`, or `book` where an imported order book is at hand."""
    book_max_age_ms: int = MAX_AGE_MS
    max_volume_pct: Decimal | None = None
    """The share of a bar's volume that fills may take; None = any size fills."""
    close_at_end: bool = False
    disguise: Mapping[str, Any] | None = None
    """The disguise of a blind run as it is kept with it; None before it begins."""


def request_of(params: Mapping[str, Any]) -> PerpRequest:
    """The request a run was started with."""
    return codec.parse(PerpRequest, params)
