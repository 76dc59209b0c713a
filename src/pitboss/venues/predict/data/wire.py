"""Converts rows of the predict protocol's indexer to the venue's types.

Strict: a row that differs from the documentation is an invalid reply. Numbers are whole JSON numbers in the protocol's
units: prices, probabilities and surfaces in billionths, money and contracts in millionths. Signs of a surface are flags
beside the magnitudes. This module makes no requests; `indexer` does.
"""

from typing import Any, Literal

from pitboss.core.instant import SECOND_MS, Instant
from pitboss.core.noun import noun
from pitboss.data.fetch import MalformedReply
from pitboss.venues.predict.data.fields import (
    Row,
    choice,
    flag,
    number,
    object_id,
    optional,
    price,
    record,
    share,
    signed,
    text,
    time,
)
from pitboss.venues.predict.state import Contract, Grid, MarketTerms, Oracle, Vault, binary
from pitboss.venues.predict.svi import FLOAT, Svi, from_units

AHEAD_MS = 60 * SECOND_MS
"""Tolerated lag of the local clock. A price further in the future would count as fresh for too long."""
STATUSES = ("created", "active", "settled")
POSITION_STATUSES = ("awaiting_settlement", "active", "redeemable", "lost", "redeemed")


@noun
class Health:
    """How far the indexer is behind its chain; its market data is at least that old."""

    ok: bool
    checkpoint: int
    lag_checkpoints: int
    lag_s: int
    at: Instant


@noun
class Protocol:
    """The operator's settings. `paused` in the terms is the indexer's cached value; the chain is authoritative."""

    terms: MarketTerms
    quote_assets: tuple[str, ...]


@noun
class PriceUpdate:
    """Spot and forward as pushed to one oracle, in billionths. `at` is the chain's time of the push."""

    oracle_id: str
    at: Instant
    spot: int
    forward: int
    seen_at: Instant
    """Time of its checkpoint; it could not be read before."""
    digest: str


@noun
class SurfaceUpdate:
    """A surface as pushed to one oracle."""

    oracle_id: str
    at: Instant
    svi: Svi
    seen_at: Instant
    digest: str


@noun
class VaultSummary:
    """The vault with the indexer's computed totals, in millionths."""

    vault: Vault
    value: int
    available_liquidity: int
    available_withdrawal: int
    plp_supply: int


@noun
class IndexedFill:
    """One trade of any account: `amount` is the cost of a mint or the payout of a redeem, in millionths."""

    kind: Literal["mint", "redeem"]
    at: Instant
    contract: Contract
    expiry_at: Instant
    quantity: int
    price: int
    amount: int
    manager_id: str
    digest: str
    tx_digest: str
    is_settled: bool = False
    """Whether a redeem was the payout of a settled market."""


@noun
class ManagerPosition:
    """One position of a manager as aggregated by the indexer. `mark` is None if it has no price now."""

    contract: Contract
    expiry_at: Instant
    quantity: int
    cost: int
    realised: int
    mark: int | None
    status: str


def oracle_of_row(row: Row) -> Oracle:
    """Parse an oracle without prices. `active` means activated; whether it still is depends on the clock."""
    status, settlement = choice(row, "status", STATUSES), optional(row, "settlement_price", price)
    if (settlement is None) == (status == "settled"):
        raise MalformedReply("an oracle is settled without a price, or has one without being settled")
    grid = Grid(price(row, "min_strike"), price(row, "tick_size"))
    if not grid.sound():
        raise MalformedReply("an oracle has a grid of strikes that the protocol would not take")
    return Oracle(
        object_id(row, "oracle_id"),
        text(row, "underlying_asset"),
        time(row, "expiry"),
        grid,
        status == "active",
        settlement=settlement,
        settled_at=optional(row, "settled_at", time),
    )


def price_update(row: Row, oracle_id: str, now: Instant) -> PriceUpdate:
    """Parse a price update."""
    return PriceUpdate(
        _ours(row, oracle_id),
        _past(row, "onchain_timestamp", now),
        price(row, "spot"),
        price(row, "forward"),
        _past(row, "checkpoint_timestamp_ms", now),
        text(row, "event_digest"),
    )


def surface_update(row: Row, oracle_id: str, now: Instant) -> SurfaceUpdate:
    """Parse a surface update."""
    rho, m = (-number(row, name) if flag(row, f"{name}_negative") else number(row, name) for name in ("rho", "m"))
    if abs(rho) > FLOAT:
        raise MalformedReply("a surface has a rho outside −1 and 1")
    return SurfaceUpdate(
        _ours(row, oracle_id),
        _past(row, "onchain_timestamp", now),
        from_units(number(row, "a"), number(row, "b"), rho, m, number(row, "sigma")),
        _past(row, "checkpoint_timestamp_ms", now),
        text(row, "event_digest"),
    )


def oracle_state(value: Any, oracle_id: str, now: Instant) -> Oracle:
    """Parse one oracle with its newest price, surface and ask bounds."""
    row = record(value)
    oracle = oracle_of_row(record(row.get("oracle")))
    if oracle.id != oracle_id:
        raise MalformedReply("asked for one oracle, got another")
    latest_price = optional(row, "latest_price", lambda row, name: price_update(record(row[name]), oracle_id, now))
    latest_surface = optional(row, "latest_svi", lambda row, name: surface_update(record(row[name]), oracle_id, now))
    bounds = optional(row, "ask_bounds", _bounds)
    return Oracle(
        oracle.id,
        oracle.underlying,
        oracle.expiry_at,
        oracle.grid,
        oracle.active,
        latest_price.spot if latest_price else 0,
        latest_price.forward if latest_price else 0,
        latest_price.at if latest_price else None,
        latest_surface.svi if latest_surface else None,
        latest_surface.at if latest_surface else None,
        oracle.settlement,
        oracle.settled_at,
        bounds,
    )


