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
from pitboss.venues.predict.sui.wish import Deal, SuiOrder
from pitboss.venues.predict.trade import ContractTrade, Facts, WorldStep, quote_mint, weigh_redeem

Happening = tuple[Desk, tuple[Receipt, ...]]


def apply_price(desk: Desk, update: WorldStep, caps: PredictCaps, at: Instant, account_id: str) -> Happening:
    """Apply an update of the world to the desk. Orders with an unknown result keep waiting: no price resolves them."""
    waiting = desk.waiting
    if not waiting:
        return apply_update(desk, update, caps, at, account_id)
    after, receipts = apply_update(replace(desk, waiting=()), update, caps, at, account_id)
    return replace(after, waiting=waiting), receipts


def known(desk: Desk, order_id: str) -> bool:
    """Whether the desk already has this order, finished or waiting."""
    return any(fill.order_id == order_id for fill in desk.done) or any(one.id == order_id for one in desk.waiting)


def doubted(desk: Desk, order_id: str, tick_at: Instant, wish: SuiOrder, at: Instant) -> Happening:
    """Return the desk with an order whose result is not known yet."""
    ticket = WaitingOrder(order_id, wish.order, tick_at, wish.confidence, wish.shown)
    receipt = Receipt("accepted", at, wish.market_id, order_id, order_facts(wish.order))
    return replace(desk, waiting=(*desk.waiting, ticket)), (receipt,)


def dropped(desk: Desk, order_id: str, wish: SuiOrder, why: str, at: Instant) -> Happening:
    """Return the desk after a waiting order turned out to have had no effect."""
    none = Decimal(0)
    fate = Fill("refused", at, wish.market_id, wish.side, usd(wish.strike), none, none, none, order_id, VENUE, why)
    facts: Facts = {"action": wish.action, "side": wish.side, "strike": usd(wish.strike), "code": VENUE, "reason": why}
    return with_fills(_free(desk, order_id), (fate,)), (Receipt("rejected", at, wish.market_id, order_id, facts),)


@exact
def traded(
    desk: Desk, order_id: str, tick_at: Instant, wish: SuiOrder, deal: Deal, at: Instant, account_id: str, digest: str
) -> Happening:
    """Return the desk after a trade executed on the chain."""
    desk = _free(desk, order_id)
    minted = wish.action == "mint"
    world, basis, fair = (_bought if minted else _sold)(desk.world, wish, deal, at, account_id)
    facts: Facts = {"account": account_id, "action": wish.action, "side": wish.side, "strike": usd(wish.strike)}
    facts["quantity"], facts["price"] = contracts(deal.quantity), usd(deal.price)
    facts["cost" if minted else "payout"] = contracts(deal.amount)
    if not minted:
        facts["basis"] = contracts(basis)
    if fair is not None:
        facts["fair"] = usd(fair)
    facts["digest"] = digest
    receipt = Receipt("settled" if deal.settled else "filled", at, wish.market_id, order_id, facts)
    fill = Fill(
        "mint" if minted else "payout" if deal.settled else "redeem",
        at,
        wish.market_id,
        wish.side,
        usd(wish.strike),
        contracts(deal.quantity),
        usd(deal.price),
        contracts(deal.amount),
        order_id,
    )
    spent = desk.spent.after(deal.amount, tick_at, at) if minted else desk.spent
    return with_fills(replace(desk, world=world, spent=spent), (fill,)), (receipt,)


def _free(desk: Desk, order_id: str) -> Desk:
    return replace(desk, waiting=tuple(ticket for ticket in desk.waiting if ticket.id != order_id))


def _bought(
    world: PredictWorld, wish: SuiOrder, deal: Deal, at: Instant, account_id: str
) -> tuple[PredictWorld, int, int | None]:
    contract = wish.order.contract
    account = world.accounts.get(account_id, NO_ACCOUNT)
    held = account.positions.get(contract.key)
    position = (
        ContractPosition(contract, wish.expiry_at, deal.quantity, deal.amount, at)
        if held is None
        else replace(held, quantity=held.quantity + deal.quantity, cost=held.cost + deal.amount)
    )
    booked = quote_mint(world, contract, deal.quantity, at)
    after = Account(account.cash - deal.amount, {**account.positions, contract.key: position})
    return _with(world, account_id, after, _vault(world, booked, deal.amount)), 0, _fair(booked)


def _sold(
    world: PredictWorld, wish: SuiOrder, deal: Deal, at: Instant, account_id: str
) -> tuple[PredictWorld, int, int | None]:
    contract = wish.order.contract
    account = world.accounts.get(account_id, NO_ACCOUNT)
    booked = weigh_redeem(world, account_id, contract, deal.quantity, at)
    positions, basis = dict(account.positions), 0
    held = positions.pop(contract.key, None)
    if held is not None:
        basis = held.cost * min(deal.quantity, held.quantity) // held.quantity
        if deal.quantity < held.quantity:
            positions[contract.key] = replace(held, quantity=held.quantity - deal.quantity, cost=held.cost - basis)
    after = Account(account.cash + deal.amount, positions)
    return _with(world, account_id, after, _vault(world, booked, -deal.amount)), basis, _fair(booked)


def _fair(booked: object) -> int | None:
    """Return the local fair value of the contract; the chain does not report it."""
    return booked.quote.fair if isinstance(booked, ContractTrade) else None


def _vault(world: PredictWorld, booked: object, paid: int) -> Vault:
    """Return the vault with the payment added.

    If the local market data cannot price the trade, the book stays unchanged: the chain's own vault is read again
    anyway, and the requirement here is only that the total amount of money is preserved.
    """
    vault = booked.vault if isinstance(booked, ContractTrade) else world.vault
    return replace(vault, balance=world.vault.balance + paid)


def _with(world: PredictWorld, account_id: str, account: Account, vault: Vault) -> PredictWorld:
    accounts = {**world.accounts, account_id: account}
    return replace(world, vault=vault, accounts=accounts, next_trade=world.next_trade + 1)
