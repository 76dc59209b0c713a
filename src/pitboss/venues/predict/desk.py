"""The account state of one agent on this venue: the world, what it has spent, waiting orders, recent fills.

A decision made at T is executed at the first price update at or after T. Where the market's newest update is that of T
itself, `submit` executes it at once; otherwise it becomes a waiting order, which `execution.apply_update` judges again
and executes when the update arrives. Nothing here depends on an update that has not been applied.

The spend of a waiting order counts as spent, so waiting orders cannot pass a budget together.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal

from pitboss.core.instant import Instant, day_of
from pitboss.core.money import text
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.venues.predict.caps import NOTHING_SPENT, Spent
from pitboss.venues.predict.orders import ContractOrder, perform
from pitboss.venues.predict.portfolio import equity
from pitboss.venues.predict.state import ACCOUNT, NO_ACCOUNT, ContractPosition, PredictWorld, contracts, oracle_of, usd
from pitboss.venues.predict.trade import ContractTrade, Facts

MAX_WAITING = 16
MAX_FILLS, MARKET_FILLS = 40, 100
"""Number of fills, payouts and late refusals kept for the prompt and tools: of all markets, and of each that exists."""

VENUE = "B15_VENUE"


@noun
class WaitingOrder:
    """An accepted order that waits for its price update. It is executed for at most the `spend` of its order."""

    id: str
    order: ContractOrder
    tick_at: Instant
    confidence: Decimal | None = None
    shown: int | None = None
    """The ask of this contract that the model was shown at this tick, if it was."""


@noun
class Fill:
    """The result of an order, in plain units. `code` and `detail` give the reason if it was refused."""

    kind: Literal["mint", "redeem", "payout", "refused"]
    at: Instant
    market_id: str
    side: str
    strike: Decimal
    quantity: Decimal
    price: Decimal
    amount: Decimal
    order_id: str
    code: str = ""
    detail: str = ""


@noun
class Desk:
    """The complete account state of an agent. Storing it and reading it back is sufficient to resume."""

    world: PredictWorld
    spent: Spent = NOTHING_SPENT
    waiting: tuple[WaitingOrder, ...] = ()
    done: tuple[Fill, ...] = ()
    next_order: int = 1


@noun
class DeskOrder:
    """An order as the engine passes it to a broker. `trade` is the trade computed on `judged_world`."""

    order: ContractOrder
    tick_at: Instant
    confidence: Decimal | None = None
    shown: int | None = None
    trade: ContractTrade | None = None
    judged_world: PredictWorld | None = None


@noun
class DeskResult:
    """The result of a request: the desk after it, or the reason for its refusal."""

    desk: Desk
    receipts: tuple[Receipt, ...] = ()
    order_id: str | None = None
    refusal: str = ""


def spend_with_reserves(desk: Desk, at: Instant, except_id: str = "") -> Spent:
    """Return the spend that counts at an instant: executed mints, and the reserved spend of waiting mints.

    The waiting order `except_id` is excluded.
    """
    mints = [waiting for waiting in desk.waiting if waiting.order.action == "mint" and waiting.id != except_id]
    spent = desk.spent
    if not mints:
        return spent
    reserved = sum(waiting.order.spend for waiting in mints)
    reserved_at_tick = sum(waiting.order.spend for waiting in mints if waiting.tick_at == at)
    return Spent(
        spent.today_at(at) + reserved,
        day_of(at),
        spent.total + reserved,
        spent.tick_spend(at) + reserved_at_tick,
        at,
        spent.shown,
    )


def submit(desk: Desk, request: DeskOrder, at: Instant, account_id: str = ACCOUNT) -> DeskResult:
    """Execute an order if its price update has arrived; otherwise queue it until that update."""
    order = request.order
    if is_due(desk.world, order, request.tick_at):
        return execute(desk, request, at, account_id)
    if len(desk.waiting) >= MAX_WAITING:
        return DeskResult(desk, refusal=f"{MAX_WAITING} orders wait for a price already")
    waiting = WaitingOrder(f"o{desk.next_order}", order, request.tick_at, request.confidence, request.shown)
    facts = order_facts(order)
    if request.trade is not None:
        facts["fair"] = usd(request.trade.quote.fair)
    receipt = Receipt("accepted", at, order.contract.market_id, waiting.id, facts)
    after = replace(desk, waiting=(*desk.waiting, waiting), next_order=desk.next_order + 1)
    return DeskResult(after, (receipt,), waiting.id)


def execute(desk: Desk, request: DeskOrder, at: Instant, account_id: str, waiting_id: str = "") -> DeskResult:
    """Execute an order on the paper venue. The receipts of an order that waited name it as `order`."""
    trade = request.trade if request.judged_world is desk.world else None
    step = perform(desk.world, request.order, at, account_id, trade)
    if step.abort is not None:
        return DeskResult(desk, refusal=f"{step.abort.reason} ({step.abort.name})")
    receipts = step.receipts
    if waiting_id:
        receipts = tuple(replace(receipt, facts={**receipt.facts, "order": waiting_id}) for receipt in receipts)
    after = replace(desk, world=step.world)
    if request.order.action == "mint":
        cost = int(Decimal(receipts[0].facts["cost"]).scaleb(6))
        after = replace(after, spent=desk.spent.after(cost, request.tick_at, at))
    return DeskResult(with_own_fills(after, receipts, account_id), receipts, waiting_id or receipts[0].order_id)


def is_due(world: PredictWorld, order: ContractOrder, tick_at: Instant) -> bool:
    """Whether the world includes the first update at or after the decision. A settled market gets no further updates."""
    market = oracle_of(world, order.contract.market_id)
    if market is None or market.settlement is not None:
        return True
    return market.priced_at is not None and market.priced_at >= tick_at


def order_facts(order: ContractOrder) -> Facts:
    """Return an order as the facts of its receipts."""
    facts: Facts = {
        "action": order.action,
        "side": order.contract.side,
        "strike": usd(order.contract.strikes[0]),
        "quantity": contracts(order.quantity),
        "price": usd(order.price),
    }
    return facts if order.action == "redeem" else {**facts, "spend": contracts(order.spend)}


def with_own_fills(desk: Desk, receipts: Iterable[Receipt], account_id: str) -> Desk:
    """Return the desk with the account's own trades and payouts from these receipts added to its fills."""
    fills: list[Fill] = []
    for receipt in receipts:
        facts = receipt.facts
        if facts.get("account") != account_id or receipt.kind not in ("filled", "settled"):
            continue
        action = "payout" if receipt.kind == "settled" else "mint" if facts["action"] == "mint" else "redeem"
        fills.append(
            Fill(
                action,
                receipt.at,
                receipt.symbol,
                str(facts["side"]),
                Decimal(facts.get("strike", facts.get("lower", 0))),
                Decimal(facts["quantity"]),
                Decimal(facts["price"]),
                Decimal(facts["cost" if action == "mint" else "payout"]),
                str(facts.get("order", receipt.order_id)),
            )
        )
    return with_fills(desk, fills) if fills else desk


