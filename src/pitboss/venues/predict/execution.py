"""Price updates applied to the account, and the waiting orders they make executable.

A waiting order is judged again by every rule, by the same guard as at its tick, on the world as it is when its price
arrives; it is then executed on the paper venue or refused. The simulator and the live driver both apply updates through
`apply_update`. Between ticks there is no event loop to await a broker in, so the order goes to the paper venue directly;
what its answer means is decided where `engine.execute.act` decides it, in `engine.execute.apply_answer`.
"""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from pitboss.core.instant import Instant
from pitboss.core.money import exact
from pitboss.core.receipt import Receipt
from pitboss.engine.execute import apply_answer
from pitboss.engine.guard import guard
from pitboss.venues.predict.broker import placed_of
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.desk import (
    Desk,
    Fill,
    WaitingOrder,
    execute,
    is_due,
    order_facts,
    spend_with_reserves,
    with_fills,
    with_own_fills,
)
from pitboss.venues.predict.rule_book import PredictRuleBook
from pitboss.venues.predict.state import ACCOUNT, contracts, usd
from pitboss.venues.predict.trade import Facts, WorldStep


@exact
def apply_update(
    desk: Desk, update: WorldStep, caps: PredictCaps, at: Instant, account_id: str = ACCOUNT
) -> tuple[Desk, tuple[Receipt, ...]]:
    """Apply one update of the world to the account; return the account and the receipts of everything that followed."""
    desk = replace(desk, world=update.world)
    if update.receipts:
        desk = with_own_fills(desk, update.receipts, account_id)
    if not desk.waiting:
        return desk, update.receipts
    receipts = list(update.receipts)
    for waiting in desk.waiting:
        is_late = waiting.order.action == "mint" and at - waiting.tick_at > caps.max_price_age_ms
        if is_late or is_due(desk.world, waiting.order, waiting.tick_at):
            desk, own_receipts = _execute_waiting(desk, waiting, caps, at, account_id)
            receipts += own_receipts
    return desk, tuple(receipts)


def _execute_waiting(
    desk: Desk, waiting: WaitingOrder, caps: PredictCaps, at: Instant, account_id: str
) -> tuple[Desk, tuple[Receipt, ...]]:
    """Judge a waiting order on the present world, and execute or refuse it."""
    order = waiting.order
    # The cap of the order's own tick was reserved when it was accepted, so here only its own spend limits it.
    spent = replace(
        spend_with_reserves(desk, at, waiting.id),
        tick=0,
        tick_at=-1,
        shown={} if waiting.shown is None else {order.contract.key: waiting.shown},
    )
    desk = replace(
        desk, waiting=tuple(order_waiting for order_waiting in desk.waiting if order_waiting.id != waiting.id)
    )
    book = PredictRuleBook(caps, desk.world, spent, at, waiting.tick_at, account_id)
    judgement = guard(book, {}, _intent(waiting), waiting.tick_at)
    placed = None
    if judgement.order is not None:
        placed = placed_of(execute(desk, judgement.order, at, account_id, waiting.id))
    desk, verdict, receipts = apply_answer(desk, judgement, placed)
    if verdict.outcome != "refused":
        return desk, receipts
    code, detail = verdict.code or book.venue_code, verdict.detail
    facts: Facts = {**order_facts(order), "code": code, "reason": detail}
    zero, market_id = Decimal(0), order.contract.market_id
    strike = usd(order.contract.strikes[0])
    refusal = Fill("refused", at, market_id, order.contract.side, strike, zero, zero, zero, waiting.id, code, detail)
    return with_fills(desk, (refusal,)), (Receipt("rejected", at, market_id, waiting.id, facts),)


def _intent(waiting: WaitingOrder) -> dict[str, Any]:
    """Return the decision as accepted: with its market and its reserved spend."""
    order = waiting.order
    intent: dict[str, Any] = {
        "action": order.action,
        "market_id": order.contract.market_id,
        "side": order.contract.side,
        "strike": usd(order.contract.strikes[0]),
        "confidence": waiting.confidence,
        "reasoning": "",
    }
    return intent if order.action == "redeem" else {**intent, "spend": contracts(order.spend)}
