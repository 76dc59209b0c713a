"""Trades with the vault: the quote after the trade, then payment, then the caps.

`weigh_mint` and `weigh_redeem` compute a trade without executing it; `mint` and `redeem` execute it. Each returns the
protocol's abort if it refuses; then nothing has changed.
"""

from dataclasses import replace
from decimal import Decimal
from typing import Literal

from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.venues.predict import aborts
from pitboss.venues.predict.aborts import Abort
from pitboss.venues.predict.liability import refreshed
from pitboss.venues.predict.quote import (
    Quote,
    amount,
    ask_bounds,
    make_quote,
    quantity_for,
    settled_quote,
    utilisation,
)
from pitboss.venues.predict.state import (
    NO_ACCOUNT,
    NO_BOOK,
    Account,
    Contract,
    ContractPosition,
    Oracle,
    PredictWorld,
    StrikeBook,
    Vault,
    changed,
    contracts,
    oracle_of,
    status,
    usd,
)
from pitboss.venues.predict.svi import FLOAT, Generation, Pricer, pricer

Facts = dict[str, Decimal | str | int]


@noun
class ContractTrade:
    """A computed trade: the price per contract, the amount transferred, and the vault after it."""

    contract: Contract
    quantity: int
    quote: Quote
    price: int
    amount: int
    vault: Vault


@noun
class WorldStep:
    """The result of a call: the world after it and the receipts, or the unchanged world and the abort."""

    world: PredictWorld
    receipts: tuple[Receipt, ...] = ()
    abort: Abort | None = None


def fair_value(generation: Generation, oracle: Oracle, contract: Contract, up_at: Pricer | None = None) -> int | Abort:
    """Return the probability that a contract wins, in billionths. `up_at` is the market's pricer, if already built."""
    if oracle.settlement is not None:
        return FLOAT if contract.wins(oracle.settlement) else 0
    if up_at is None:
        if oracle.svi is None:
            return aborts.ZERO_VARIANCE
        up_at = pricer(generation, oracle.forward, oracle.svi)
    above = FLOAT if contract.lower is None else up_at(contract.lower)
    beyond = 0 if contract.higher is None else up_at(contract.higher)
    if isinstance(above, str):
        return aborts.OF_FLAW[above]
    if isinstance(beyond, str):
        return aborts.OF_FLAW[beyond]
    return min(FLOAT, max(0, above - beyond))


def preview(world: PredictWorld, contract: Contract, now: Instant) -> Quote | Abort:
    """Return the quote before any trade, like a read-only call of the protocol."""
    oracle = _tradable(world, contract, now, settled=True)
    return oracle if isinstance(oracle, Abort) else _quoted(world, oracle, contract, world.vault)


def weigh_mint(
    world: PredictWorld, account_id: str, contract: Contract, quantity: int, now: Instant
) -> ContractTrade | Abort:
    """Compute the cost of buying a quantity, or the reason why it cannot be bought."""
    return admit(world, account_id, quote_mint(world, contract, quantity, now))


def weigh_spend(
    world: PredictWorld, account_id: str, contract: Contract, spend: int, now: Instant
) -> ContractTrade | Abort:
    """Compute the mint that a spend buys, at its price after the trade; it never costs more than the spend."""
    return admit(world, account_id, quote_spend(world, contract, spend, now))


def quote_spend(world: PredictWorld, contract: Contract, spend: int, now: Instant) -> ContractTrade | Abort:
    """Compute the mint that a spend buys, before bounds, balance and exposure are checked.

    A larger size is never cheaper, so the price for the size that the current ask would give is an upper bound for any
    smaller size.
    """
    current = preview(world, contract, now)
    if isinstance(current, Abort):
        return current
    trade = quote_mint(world, contract, quantity_for(spend, current.ask), now)
    if isinstance(trade, Abort) or trade.amount <= spend:
        return trade
    return quote_mint(world, contract, quantity_for(spend, trade.price), now)


def quote_mint(world: PredictWorld, contract: Contract, quantity: int, now: Instant) -> ContractTrade | Abort:
    """Return the price of a quantity: it is added to the vault's book first, then quoted."""
    oracle = _tradable(world, contract, now, settled=False)
    if isinstance(oracle, Abort):
        return oracle
    if quantity <= 0:
        return aborts.NO_QUANTITY
    vault = _booked(world, oracle, contract, quantity)
    if isinstance(vault, Abort):
        return vault
    quote = _quoted(world, oracle, contract, vault)
    if isinstance(quote, Abort):
        return quote
    cost = amount(quote.ask, quantity)
    return ContractTrade(contract, quantity, quote, quote.ask, cost, replace(vault, balance=vault.balance + cost))