def with_fills(desk: Desk, fills: Iterable[Fill]) -> Desk:
    """Return the desk with fills added: the newest `MAX_FILLS` are kept, and `MARKET_FILLS` of each market that exists."""
    done, kept, counts = (*desk.done, *fills), list[Fill](), Counter[str]()
    for place, fill in enumerate(reversed(done)):
        counts[fill.market_id] += 1
        is_listed = fill.market_id in desk.world.oracles and counts[fill.market_id] <= MARKET_FILLS
        if place < MAX_FILLS or is_listed:
            kept.append(fill)
    return replace(desk, done=tuple(reversed(kept)))


def summary(desk: Desk, account_id: str = ACCOUNT) -> dict[str, Any]:
    """Return the account as records store it: amounts as exact text; equity is cash plus every position at its bid."""
    account = desk.world.accounts.get(account_id, NO_ACCOUNT)
    positions = account.positions
    return {
        "cash": text(contracts(account.cash)),
        "equity": text(contracts(equity(desk.world, account_id))),
        "spent": text(contracts(desk.spent.total)),
        "positions": [dict(_plain(positions[key])) for key in sorted(positions)],
        "waiting": [waiting.id for waiting in desk.waiting],
    }


@lru_cache(maxsize=1_024)
def _plain(position: ContractPosition) -> Mapping[str, Any]:
    """Return a position as records store it. Cached: two of three positions are those of the previous tick."""
    return {
        "market_id": position.contract.market_id,
        "side": position.contract.side,
        "strikes": [text(usd(strike)) for strike in position.contract.strikes],
        "quantity": text(contracts(position.quantity)),
        "cost": text(contracts(position.cost)),
    }
