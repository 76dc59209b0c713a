"""The operations of the paper venue's operator and clock: markets are listed, updated, settled and removed.

Each function is pure and returns a `WorldStep`. Trading is in `trade`. The simulator and the paper broker use the same
functions. An abort of the protocol leaves the world unchanged and is reported as a `rejected` receipt.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf

from pitboss.core.instant import Instant
from pitboss.core.receipt import Receipt
from pitboss.venues.predict import aborts
from pitboss.venues.predict.aborts import Abort
from pitboss.venues.predict.schedule import FINEST_MS, TIERS, expiring, listed_slots, market_name
from pitboss.venues.predict.state import Feed, Grid, Oracle, PredictWorld, Vault, usd
from pitboss.venues.predict.svi import FLOAT, Svi, falls_with_strike
from pitboss.venues.predict.trade import WorldStep, redeem_settled, rejected


def push(
    world: PredictWorld,
    underlying: str,
    spot: int,
    at: Instant,
    surfaces: Mapping[str, Svi] | None = None,
    basis: int = 0,
    silent: Collection[str] = (),
) -> WorldStep:
    """Update every market of an underlying that is neither settled nor fed: a price, and the surfaces given by id.

    `basis` is forward over spot minus one, in billionths. Markets in `silent` get no update, like a stale twin.
    """
    forward = spot + spot * basis // FLOAT
    oracles = dict(world.oracles)
    receipts: list[Receipt] = []
    for oracle in world.oracles.values():
        if oracle.underlying != underlying or oracle.settlement is not None or oracle.fed or oracle.id in silent:
            continue
        svi = surfaces.get(oracle.id) if surfaces and at < oracle.expiry_at else None
        refusal = None if svi is None else surface_abort(world, oracle, svi, at)
        if refusal is not None:
            receipts += rejected(world, refusal, at, oracle.id).receipts
            svi = None
        priced = price_oracle(oracle, spot, forward, at, svi)
        if isinstance(priced, Abort):
            receipts += rejected(world, priced, at, oracle.id).receipts
            continue
        oracles[oracle.id] = priced
        if priced.settlement is not None:
            receipts += settlement_receipts((priced,), at)
    return WorldStep(
        PredictWorld(world.vault, world.accounts, oracles, world.terms, world.next_trade, world.feeds), tuple(receipts)
    )


def list_markets(
    world: PredictWorld,
    underlying: str,
    at: Instant,
    tiers: Iterable[str] = TIERS,
    grid: Grid | None = None,
    fed: bool = False,
) -> WorldStep:
    """Create and activate the markets of the schedule that do not exist yet."""
    expiries = {oracle.expiry_at for oracle in world.oracles.values() if oracle.underlying == underlying}
    missing = [slot.expiry_at for slot in listed_slots(at, tiers) if slot.expiry_at not in expiries]
    if not missing:
        return WorldStep(world)
    grid = grid or Grid()
    names = {market_name(underlying, expiry_at): expiry_at for expiry_at in missing}
    created = {name: Oracle(name, underlying, expiry_at, grid, True, fed=fed) for name, expiry_at in names.items()}
    return WorldStep(_with_oracles(world, {**world.oracles, **created}))


def sweep(world: PredictWorld, at: Instant) -> WorldStep:
    """Pay out every position of every settled market, then remove settled markets without open contracts.

    The cost is proportional to the payouts: a settled market is removed with its last position.
    """
    settled = {oracle.id for oracle in world.oracles.values() if oracle.settlement is not None}
    if not settled:
        return WorldStep(world)
    receipts: list[Receipt] = []
    for account_id in sorted(world.accounts):
        positions = world.accounts[account_id].positions
        for key in sorted(key for key, position in positions.items() if position.contract.market_id in settled):
            step = redeem_settled(world, account_id, positions[key].contract, at)
            world = step.world
            receipts += step.receipts
    return WorldStep(_forget(world, settled), tuple(receipts))


def advance(
    world: PredictWorld,
    underlying: str,
    spot: int,
    at: Instant,
    surface: Callable[[Oracle], Svi | None],
    basis: int = 0,
    tiers: Iterable[str] = TIERS,
) -> WorldStep:
    """Apply one complete update of the paper venue: list scheduled markets, push prices, pay out settled markets.

    `surface` returns the surface available at this instant for an unexpired market, or None to keep its current one.
    """
    world = list_markets(world, underlying, at, tiers).world
    surfaces: dict[str, Svi] = {}
    for oracle in world.oracles.values():
        if oracle.underlying == underlying and at < oracle.expiry_at:
            svi = surface(oracle)
            if svi is not None:
                surfaces[oracle.id] = svi
    pushed = push(world, underlying, spot, at, surfaces, basis)
    swept = sweep(pushed.world, at)
    return WorldStep(swept.world, (*pushed.receipts, *swept.receipts))


def feed(
    world: PredictWorld,
    underlying: str,
    spot: int,
    at: Instant,
    volatility: float | None = None,
    basis: int = 0,
    tiers: Iterable[str] = TIERS,
) -> WorldStep:
    """Apply one update to markets that share a price, as in a replay.

    With a volatility their surfaces are computed from it. Nothing is written per market, so between two boundaries of
    the schedule it allocates one small value.
    """
    before = world.feeds.get(underlying)
    if spot <= 0 or (volatility is not None and not 0 <= volatility < inf):
        return rejected(world, aborts.BAD_PRICE, at, underlying)
    if before is not None and at < before.at:
        return rejected(world, aborts.OLD_PUSH, at, underlying)
    forward = spot + spot * basis // FLOAT
    if before is not None and at < before.quiet_until:
        after = Feed(spot, forward, at, volatility, before.quiet_until)
        feeds = {**world.feeds, underlying: after} if len(world.feeds) > 1 else {underlying: after}
        return WorldStep(PredictWorld(world.vault, world.accounts, world.oracles, world.terms, world.next_trade, feeds))
    receipts: tuple[Receipt, ...] = ()
    due = [
        oracle
        for oracle in world.oracles.values()
        if oracle.fed and oracle.underlying == underlying and oracle.settlement is None and at >= oracle.expiry_at
    ]
    if due:
        settled = [replace(oracle, active=False, settlement=spot, settled_at=at) for oracle in due]
        oracles = {**world.oracles, **{oracle.id: oracle for oracle in settled}}
        swept = sweep(_with_oracles(world, oracles), at)
        world, receipts = swept.world, (*settlement_receipts(settled, at), *swept.receipts)
    world = list_markets(world, underlying, at, tiers, fed=True).world
    # On a boundary the next market is due right after it; otherwise at the next expiry, and all expiries are
    # boundaries.
    if at % FINEST_MS == 0:
        quiet_until = at + 1
    else:
        ahead = [oracle.expiry_at for oracle in world.oracles.values() if oracle.fed and oracle.expiry_at > at]
        quiet_until = min([*ahead, at - at % FINEST_MS + FINEST_MS])
    feeds = {**world.feeds, underlying: Feed(spot, forward, at, volatility, quiet_until)}
    return WorldStep(
        PredictWorld(world.vault, world.accounts, world.oracles, world.terms, world.next_trade, feeds), receipts
    )


def can_coast(world: PredictWorld, underlying: str) -> bool:
    """Whether only prices and the schedule change this world: all markets are fed and no account holds a position."""
    if world.vault.books or underlying not in world.feeds:
        return False
    return all(oracle.fed and oracle.underlying == underlying for oracle in world.oracles.values())


def coast(
    world: PredictWorld,
    underlying: str,
    at: Sequence[Instant],
    spot: Sequence[int],
    volatility: float | None,
    tiers: Iterable[str] = TIERS,
) -> WorldStep:
    """Return the result of feeding each of these updates, for a world that satisfies `can_coast`.

    Adjacent updates, including the one before the first, must not be further apart than the finest tier's step. Then
    every market of the schedule was listed by its expiry, and the markets that exist at the end do not depend on the
    steps between. `volatility` is that of the last update. A week costs about 700 receipts instead of 2,000 feeds.
    """
    receipts: list[Receipt] = []
    for expiry_at in expiring(tiers, world.feeds[underlying].at, at[-1]):
        index = bisect_left(at, expiry_at)
        name = market_name(underlying, expiry_at)
        receipts.append(Receipt("settled", at[index], name, "", {"price": usd(spot[index])}))
    remaining = {name: oracle for name, oracle in world.oracles.items() if oracle.expiry_at > at[-1]}
    step = feed(_with_oracles(world, remaining), underlying, spot[-1], at[-1], volatility, tiers=tiers)
    return WorldStep(step.world, tuple(receipts))


def _with_oracles(world: PredictWorld, oracles: Mapping[str, Oracle]) -> PredictWorld:
    return PredictWorld(world.vault, world.accounts, oracles, world.terms, world.next_trade, world.feeds)


def price_oracle(oracle: Oracle, spot: int, forward: int, at: Instant, svi: Svi | None = None) -> Oracle | Abort:
    """Return the oracle with a price and a checked surface, or settled by the price."""
    if oracle.settlement is not None:
        return aborts.ORACLE_SETTLED
    if spot <= 0:
        return aborts.BAD_PRICE
    if forward <= 0:
        return aborts.ZERO_FORWARD
    if oracle.priced_at is not None and at < oracle.priced_at:
        return aborts.OLD_PUSH
    if at >= oracle.expiry_at:
        return replace(oracle, active=False, settlement=spot, settled_at=at)
    return Oracle(
        oracle.id,
        oracle.underlying,
        oracle.expiry_at,
        oracle.grid,
        oracle.active,
        spot,
        forward,
        at,
        svi or oracle.svi,
        oracle.surfaced_at if svi is None else at,
        None,
        None,
        oracle.ask_bounds,
        oracle.fed,
    )


def surface_abort(world: PredictWorld, oracle: Oracle, svi: Svi, at: Instant) -> Abort | None:
    """Return why a surface is rejected."""
    if oracle.settlement is not None:
        return aborts.ORACLE_SETTLED
    if at >= oracle.expiry_at:
        return aborts.ORACLE_EXPIRED
    if oracle.surfaced_at is not None and at < oracle.surfaced_at:
        return aborts.OLD_PUSH
    if svi.b == 0.0 < svi.a < inf or falls_with_strike(world.terms.generation, svi):
        return None
    return aborts.RISING


def settlement_receipts(oracles: Iterable[Oracle], at: Instant) -> tuple[Receipt, ...]:
    return tuple(
        Receipt("settled", at, oracle.id, "", {"price": usd(oracle.settlement)})
        for oracle in oracles
        if oracle.settlement is not None
    )


def _forget(world: PredictWorld, settled: Collection[str]) -> PredictWorld:
    """Remove settled markets without open contracts, and their books."""
    vault = world.vault
    removed = {name for name in settled if name not in vault.books or not vault.books[name].levels}
    if not removed:
        return world
    books = {name: book for name, book in vault.books.items() if name not in removed}
    oracles = {name: oracle for name, oracle in world.oracles.items() if name not in removed}
    vault_after = Vault(vault.balance, books, vault.total_mtm, vault.total_max_payout)
    return PredictWorld(vault_after, world.accounts, oracles, world.terms, world.next_trade, world.feeds)