def admit(world: PredictWorld, account_id: str, trade: ContractTrade | Abort) -> ContractTrade | Abort:
    """Apply the final checks of a priced mint: ask bounds, the buyer's balance, the vault's exposure after payment."""
    if world.terms.paused or world.terms.halted:
        return aborts.PAUSED
    if isinstance(trade, Abort):
        return trade
    override = world.oracles[trade.contract.market_id].ask_bounds
    lowest, highest = ask_bounds(world.terms, override)
    if not lowest <= trade.price <= highest:
        return aborts.ASK_OUT_OF_BOUNDS
    if trade.amount > world.accounts.get(account_id, NO_ACCOUNT).cash:
        return aborts.TOO_LITTLE_CASH
    if trade.vault.total_mtm * FLOAT > world.terms.max_exposure * trade.vault.balance:
        return aborts.EXPOSURE
    return trade


def weigh_redeem(
    world: PredictWorld, account_id: str, contract: Contract, quantity: int, now: Instant
) -> ContractTrade | Abort:
    """Compute the proceeds of selling contracts back: they are removed from the book first, then the rest is quoted."""
    oracle = _tradable(world, contract, now, settled=True)
    if isinstance(oracle, Abort):
        return oracle
    if quantity <= 0:
        return aborts.NO_QUANTITY
    position = world.accounts.get(account_id, NO_ACCOUNT).positions.get(contract.key)
    if position is None or position.quantity < quantity:
        return aborts.NO_RANGE if contract.side == "RANGE" else aborts.NO_POSITION
    vault = _booked(world, oracle, contract, -quantity)
    if isinstance(vault, Abort):
        return vault
    quote = _quoted(world, oracle, contract, vault)
    if isinstance(quote, Abort):
        return quote
    payout = amount(quote.bid, quantity)
    if payout > vault.balance:
        return aborts.VAULT_SHORT
    return ContractTrade(contract, quantity, quote, quote.bid, payout, replace(vault, balance=vault.balance - payout))


def carry_out(
    world: PredictWorld, account_id: str, action: Literal["mint", "redeem"], trade: ContractTrade, at: Instant
) -> WorldStep:
    """Execute a trade that was computed on this same world and instant, without computing it again."""
    execute = _minted if action == "mint" else _redeemed
    return execute(world, account_id, trade, trade.contract, at)


def mint(world: PredictWorld, account_id: str, contract: Contract, quantity: int, at: Instant) -> WorldStep:
    """Buy contracts from the vault."""
    return _minted(world, account_id, weigh_mint(world, account_id, contract, quantity, at), contract, at)


def mint_spend(world: PredictWorld, account_id: str, contract: Contract, spend: int, at: Instant) -> WorldStep:
    """Buy as many contracts as a spend pays for."""
    return _minted(world, account_id, weigh_spend(world, account_id, contract, spend, at), contract, at)


def redeem(world: PredictWorld, account_id: str, contract: Contract, quantity: int, at: Instant) -> WorldStep:
    """Sell contracts back, or collect their payout after settlement."""
    return _redeemed(world, account_id, weigh_redeem(world, account_id, contract, quantity, at), contract, at)


def redeem_settled(world: PredictWorld, account_id: str, contract: Contract, at: Instant) -> WorldStep:
    """Pay out a whole settled position into its account. Any caller may request it."""
    oracle = world.oracles.get(contract.market_id)
    if oracle is None:
        return rejected(world, aborts.UNKNOWN, at, contract.market_id)
    if oracle.settlement is None:
        return rejected(world, aborts.NOT_SETTLED, at, contract.market_id)
    position = world.accounts.get(account_id, NO_ACCOUNT).positions.get(contract.key)
    return redeem(world, account_id, contract, 0 if position is None else position.quantity, at)


def rejected(world: PredictWorld, abort: Abort, at: Instant, market_id: str) -> WorldStep:
    """Return the unchanged world with a `rejected` receipt that gives the reason."""
    facts: Facts = {"abort": abort.name, "reason": abort.reason}
    return WorldStep(world, (Receipt("rejected", at, market_id, "", facts),), abort)


def _tradable(world: PredictWorld, contract: Contract, now: Instant, settled: bool) -> Oracle | Abort:
    """Return the contract's oracle if it may be quoted now; `settled` allows a settled one."""
    oracle = oracle_of(world, contract.market_id)
    if oracle is None:
        return aborts.UNKNOWN
    low, high = contract.lower, contract.higher
    if (low is None and high is None) or (low is not None and high is not None and low >= high):
        return aborts.OFF_GRID
    holds = oracle.grid.holds
    if not ((low is None or holds(low)) and (high is None or holds(high))):
        return aborts.OFF_GRID
    phase = status(oracle, now)
    if phase == "settled":
        return oracle if settled else aborts.SETTLED
    if phase == "pending":
        return aborts.EXPIRED
    if phase == "inactive":
        return aborts.INACTIVE
    if oracle.priced_at is None or not oracle.priced_at <= now <= oracle.priced_at + world.terms.freshness_ms:
        return aborts.STALE
    return oracle


