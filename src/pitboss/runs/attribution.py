"""Simulation against live: the difference between a deployment and the paper world with the same decisions, explained by trade.

A venue replays the decisions of a span and matches the trades (`Venue.attribution`); this module finds the deployment, checks the
span, and writes the document for commands, pages and reports. Nothing is stored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, iso
from pitboss.core.money import ZERO, exact
from pitboss.runs.venues import venue_named
from pitboss.store.deployments import Deployment
from pitboss.store.recent_records import newest_records

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


def attribute(
    workspace: Workspace, deployment: Deployment, from_at: Instant, to_at: Instant, data_venue: str = ""
) -> Attribution:
    """Replay the decisions of `[from_at, to_at)` on paper and explain the difference."""
    if to_at <= from_at:
        raise UserError("the span is empty: --to is not after --from", "swap them, or choose a later --to")
    run = workspace.runs.get(deployment.run_id)
    return venue_named(deployment.venue).attribution(workspace, deployment, run, from_at, to_at, data_venue)


def attribution_document(
    workspace: Workspace,
    deployment: str | Deployment,
    from_at: Instant | None = None,
    to_at: Instant | None = None,
    data_venue: str = "",
) -> dict[str, Any]:
    """Return the difference of a span as a plain document; without limits, that of everything recorded."""
    stored = workspace.deployments.get(deployment) if isinstance(deployment, str) else deployment
    first, end = whole_span(workspace, stored)
    begins, ends = first if from_at is None else from_at, end if to_at is None else to_at
    return document_of(stored, begins, ends, attribute(workspace, stored, begins, ends, data_venue))


def whole_span(workspace: Workspace, deployment: Deployment) -> tuple[Instant, Instant]:
    """Return the span that contains all records of a deployment."""
    newest = newest_records(workspace.database, deployment.run_id, -1, 1)
    if not newest:
        raise UserError(f"deployment {deployment.id} has no records yet", "wait for its first tick")
    return 0, max(record.tick_at for record in newest) + 1


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
