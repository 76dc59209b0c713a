"""Price updates applied to the account, and the waiting orders they make executable.

A waiting order is judged again by every rule, by the same guard as at its tick, on the world as it is when its price
arrives; it is then executed on the paper venue or refused. The simulator and the live driver both bring updates through
`bring`, so a waiting order has one way to be executed. Orders that need not wait are executed by `engine.execute.act`.
"""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from pitboss.core.instant import Instant
from pitboss.core.money import exact
from pitboss.core.receipt import Receipt
from pitboss.engine.execute import Placed, outcome
from pitboss.engine.guard import Judgement, guard
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.desk import (
    Desk,
    Fill,
    WaitingOrder,
    after_trade,
    is_due,
    order_facts,
    reckoned,
    with_fills,
    with_own_fills,
)
from pitboss.venues.predict.orders import perform
from pitboss.venues.predict.rule_book import PredictRuleBook
from pitboss.venues.predict.state import ACCOUNT, contracts, usd
from pitboss.venues.predict.trade import Facts, WorldStep


@exact
def bring(
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
            desk, answers = _execute(desk, waiting, caps, at, account_id)
            receipts += answers
    return desk, tuple(receipts)


def _execute(
    desk: Desk, waiting: WaitingOrder, caps: PredictCaps, at: Instant, account_id: str
) -> tuple[Desk, tuple[Receipt, ...]]:
    """Judge a waiting order on the present world, and execute or refuse it."""
    order = waiting.order
    # The cap of the order's own tick was reserved when it was accepted, so here only its own spend limits it.
    spent = replace(
        reckoned(desk, at, waiting.id),
        tick=0,
        tick_at=-1,
        shown={} if waiting.shown is None else {order.contract.key: waiting.shown},
    )
    desk = replace(desk, waiting=tuple(other for other in desk.waiting if other.id != waiting.id))
    book = PredictRuleBook(caps, desk.world, spent, at, waiting.tick_at, account_id)
    judgement = guard(book, {}, _intent(waiting), waiting.tick_at)
    placed = _place(desk, waiting, judgement, at, account_id)
    verdict = outcome(judgement, placed)
    if placed is not None and not placed.refusal:
        return placed.world, placed.receipts
    code, detail = verdict.code or book.venue_code, verdict.detail
    facts: Facts = {**order_facts(order), "code": code, "reason": detail}
    zero, market_id = Decimal(0), order.contract.market_id
    strike = usd(order.contract.strikes[0])
    refusal = Fill("refused", at, market_id, order.contract.side, strike, zero, zero, zero, waiting.id, code, detail)
    return with_fills(desk, (refusal,)), (Receipt("rejected", at, market_id, waiting.id, facts),)


def _place(desk: Desk, waiting: WaitingOrder, judgement: Judgement, at: Instant, account_id: str) -> Placed | None:
    """Return the paper venue's answer to an allowed order; None if the rules refuse it."""
    if judgement.order is None:
        return None
    step = perform(desk.world, judgement.order.order, at, account_id, judgement.order.trade)
    if step.abort is not None:
        return Placed(desk, refusal=f"{step.abort.words} ({step.abort.name})")
    desk = after_trade(desk, waiting.order, step, waiting.tick_at, at)
    receipts = tuple(replace(receipt, facts={**receipt.facts, "order": waiting.id}) for receipt in step.receipts)
    return Placed(with_own_fills(desk, receipts, account_id), receipts, waiting.id)


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