def _quoted(world: PredictWorld, oracle: Oracle, contract: Contract, vault: Vault) -> Quote | Abort:
    """Return the quote of a contract for a given state of the vault."""
    if oracle.settlement is not None:
        return settled_quote(contract.wins(oracle.settlement))
    fair = fair_value(world.terms.generation, oracle, contract)
    if isinstance(fair, Abort):
        return fair
    if not 0 < fair < FLOAT:
        return aborts.PRICE_AT_EDGE
    return make_quote(world.terms, fair, utilisation(vault.total_mtm, vault.balance))


def _booked(world: PredictWorld, oracle: Oracle, contract: Contract, quantity: int) -> Vault | Abort:
    """Return the vault with contracts added (or removed) and the liability of their oracle recomputed."""
    vault = world.vault
    old = vault.books.get(oracle.id, NO_BOOK)
    lowest, highest = min(contract.strikes), max(contract.strikes)
    if old.highest:
        lowest, highest = min(lowest, old.lowest), max(highest, old.highest)
    levels, ranges = old.levels, old.ranges
    if contract.lower is not None:
        levels = changed(levels, contract.lower, quantity, 0)
    if contract.higher is not None:
        levels = changed(levels, contract.higher, 0, quantity)
        ranges += quantity if contract.lower is not None else 0
    book = refreshed(world.terms, oracle, StrikeBook(levels, ranges, lowest, highest))
    if isinstance(book, Abort):
        return book
    return Vault(
        vault.balance,
        {**vault.books, oracle.id: book},
        vault.total_mtm - old.mtm + book.mtm,
        vault.total_max_payout - old.max_payout + book.max_payout,
    )


def _minted(
    world: PredictWorld, account_id: str, trade: ContractTrade | Abort, contract: Contract, at: Instant
) -> WorldStep:
    if isinstance(trade, Abort):
        return rejected(world, trade, at, contract.market_id)
    account = world.accounts.get(account_id, NO_ACCOUNT)
    key, earlier = contract.key, account.positions.get(contract.key)
    position = (
        ContractPosition(contract, world.oracles[contract.market_id].expiry_at, trade.quantity, trade.amount, at)
        if earlier is None
        else replace(earlier, quantity=earlier.quantity + trade.quantity, cost=earlier.cost + trade.amount)
    )
    after = Account(account.cash - trade.amount, {**account.positions, key: position})
    facts = _facts(account_id, "mint", trade)
    facts["cost"] = contracts(trade.amount)
    receipt = Receipt("filled", at, contract.market_id, f"t{world.next_trade}", facts)
    return WorldStep(_traded(world, account_id, after, trade.vault), (receipt,))


def _redeemed(
    world: PredictWorld, account_id: str, trade: ContractTrade | Abort, contract: Contract, at: Instant
) -> WorldStep:
    if isinstance(trade, Abort):
        return rejected(world, trade, at, contract.market_id)
    account = world.accounts[account_id]
    positions = dict(account.positions)
    position = positions.pop(contract.key)
    basis = position.cost * trade.quantity // position.quantity
    if trade.quantity < position.quantity:
        positions[contract.key] = replace(
            position, quantity=position.quantity - trade.quantity, cost=position.cost - basis
        )
    settled = world.oracles[contract.market_id].settlement is not None
    facts = _facts(account_id, "redeem", trade)
    facts["payout"], facts["basis"] = contracts(trade.amount), contracts(basis)
    receipt = Receipt("settled" if settled else "filled", at, contract.market_id, f"t{world.next_trade}", facts)
    return WorldStep(
        _traded(world, account_id, Account(account.cash + trade.amount, positions), trade.vault), (receipt,)
    )


def _traded(world: PredictWorld, account_id: str, account: Account, vault: Vault) -> PredictWorld:
    accounts = {**world.accounts, account_id: account}
    return PredictWorld(vault, accounts, world.oracles, world.terms, world.next_trade + 1, world.feeds)


def _facts(account_id: str, action: str, trade: ContractTrade) -> Facts:
    contract = trade.contract
    facts: Facts = {"account": account_id, "action": action, "side": contract.side}
    names = ("lower", "higher") if contract.side == "RANGE" else ("strike",)
    for name, strike in zip(names, contract.strikes, strict=True):
        facts[name] = usd(strike)
    facts["quantity"], facts["price"] = contracts(trade.quantity), usd(trade.price)
    facts["fair"] = usd(trade.quote.fair)
    return facts
