"""The explained difference between a span of a deployment and the same decisions on paper, and its document. No venue, no store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pitboss.core.instant import Instant, iso
from pitboss.core.money import ZERO, exact
from pitboss.store.deployments import Deployment

PARTS = ("latency_usd", "slippage_usd", "fees_usd", "funding_usd", "missed_usd", "rest_usd")
"""The parts of a difference. Each is what it added to the result of the deployment."""


@dataclass(frozen=True, slots=True)
class SpanResult:
    """What an account did in a span."""

    start_usd: Decimal
    end_usd: Decimal
    trades: int
    fees_usd: Decimal
    funding_usd: Decimal

    @property
    def result_usd(self) -> Decimal:
        """The change of its equity."""
        return self.end_usd - self.start_usd


@dataclass(frozen=True, slots=True)
class AttributedTrade:
    """One trade of the deployment, of the replay, or of both; `parts` add up to the difference of the two results."""

    symbol: str
    side: str
    opened_at: Instant
    closed_at: Instant | None
    live_size: Decimal
    paper_size: Decimal
    live_usd: Decimal
    paper_usd: Decimal
    parts: Mapping[str, Decimal]


@dataclass(frozen=True, slots=True)
class Attribution:
    """The explained difference of a span.

    Both accounts begin alike. `outside_usd` is the difference that belongs to no trade: deposits and withdrawals, and what an
    exchange rounds.
    """

    started_at: Instant
    ended_at: Instant
    data_venue: str
    interval: str
    live: SpanResult
    paper: SpanResult
    trades: Sequence[AttributedTrade]
    notes: tuple[str, ...] = ()

    @property
    def difference_usd(self) -> Decimal:
        """The equity of the deployment minus that on paper."""
        return self.live.end_usd - self.paper.end_usd

    @property
    def outside_usd(self) -> Decimal:
        """The difference that belongs to no trade."""
        return self.difference_usd - sum((trade.live_usd - trade.paper_usd for trade in self.trades), ZERO)

    @exact
    def parts(self) -> dict[str, Decimal]:
        """Return the parts of the whole difference; they add up to it exactly."""
        sums = {name: sum((trade.parts[name] for trade in self.trades), ZERO) for name in PARTS}
        return {**sums, "rest_usd": sums["rest_usd"] + self.outside_usd}


def document_of(deployment: Deployment, from_at: Instant, to_at: Instant, attribution: Attribution) -> dict[str, Any]:
    """Write an attribution as a document: amounts are JSON numbers, instants ISO text."""
    return {
        "deployment_id": deployment.id,
        "run_id": deployment.run_id,
        "from": iso(max(from_at, attribution.started_at)),
        "to": iso(to_at),
        "compared_until": iso(attribution.ended_at),
        "mode": deployment.mode,
        "data_venue": attribution.data_venue,
        "interval": attribution.interval,
        "live": _account(attribution.live),
        "paper": _account(attribution.paper),
        "difference_usd": float(attribution.difference_usd),
        "parts": {name: float(usd) for name, usd in attribution.parts().items()},
        "outside_trades_usd": float(attribution.outside_usd),
        "trades": [_trade(trade) for trade in attribution.trades],
        "notes": list(attribution.notes),
    }


def _account(result: SpanResult) -> dict[str, Any]:
    return {
        "start_usd": float(result.start_usd),
        "end_usd": float(result.end_usd),
        "result_usd": float(result.result_usd),
        "trades": result.trades,
        "fees_usd": float(result.fees_usd),
        "funding_usd": float(result.funding_usd),
    }


def _trade(trade: AttributedTrade) -> dict[str, Any]:
    return {
        "symbol": trade.symbol,
        "side": trade.side,
        "opened_at": iso(trade.opened_at),
        "closed_at": None if trade.closed_at is None else iso(trade.closed_at),
        "live_size": float(trade.live_size),
        "paper_size": float(trade.paper_size),
        "live_usd": float(trade.live_usd),
        "paper_usd": float(trade.paper_usd),
        "difference_usd": float(trade.live_usd - trade.paper_usd),
        **{name: float(usd) for name, usd in trade.parts.items()},
    }
