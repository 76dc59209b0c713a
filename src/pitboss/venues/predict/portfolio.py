"""The account as shown to users, prompts, tools and snapshots: plain values derived from a world."""

from decimal import Decimal

from pitboss.core.instant import Instant
from pitboss.core.money import exact
from pitboss.core.noun import noun
from pitboss.venues.predict.aborts import Abort
from pitboss.venues.predict.quote import amount, spread, utilisation
from pitboss.venues.predict.state import (
    ACCOUNT,
    NO_ACCOUNT,
    Contract,
    ContractPosition,
    ContractSide,
    Oracle,
    PredictWorld,
    Status,
    contracts,
    oracle_of,
    status,
    usd,
)
from pitboss.venues.predict.svi import FLOAT, Pricer, pricer
from pitboss.venues.predict.trade import fair_value, preview


@noun
class ContractView:
    """One position with its current value. `quoted` is False if the venue would not redeem it now."""

    market_id: str
    side: ContractSide
    strikes: tuple[Decimal, ...]
    quantity: Decimal
    cost: Decimal
    bid: Decimal
    value: Decimal
    expiry_at: Instant
    status: Status
    quoted: bool


@noun
class PredictPortfolio:
    """Cash, positions and equity at one instant, in quote units."""

    cash: Decimal
    equity: Decimal
    positions: tuple[ContractView, ...]


@exact
def portfolio(world: PredictWorld, now: Instant, account_id: str = ACCOUNT) -> PredictPortfolio:
    """Return the account's portfolio; equity is cash plus every position at its bid."""
    account = world.accounts.get(account_id, NO_ACCOUNT)
    holdings = tuple(_holding(world, account.positions[key], now) for key in sorted(account.positions))
    value = sum((holding.value for holding in holdings), contracts(account.cash))
    return PredictPortfolio(contracts(account.cash), value, holdings)


def equity(world: PredictWorld, account_id: str = ACCOUNT) -> int:
    """Return cash plus every position at its bid, in millionths.

    It does not depend on whether the venue redeems at this instant. Computed at every tick, so each market's pricer is
    built once.
    """
    account = world.accounts.get(account_id, NO_ACCOUNT)
    total = account.cash
    used = utilisation(world.vault.total_mtm, world.vault.balance)
    markets: dict[str, tuple[Oracle | None, Pricer | None]] = {}
    for position in account.positions.values():
        name = position.contract.market_id
        if name not in markets:
            oracle = oracle_of(world, name)
            if oracle is None or oracle.svi is None:
                markets[name] = oracle, None
            else:
                markets[name] = oracle, pricer(world.terms.generation, oracle.forward, oracle.svi)
        total += amount(_bid(world, position.contract, used, *markets[name]), position.quantity)
    return total


def bid_of(world: PredictWorld, contract: Contract, now: Instant) -> tuple[int, bool]:
    """Return the bid, and whether the venue quotes it now.

    Between expiry and settlement, or with a stale price, the venue quotes none; equity then uses the newest price and
    the spread as if it were fresh. A fair price of 0 or 1 is its own bid.
    """
    used = utilisation(world.vault.total_mtm, world.vault.balance)
    bid = _bid(world, contract, used, oracle_of(world, contract.market_id))
    return bid, not isinstance(preview(world, contract, now), Abort)


def _bid(world: PredictWorld, contract: Contract, used: int, oracle: Oracle | None, up_at: Pricer | None = None) -> int:
    fair = 0 if oracle is None else fair_value(world.terms.generation, oracle, contract, up_at)
    if isinstance(fair, Abort):
        return 0
    if not 0 < fair < FLOAT:
        return fair
    return max(0, fair - spread(world.terms, fair, used))


def _holding(world: PredictWorld, position: ContractPosition, now: Instant) -> ContractView:
    contract = position.contract
    bid, quoted = bid_of(world, contract, now)
    oracle = world.oracles.get(contract.market_id)
    return ContractView(
        contract.market_id,
        contract.side,
        tuple(usd(strike) for strike in contract.strikes),
        contracts(position.quantity),
        contracts(position.cost),
        usd(bid),
        contracts(amount(bid, position.quantity)),
        position.expiry_at,
        "settled" if oracle is None else status(oracle, now),
        quoted,
    )
