"""The desk after on-chain results: amounts paid and received are those of the chain, not the local estimates.

With the Sui broker an order waits on the desk only while its result is unknown; its spend stays reserved until the
chain reports it. New prices are therefore applied with `apply_price` and not with `execution.apply_update`, which would execute
waiting orders on paper.
"""

from dataclasses import replace
from decimal import Decimal

from pitboss.core.instant import Instant
from pitboss.core.money import exact
from pitboss.core.receipt import Receipt
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.desk import VENUE, Desk, Fill, WaitingOrder, order_facts, with_fills
from pitboss.venues.predict.execution import apply_update
from pitboss.venues.predict.state import NO_ACCOUNT, Account, ContractPosition, PredictWorld, Vault, contracts, usd
from pitboss.venues.predict.sui.order import ChainTrade, SuiOrder
from pitboss.venues.predict.trade import ContractTrade, Facts, WorldStep, quote_mint, weigh_redeem

DeskChange = tuple[Desk, tuple[Receipt, ...]]


def apply_price(desk: Desk, update: WorldStep, caps: PredictCaps, at: Instant, account_id: str) -> DeskChange:
    """Apply an update of the world to the desk. Orders with an unknown result keep waiting: no price resolves them."""
    waiting = desk.waiting
    if not waiting:
        return apply_update(desk, update, caps, at, account_id)
    after, receipts = apply_update(replace(desk, waiting=()), update, caps, at, account_id)
    return replace(after, waiting=waiting), receipts


def has_order(desk: Desk, order_id: str) -> bool:
    """Whether the desk already has this order, finished or waiting."""
    return any(fill.order_id == order_id for fill in desk.done) or any(
        waiting.id == order_id for waiting in desk.waiting
    )


def with_pending_order(desk: Desk, order_id: str, tick_at: Instant, order: SuiOrder, at: Instant) -> DeskChange:
    """Return the desk with an order whose result is not known yet."""
    waiting = WaitingOrder(order_id, order.contract_order, tick_at, order.confidence, order.shown)
    receipt = Receipt("accepted", at, order.market_id, order_id, order_facts(order.contract_order))
    return replace(desk, waiting=(*desk.waiting, waiting)), (receipt,)


def with_refused_order(desk: Desk, order_id: str, order: SuiOrder, reason: str, at: Instant) -> DeskChange:
    """Return the desk after a waiting order turned out to have had no effect."""
    none = Decimal(0)
    refusal = Fill(
        "refused", at, order.market_id, order.side, usd(order.strike), none, none, none, order_id, VENUE, reason
    )
    facts: Facts = {
        "action": order.action,
        "side": order.side,
        "strike": usd(order.strike),
        "code": VENUE,
        "reason": reason,
    }
    return with_fills(_without_waiting(desk, order_id), (refusal,)), (
        Receipt("rejected", at, order.market_id, order_id, facts),
    )


@exact
def with_trade(
    desk: Desk,
    order_id: str,
    tick_at: Instant,
    order: SuiOrder,
    trade: ChainTrade,
    at: Instant,
    account_id: str,
    digest: str,
) -> DeskChange:
    """Return the desk after a trade executed on the chain."""
    desk = _without_waiting(desk, order_id)
    minted = order.action == "mint"
    world, basis, fair = (_bought if minted else _sold)(desk.world, order, trade, at, account_id)
    facts: Facts = {"account": account_id, "action": order.action, "side": order.side, "strike": usd(order.strike)}
    facts["quantity"], facts["price"] = contracts(trade.quantity), usd(trade.price)
    facts["cost" if minted else "payout"] = contracts(trade.amount)
    if not minted:
        facts["basis"] = contracts(basis)
    if fair is not None:
        facts["fair"] = usd(fair)
    facts["digest"] = digest
    receipt = Receipt("settled" if trade.settled else "filled", at, order.market_id, order_id, facts)
    fill = Fill(
        "mint" if minted else "payout" if trade.settled else "redeem",
        at,
        order.market_id,
        order.side,
        usd(order.strike),
        contracts(trade.quantity),
        usd(trade.price),
        contracts(trade.amount),
        order_id,
    )
    spent = desk.spent.after(trade.amount, tick_at, at) if minted else desk.spent
    return with_fills(replace(desk, world=world, spent=spent), (fill,)), (receipt,)


def _without_waiting(desk: Desk, order_id: str) -> Desk:
    return replace(desk, waiting=tuple(waiting for waiting in desk.waiting if waiting.id != order_id))


def _bought(
    world: PredictWorld, order: SuiOrder, trade: ChainTrade, at: Instant, account_id: str
) -> tuple[PredictWorld, int, int | None]:
    contract = order.contract_order.contract
    account = world.accounts.get(account_id, NO_ACCOUNT)
    earlier = account.positions.get(contract.key)
    position = (
        ContractPosition(contract, order.expiry_at, trade.quantity, trade.amount, at)
        if earlier is None
        else replace(earlier, quantity=earlier.quantity + trade.quantity, cost=earlier.cost + trade.amount)
    )
    booked = quote_mint(world, contract, trade.quantity, at)
    after = Account(account.cash - trade.amount, {**account.positions, contract.key: position})
    return _with_account(world, account_id, after, _vault(world, booked, trade.amount)), 0, _fair(booked)


def _sold(
    world: PredictWorld, order: SuiOrder, trade: ChainTrade, at: Instant, account_id: str
) -> tuple[PredictWorld, int, int | None]:
    contract = order.contract_order.contract
    account = world.accounts.get(account_id, NO_ACCOUNT)
    booked = weigh_redeem(world, account_id, contract, trade.quantity, at)
    positions, basis = dict(account.positions), 0
    position = positions.pop(contract.key, None)
    if position is not None:
        basis = position.cost * min(trade.quantity, position.quantity) // position.quantity
        if trade.quantity < position.quantity:
            positions[contract.key] = replace(
                position, quantity=position.quantity - trade.quantity, cost=position.cost - basis
            )
    after = Account(account.cash + trade.amount, positions)
    return _with_account(world, account_id, after, _vault(world, booked, -trade.amount)), basis, _fair(booked)


def _fair(booked: object) -> int | None:
    """Return the local fair value of the contract; the chain does not report it."""
    return booked.quote.fair if isinstance(booked, ContractTrade) else None


def _vault(world: PredictWorld, booked: object, payment: int) -> Vault:
    """Return the vault with the payment added.

    If the local market data cannot price the trade, the book stays unchanged: the chain's own vault is read again
    anyway, and the requirement here is only that the total amount of money is preserved.
    """
    vault = booked.vault if isinstance(booked, ContractTrade) else world.vault
    return replace(vault, balance=world.vault.balance + payment)


def _with_account(world: PredictWorld, account_id: str, account: Account, vault: Vault) -> PredictWorld:
    accounts = {**world.accounts, account_id: account}
    return replace(world, vault=vault, accounts=accounts, next_trade=world.next_trade + 1)
