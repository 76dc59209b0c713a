"""Redemptions that pitboss did not send: contracts sold, or payouts collected, with another program or by another account.

The indexer reports them with a delay. A position that has changed since the state that the indexer has read is therefore
left as it is until the indexer has caught up. Pure; the requests are made by `sui_source`.
"""

from collections.abc import Mapping, Sequence

from pitboss.core.instant import Instant
from pitboss.core.receipt import Receipt
from pitboss.venues.predict.data.wire import IndexedFill, ManagerPosition
from pitboss.venues.predict.desk import Desk
from pitboss.venues.predict.state import NO_ACCOUNT, Contract, ContractPosition
from pitboss.venues.predict.sui.desk_changes import DeskChange, with_trade
from pitboss.venues.predict.sui.order import ChainTrade, SuiOrder


def redeemed_quantities(
    desk: Desk, indexed: Sequence[ManagerPosition], indexed_until: Instant, account_id: str
) -> dict[str, int]:
    """Return by contract how much less of a position the indexer reports than the desk has.

    `indexed_until` is the time up to which the indexer has read the chain.
    """
    positions = desk.world.accounts.get(account_id, NO_ACCOUNT).positions
    missing: dict[str, int] = {}
    for row in indexed:
        position = positions.get(row.contract.key)
        if position is None or row.quantity >= position.quantity:
            continue
        if not _has_changed_since(desk, position, indexed_until):
            missing[row.contract.key] = position.quantity - row.quantity
    return missing


def with_redemptions(
    desk: Desk, missing: Mapping[str, int], redemptions: Sequence[IndexedFill], at: Instant, account_id: str
) -> DeskChange:
    """Return the desk without the missing contracts, each at the amount for which it was sold or paid out.

    `redemptions` are those of the manager, newest first. A position which they do not explain yet stays as it is.
    """
    receipts: list[Receipt] = []
    for key, quantity in sorted(missing.items()):
        position = desk.world.accounts.get(account_id, NO_ACCOUNT).positions[key]
        for row, trade in _trades(redemptions, position.contract, quantity):
            order = _order(position, trade)
            desk, happened = with_trade(desk, row.digest, at, order, trade, at, account_id, row.tx_digest)
            receipts += happened
    return desk, tuple(receipts)


def _trades(
    redemptions: Sequence[IndexedFill], contract: Contract, quantity: int
) -> list[tuple[IndexedFill, ChainTrade]]:
    """Return the newest redemptions of this quantity, oldest first; none if they do not add up to it."""
    trades: list[tuple[IndexedFill, ChainTrade]] = []
    for row in redemptions:
        part = min(row.quantity, quantity)
        if row.contract == contract and part > 0:
            trades.append((row, ChainTrade(part, row.amount * part // row.quantity, row.price, row.is_settled)))
            quantity -= part
    return [] if quantity else trades[::-1]


def _order(position: ContractPosition, trade: ChainTrade) -> SuiOrder:
    contract = position.contract
    return SuiOrder(
        "redeem",
        contract.market_id,
        contract.side,
        contract.strikes[0],
        position.expiry_at,
        trade.quantity,
        trade.price,
    )


def _has_changed_since(desk: Desk, position: ContractPosition, at: Instant) -> bool:
    """Whether contracts of a position were bought at or after an instant."""
    contract = position.contract
    return position.opened_at >= at or any(
        fill.at >= at and fill.kind == "mint" and (fill.market_id, fill.side) == (contract.market_id, contract.side)
        for fill in desk.done
    )
