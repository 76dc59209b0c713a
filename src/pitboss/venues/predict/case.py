"""A decision prepared for the rules: the market and strike it refers to, and the cost of the trade at this instant.

Every number that a rule needs is computed here once; it is None where it cannot be computed. The spend is already
reduced to what the tick's cap leaves, so the rules check the trade that would be executed, not the requested one.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Literal

from pitboss.core.instant import Instant, iso
from pitboss.core.noun import noun
from pitboss.venues.predict.aborts import OFF_GRID, Abort
from pitboss.venues.predict.caps import PredictCaps, Spent
from pitboss.venues.predict.intents import PredictDecision
from pitboss.venues.predict.state import (
    NO_ACCOUNT,
    QUOTE,
    Contract,
    ContractPosition,
    Oracle,
    PredictWorld,
    Side,
    binary,
    open_markets,
    oracle_of,
)
from pitboss.venues.predict.svi import FLOAT
from pitboss.venues.predict.trade import ContractTrade, admit, quote_spend, weigh_redeem

Scope = Literal["every", "mints"]
NEAREST = "the nearest open market"


@noun
class PredictCase:
    """A decision with everything the rules need to check it."""

    caps: PredictCaps
    world: PredictWorld
    account_id: str
    spent: Spent
    now: Instant
    tick_at: Instant
    decision: PredictDecision | None
    problems: Sequence[str]
    market: Oracle | None = None
    unclear: str = ""
    """Why no market, or more than one, matches the decision."""
    contract: Contract | None = None
    position: ContractPosition | None = None
    requested: int | None = None
    """The requested spend."""
    spend: int | None = None
    """The spend after reduction to the tick's cap."""
    quoted: ContractTrade | Abort | None = None
    """The mint at its price after the trade, before any admission check."""
    admitted: ContractTrade | Abort | None = None
    """The mint or redeem as the venue would answer it."""
    chosen_by: str = ""
    """How the market was chosen among several, if the decision named none."""

    @property
    def trade(self) -> ContractTrade | None:
        """The priced mint, if it has a price."""
        return self.quoted if isinstance(self.quoted, ContractTrade) else None


def make_case(
    caps: PredictCaps,
    world: PredictWorld,
    account_id: str,
    spent: Spent,
    decision: PredictDecision | None,
    problems: Sequence[str],
    now: Instant,
    tick_at: Instant,
) -> PredictCase:
    """Compute the values that the rules need for a parsed decision."""
    base = (caps, world, account_id, spent, now, tick_at, decision, problems)
    if decision is None or decision.side is None or decision.strike is None:
        return PredictCase(*base)
    strike = _units(decision.strike, FLOAT)
    market, unclear, chosen_by = _market(caps, world, account_id, decision, strike, now)
    contract = None if market is None or strike is None else binary(market.id, decision.side, strike)
    if decision.action == "redeem":
        position = None
        if contract is not None:
            position = world.accounts.get(account_id, NO_ACCOUNT).positions.get(contract.key)
        admitted = None
        if contract is not None and position is not None:
            admitted = weigh_redeem(world, account_id, contract, position.quantity, now)
        return PredictCase(*base, market, unclear, contract, position, None, None, None, admitted)
    assert decision.spend is not None  # guaranteed by `read`
    requested = int(min(decision.spend, Decimal(2**63)).scaleb(6))
    spend = min(requested, max(0, caps.max_spend_per_tick - spent.tick_spend(tick_at)))
    if contract is None:
        off_grid = OFF_GRID if market else None
        return PredictCase(*base, market, unclear, None, None, requested, spend, off_grid, None, chosen_by)
    quoted = quote_spend(world, contract, spend, now)
    admitted = admit(world, account_id, quoted)
    return PredictCase(*base, market, unclear, contract, None, requested, spend, quoted, admitted, chosen_by)


def _units(value: Decimal, scale: int) -> int | None:
    """Convert a plain amount to the protocol's units; None unless it is a whole number of them."""
    if value.adjusted() > 15 or value.adjusted() < -9:
        return None
    units = value * scale
    return int(units) if units == units.to_integral_value() else None


def _market(
    caps: PredictCaps, world: PredictWorld, account_id: str, decision: PredictDecision, strike: int | None, now: Instant
) -> tuple[Oracle | None, str, str]:
    """Find the market of a decision: it, or why there is none, and how it was chosen if it was not named."""
    if decision.market_id is not None:
        market = oracle_of(world, decision.market_id)
        return (market, "", "") if market is not None else (None, f"no market {decision.market_id[:80]!r}", "")
    if decision.action == "redeem":
        return *_held_market(world, account_id, decision.side, strike), ""
    markets = open_markets(world, now, caps.underlying)
    if decision.expiry_at is not None:
        markets = tuple(market for market in markets if market.expiry_at == decision.expiry_at)
        chosen_by = "the market of its expiry"
    else:
        chosen_by = NEAREST
    if not markets:
        when = "" if decision.expiry_at is None else f" with expiry {iso(decision.expiry_at)}"
        return None, f"market_id is missing and no market{when} is open", ""
    if len(markets) == 1:
        return markets[0], "", "" if decision.expiry_at is None else chosen_by
    fit = [market for market in markets if strike is not None and market.grid.holds(strike)]
    in_time = [market for market in fit or markets if market.expiry_at - now >= caps.min_ms_to_expiry]
    if len(fit) == 1:
        chosen_by = "the market of its strike"
    return (in_time or fit or list(markets))[0], "", chosen_by


def _held_market(
    world: PredictWorld, account_id: str, side: Side | None, strike: int | None
) -> tuple[Oracle | None, str]:
    positions = world.accounts.get(account_id, NO_ACCOUNT).positions.values()
    market_ids = [
        position.contract.market_id
        for position in positions
        if position.contract.side == side and position.contract.strikes == (strike,)
    ]
    if len(market_ids) == 1:
        return oracle_of(world, market_ids[0]), ""
    return None, "market_id is missing and " + (
        f"{len(market_ids)} positions match" if market_ids else "no position matches"
    )


def dusdc(units: int) -> str:
    """Format an amount for a message."""
    return f"{units / QUOTE:.6g}"


def cents(units: int) -> str:
    """Format a price for a message."""
    return f"{units / FLOAT:.4f}"


def shown_strike(strike: Decimal | None) -> str:
    """Format a strike for a message, independent of its number of digits or trailing zeros."""
    if strike is None:
        return ""
    short = f"{strike.normalize():.12g}"
    return short if "e" not in short.lower() or abs(strike.adjusted()) > 12 else f"{Decimal(short):f}"
