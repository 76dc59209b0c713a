"""Single markets of the predict venue for tests: created, activated, bounded and updated one at a time, as the protocol's
operator may do it.

A run lists and updates its markets together, with `list_markets`, `push` and `feed` of `venues.predict.world`. The checks of
a price and of a surface are those of the world.
"""

from dataclasses import replace

from pitboss.core.instant import Instant
from pitboss.venues.predict import aborts
from pitboss.venues.predict.aborts import Abort
from pitboss.venues.predict.state import Grid, MarketTerms, Oracle, PredictWorld, with_oracle
from pitboss.venues.predict.svi import FLOAT, Svi
from pitboss.venues.predict.trade import WorldStep, rejected
from pitboss.venues.predict.world import price_oracle, settlement_receipts, surface_abort


def create_oracle(
    world: PredictWorld, oracle_id: str, underlying: str, expiry_at: Instant, at: Instant, grid: Grid | None = None
) -> WorldStep:
    """Create a market, not yet active. Two for the same underlying and expiry are allowed, as in the protocol."""
    grid = grid or Grid()
    if oracle_id in world.oracles or not oracle_id or not grid.sound():
        return rejected(world, aborts.BAD_ORACLE, at, oracle_id)
    return WorldStep(with_oracle(world, Oracle(oracle_id, underlying, expiry_at, grid)))


def activate(world: PredictWorld, oracle_id: str, at: Instant) -> WorldStep:
    """Open a market for minting: once, and only before its expiry."""
    oracle = world.oracles.get(oracle_id)
    abort = (
        aborts.UNKNOWN
        if oracle is None
        else aborts.ORACLE_SETTLED
        if oracle.settlement is not None
        else aborts.ORACLE_EXPIRED
        if at >= oracle.expiry_at
        else aborts.ALREADY_ACTIVE
        if oracle.active
        else None
    )
    if oracle is None or abort is not None:
        return rejected(world, abort or aborts.UNKNOWN, at, oracle_id)
    return WorldStep(with_oracle(world, replace(oracle, active=True)))


def set_ask_bounds(world: PredictWorld, oracle_id: str, bounds: tuple[int, int] | None, at: Instant) -> WorldStep:
    """Tighten one market's ask bounds, or restore the general ones with None."""
    oracle = world.oracles.get(oracle_id)
    if oracle is None:
        return rejected(world, aborts.UNKNOWN, at, oracle_id)
    abort = None if bounds is None else check_bounds(world.terms, *bounds)
    if abort is not None:
        return rejected(world, abort, at, oracle_id)
    return WorldStep(with_oracle(world, replace(oracle, ask_bounds=bounds)))


def push_price(world: PredictWorld, oracle_id: str, spot: int, forward: int, at: Instant) -> WorldStep:
    """Push a price to one market. The first one at or after expiry settles the market at that spot."""
    oracle = world.oracles.get(oracle_id)
    if oracle is None:
        return rejected(world, aborts.UNKNOWN, at, oracle_id)
    priced = price_oracle(oracle, spot, forward, at)
    if isinstance(priced, Abort):
        return rejected(world, priced, at, oracle_id)
    return WorldStep(with_oracle(world, priced), settlement_receipts((priced,), at))


def push_svi(world: PredictWorld, oracle_id: str, svi: Svi, at: Instant) -> WorldStep:
    """Push a surface to one market, before its expiry."""
    oracle = world.oracles.get(oracle_id)
    if oracle is None:
        return rejected(world, aborts.UNKNOWN, at, oracle_id)
    refusal = surface_abort(world, oracle, svi, at)
    if refusal is not None:
        return rejected(world, refusal, at, oracle_id)
    return WorldStep(with_oracle(world, replace(oracle, svi=svi, surfaced_at=at)))


def check_bounds(terms: MarketTerms, lowest: int, highest: int) -> Abort | None:
    """Check whether these bounds may be set for one oracle."""
    if not 0 < lowest < highest < FLOAT:
        return aborts.BAD_BOUND
    return aborts.LOOSER_BOUNDS if lowest < terms.min_ask or highest > terms.max_ask else None
