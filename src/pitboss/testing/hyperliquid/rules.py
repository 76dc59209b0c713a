"""What of the fake exchange is set per test."""

from decimal import Decimal

from pitboss.core.noun import noun


@noun
class VenueRules:
    """What of the exchange is set per test. The defaults are the documented ones."""

    step_ms: int = 1_000
    """How often prices move."""
    history_ms: int = 0
    """How long before its start the exchange has prices: candles and funding."""
    spread_bp: int = 2
    partial_fill: float = 0.25
    """How likely a resting order that the price reaches is filled in part only at that step."""
    is_mainnet: bool = False
    """Which signatures count: source "a" on mainnet, "b" on testnet."""
    verify_every: int = 1
    """1 verifies every signature, n every nth, 0 none; what is not verified counts as signed by the ready agent."""
    ip_weight: int = 1_200
    """Weight of requests in 60 s; 0 for no limit."""
    schedule_cancel_volume: Decimal = Decimal(1_000_000)
    cancels_triggers_when_flat: bool = False
    """Whether reduce-only triggers are cancelled with their position. Otherwise they rest, and are refused when they fire."""
    dedupes_cloid: bool = False
    """Whether an order with a cloid that was used before is refused. The exchange documents no such thing."""
    asset_suffix: bool = True
    """Whether refusals of one order end in ` asset=N`."""
