"""The command line options that only perp backtests have."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

from cyclopts import Parameter

from pitboss.core.errors import UserError
from pitboss.core.suggestion import suggestion
from pitboss.terminal.options import Amount, Duration, Lateness, option
from pitboss.terminal.workspace_options import WorkspaceOptions


@Parameter(name="*", group="Only on the perp venue")
@dataclass(frozen=True, slots=True, kw_only=True)
class PerpOptions:
    """Options for fills and news latency."""

    fees_taker_bps: Annotated[Amount, option("--fees-taker-bps", "Fee for taking, in basis points.")] = Decimal("4.5")
    fees_maker_bps: Annotated[Amount, option("--fees-maker-bps", "Fee for making, in basis points.")] = Decimal("1.5")
    slippage_bps_per_million: Annotated[
        Amount, option("--slippage-bps-per-million", "Slippage in basis points for each million USD of an order.")
    ] = Decimal(10)
    news_latency: Annotated[
        Lateness,
        option(
            "--news-latency",
            "How long after its publication news is known, as 5m, 30s..5m or 1m,coindesk=30s..5m. Default: 0s.",
        ),
    ] = (0, "")
    extracted_events: Annotated[
        bool, option("--extracted-events", "Show events that were only read out of headlines too, as unconfirmed.")
    ] = False
    decision_latency: Annotated[
        Duration,
        option("--decision-latency", "How long an order takes to reach the market, as 30s or 5m. Default: 0s."),
    ] = 0
    slippage: Annotated[
        str,
        option("--slippage", "What a taker pays: linear, or book to walk imported order books where there are any."),
    ] = "linear"
    book_max_age: Annotated[
        Duration, option("--book-max-age", "How old an order book may be that prices a fill. Default: 5m.")
    ] = 300_000
    max_volume_pct: Annotated[
        Amount | None,
        option("--max-volume-pct", "Most of a bar's volume that fills may take, in %, such as 10. Default: any size."),
    ] = None
    close_at_end: Annotated[bool, option("--close-at-end", "Close what is open at the end instead of valuing it.")] = (
        False
    )
    base_interval: Annotated[
        str,
        option(
            "--base-interval",
            "Bars in which the market moves, such as 1h. Default: the finest that fit the schedule and have no long gap.",
        ),
    ] = ""

    def fields(self, place: WorkspaceOptions, skill: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a `PerpRequest` that these options set."""
        del place, skill
        if self.slippage not in ("linear", "book"):
            raise UserError(
                f"--slippage: {self.slippage!r} is neither linear nor book",
                suggestion(self.slippage, ("linear", "book")),
            )
        if self.max_volume_pct is not None and not 0 < self.max_volume_pct <= 100:
            raise UserError("--max-volume-pct must be above 0 and at most 100", "for example --max-volume-pct 10")
        return {
            "requested_base": self.base_interval,
            "taker_bps": self.fees_taker_bps,
            "maker_bps": self.fees_maker_bps,
            "slippage_bps_per_million": self.slippage_bps_per_million,
            "news_latency_ms": self.news_latency[0],
            "news_latency": self.news_latency[1],
            "extracted_events": self.extracted_events,
            "decision_latency_ms": self.decision_latency,
            "slippage": self.slippage,
            "book_max_age_ms": self.book_max_age,
            "max_volume_pct": self.max_volume_pct,
            "close_at_end": self.close_at_end,
        }
