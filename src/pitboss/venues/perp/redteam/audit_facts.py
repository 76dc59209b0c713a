"""The inputs of the audit: the caps of the skill document, the assets, the closes, and the account at the start.

They are read from the document and the market independently of the engine: an engine that misread its caps would
otherwise be audited against the same mistake.
"""

from bisect import bisect_right
from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any

from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.instant import Instant, interval_ms
from pitboss.core.noun import noun

MINIMUM_USD = Decimal(10)
"""The venue's minimum order."""


@noun
class AuditCaps:
    """The caps of a skill document."""

    symbols: frozenset[str]
    position_pct: Decimal
    exposure_pct: Decimal
    leverage: Decimal
    least_usd: Decimal
    most_usd: Decimal | None
    opens_an_hour: int
    daily_loss_pct: Decimal
    drawdown_pct: Decimal
    band_pct: Decimal
    oldest_ms: int


@noun
class AuditAsset:
    """Lot size and maximum leverage of one symbol."""

    lot: Decimal
    leverage: int


@noun
class CloseSeries:
    """Closes of one symbol with the instants from which they are known."""

    at: tuple[Instant, ...]
    close: tuple[Decimal, ...]

    def newest(self, at: Instant) -> tuple[Decimal, Instant] | None:
        """The newest close by an instant, and when it became known."""
        count = bisect_right(self.at, at)
        return None if not count else (self.close[count - 1], self.at[count - 1])


@noun
class AuditFacts:
    """All inputs of the audit except the records."""

    limits: AuditCaps
    assets: Mapping[str, AuditAsset]
    closes: Mapping[str, CloseSeries]
    tools: frozenset[str]
    terminal: str
    taker: Decimal
    maker: Decimal
    cash: Decimal
    positions: Mapping[str, tuple[Decimal, Decimal]]
    """Size and cost of the initial positions."""
    started_at: Instant
    system: str = ""
    """The system prompt of the skill; not checked if empty."""


def limits_of(document: Mapping[str, Any]) -> AuditCaps:
    """The caps of a complete skill document, with all defaults present."""
    risk, context = document["risk"], document["context"]
    allowed = frozenset(risk["allowed_symbols"])
    symbols = frozenset(context["symbols"])
    age_s, most = risk["max_data_age_s"], risk["max_order_usd"]
    return AuditCaps(
        symbols=symbols & allowed if allowed else symbols,
        position_pct=exact(risk["max_position_pct"]),
        exposure_pct=exact(risk["max_total_exposure_pct"]),
        leverage=exact(risk["max_leverage"]),
        least_usd=max(exact(risk["min_order_usd"]), MINIMUM_USD),
        most_usd=None if most is None else exact(most),
        opens_an_hour=int(risk["max_orders_per_hour"]),
        daily_loss_pct=exact(risk["daily_loss_halt_pct"]),
        drawdown_pct=exact(risk["drawdown_halt_pct"]),
        band_pct=exact(risk["price_band_pct"]),
        oldest_ms=2 * interval_ms(context["bars_interval"]) if age_s is None else int(exact(age_s) * 1000),
    )


def closes_of(market: Market, symbols: Collection[str], base: str, from_at: Instant) -> dict[str, CloseSeries]:
    """The closes of a market, from two bars before `from_at` on."""
    closes: dict[str, CloseSeries] = {}
    for symbol in symbols:
        bars = market.bars[symbol, base]
        first = max(0, int(bars.open_at.searchsorted(from_at)) - 2)
        closes[symbol] = CloseSeries(
            tuple(int(at) + bars.interval_ms for at in bars.open_at[first:].tolist()),
            tuple(Decimal(repr(close)) for close in bars.close[first:].tolist()),
        )
    return closes


def digest_of(facts: AuditFacts) -> str:
    """A digest of everything that must not change during a run."""
    return codec.digest([facts.limits, sorted(facts.tools), facts.terminal, facts.system])


def exact(value: Any) -> Decimal:
    """A number as the decimal that it is written as."""
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