def protocol_state(value: Any, predict_id: str, defaults: MarketTerms) -> Protocol:
    """Parse the operator's settings. The indexer has none until the first change; then the protocol's defaults apply."""
    row = record(value)
    if object_id(row, "predict_id") != predict_id:
        raise MalformedReply("asked for one Predict object, got another")
    pricing = optional(row, "pricing", lambda row, name: record(row[name]))
    risk = optional(row, "risk", lambda row, name: record(row[name]))
    terms = MarketTerms(
        defaults.generation,
        defaults.base_spread if pricing is None else share(pricing, "base_spread"),
        defaults.min_spread if pricing is None else share(pricing, "min_spread"),
        defaults.utilisation_multiplier if pricing is None else number(pricing, "utilization_multiplier"),
        defaults.min_ask if pricing is None else share(pricing, "min_ask_price"),
        defaults.max_ask if pricing is None else share(pricing, "max_ask_price"),
        defaults.max_exposure if risk is None else share(risk, "max_total_exposure_pct"),
        defaults.freshness_ms,
        defaults.curve_points,
        bool(optional(row, "trading_paused", flag)),
    )
    if not terms.min_ask < terms.max_ask:
        raise MalformedReply("the lowest ask is not below the highest")
    assets = row.get("quote_assets", [])
    if not isinstance(assets, list) or len(assets) > 100:
        raise MalformedReply("the quote assets are not a short list")
    return Protocol(terms, tuple(text({"quote_asset": asset}, "quote_asset") for asset in assets))


def vault_summary(value: Any, predict_id: str) -> VaultSummary:
    """Parse the vault's totals."""
    row = record(value)
    if object_id(row, "predict_id") != predict_id:
        raise MalformedReply("asked for one vault, got another")
    return VaultSummary(
        Vault(number(row, "vault_balance"), {}, number(row, "total_mtm"), number(row, "total_max_payout")),
        signed(row, "vault_value"),
        signed(row, "available_liquidity"),
        signed(row, "available_withdrawal"),
        number(row, "plp_total_supply"),
    )


def fill(row: Row, oracle_id: str, now: Instant) -> IndexedFill:
    """Parse a mint or a redeem."""
    kind = choice(row, "type", ("mint", "redeem"))
    amount_field, price_field = ("cost", "ask_price") if kind == "mint" else ("payout", "bid_price")
    return IndexedFill(
        "mint" if kind == "mint" else "redeem",
        _past(row, "checkpoint_timestamp_ms", now),
        _contract(row, _ours(row, oracle_id)),
        time(row, "expiry"),
        number(row, "quantity"),
        share(row, price_field),
        number(row, amount_field),
        object_id(row, "manager_id"),
        text(row, "event_digest"),
        text(row, "digest"),
        kind == "redeem" and flag(row, "is_settled"),
    )


def redemption(row: Row, oracle_id: str, manager_id: str, now: Instant) -> IndexedFill:
    """Parse a redeem from the list of one manager's redeems in one market."""
    redeem = fill({**row, "type": "redeem"}, oracle_id, now)
    if redeem.manager_id != manager_id:
        raise MalformedReply("a row is of another manager than was asked for")
    return redeem


def manager_position(row: Row) -> ManagerPosition:
    """Parse one of a manager's positions."""
    return ManagerPosition(
        _contract(row, object_id(row, "oracle_id")),
        time(row, "expiry"),
        number(row, "open_quantity"),
        number(row, "open_cost_basis"),
        signed(row, "realized_pnl"),
        optional(row, "mark_price", share),
        choice(row, "status", POSITION_STATUSES),
    )


def health(value: Any) -> Health:
    """Parse the indexer's own status."""
    row = record(value)
    return Health(
        choice(row, "status", ("OK", "UNHEALTHY")) == "OK",
        number(row, "latest_onchain_checkpoint"),
        signed(row, "max_checkpoint_lag"),
        signed(row, "max_time_lag_seconds"),
        time(row, "current_time_ms"),
    )


def _past(row: Row, name: str, now: Instant) -> Instant:
    at = time(row, name)
    if at > now + AHEAD_MS:
        raise MalformedReply(f"{name} is still to come")
    return at


def _ours(row: Row, oracle_id: str) -> str:
    row_oracle_id = object_id(row, "oracle_id")
    if row_oracle_id != oracle_id:
        raise MalformedReply("a row is of another oracle than was asked for")
    return row_oracle_id


def _contract(row: Row, oracle_id: str) -> Contract:
    return binary(oracle_id, "YES" if flag(row, "is_up") else "NO", price(row, "strike"))


def _bounds(row: Row, name: str) -> tuple[int, ...]:
    bounds = record(row[name])
    lowest, highest = share(bounds, "min_ask_price"), share(bounds, "max_ask_price")
    if not lowest < highest:
        raise MalformedReply("the ask bounds of an oracle are the wrong way round")
    return lowest, highest
