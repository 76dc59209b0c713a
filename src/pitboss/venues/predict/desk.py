"""The account state of one agent on this venue: the world, what it has spent, waiting orders, recent fills.

A decision made at T is executed at the first price update at or after T. Where the market's newest update is that of T
itself, `submit` executes it at once; otherwise it becomes a waiting order, which `execution.bring` judges again and
executes when the update arrives. Nothing here knows an update before it is applied.

The spend of a waiting order counts as spent, so waiting orders cannot pass a budget together.
"""

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
from pitboss.venues.predict.trade import ContractTrade, Facts, WorldStep

MOST_WAITING = 16
MOST_DONE = 40
"""Number of fills, payouts and late refusals kept for the prompt and tools."""

MOST_SHOWN = 600
"""Maximum number of shown asks kept beyond their tick: about thirty per market of the schedule."""

VENUE = "B15_VENUE"


@noun
class WaitingOrder:
    """An accepted order that waits for its price update. It is executed for at most the `spend` of its order."""

    id: str
    order: ContractOrder
    tick_at: Instant
    confidence: Decimal | None = None
    shown: int | None = None
    """The ask last shown to the model for this contract when it decided."""


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
    """An order as the engine passes it to a broker. `trade` is the trade computed on the world `judged`."""

    order: ContractOrder
    tick_at: Instant
    confidence: Decimal | None = None
    shown: int | None = None
    trade: ContractTrade | None = None
    judged: PredictWorld | None = None


@noun
class DeskResult:
    """The result of a request: the desk after it, or the reason for its refusal."""

    desk: Desk
    receipts: tuple[Receipt, ...] = ()
    order_id: str | None = None
    refusal: str = ""


def reckoned(desk: Desk, at: Instant, without: str = "") -> Spent:
    """Return the spend that counts at an instant: executed mints, and the reserved spend of waiting mints.

    The waiting order `without` is excluded.
    """
    promised = [ticket for ticket in desk.waiting if ticket.order.action == "mint" and ticket.id != without]
    spent = desk.spent
    if not promised:
        return spent
    reserved = sum(ticket.order.spend for ticket in promised)
    now = sum(ticket.order.spend for ticket in promised if ticket.tick_at == at)
    return Spent(
        spent.today_at(at) + reserved,
        day_of(at),
        spent.total + reserved,
        spent.tick_spend(at) + now,
        at,
        spent.shown,
    )


def told(desk: Desk, asks: Mapping[str, int]) -> Desk:
    """Return the desk with the asks shown to the model at this tick.

    Asks of markets that no longer exist are dropped. If more than `MOST_SHOWN` remain, all older asks are dropped: the
    choice must not depend on an order that storage does not preserve.
    """
    if not asks:
        return desk
    known = desk.world.oracles
    kept = {key: ask for key, ask in desk.spent.shown.items() if _market_of(key) in known}
    shown = {**kept, **asks}
    return replace(desk, spent=replace(desk.spent, shown=shown if len(shown) <= MOST_SHOWN else dict(asks)))


@lru_cache(maxsize=4_096)
def _market_of(key: str) -> str:
    """Return the market id within the key of a shown ask. Cached: the same few hundred keys recur at every tick."""
    return key.rsplit("|", 2)[0]


def submit(desk: Desk, request: DeskOrder, at: Instant, account_id: str = ACCOUNT) -> DeskResult:
    """Execute an order if its price update has arrived; otherwise queue it until that update."""
    order = request.order
    if is_due(desk.world, order, request.tick_at):
        weighed = request.trade if request.judged is desk.world else None
        step = perform(desk.world, order, at, account_id, weighed)
        if step.abort is not None:
            return DeskResult(desk, refusal=f"{step.abort.words} ({step.abort.name})")
        after = after_trade(desk, order, step, request.tick_at, at)
        return DeskResult(with_own_fills(after, step.receipts, account_id), step.receipts, step.receipts[0].order_id)
    if len(desk.waiting) >= MOST_WAITING:
        return DeskResult(desk, refusal=f"{MOST_WAITING} orders wait for a price already")
    ticket = WaitingOrder(f"o{desk.next_order}", order, request.tick_at, request.confidence, request.shown)
    facts = order_facts(order)
    if request.trade is not None:
        facts["fair"] = usd(request.trade.quote.fair)
    receipt = Receipt("accepted", at, order.contract.market_id, ticket.id, facts)
    after = replace(desk, waiting=(*desk.waiting, ticket), next_order=desk.next_order + 1)
    return DeskResult(after, (receipt,), ticket.id)


def is_due(world: PredictWorld, order: ContractOrder, tick_at: Instant) -> bool:
    """Whether the world includes the first update at or after the decision. A settled market gets no further updates."""
    market = oracle_of(world, order.contract.market_id)
    if market is None or market.settlement is not None:
        return True
    return market.priced_at is not None and market.priced_at >= tick_at


def order_facts(order: ContractOrder) -> Facts:
    facts: Facts = {
        "action": order.action,
        "side": order.contract.side,
        "strike": usd(order.contract.strikes[0]),
        "quantity": contracts(order.quantity),
        "price": usd(order.price),
    }
    return facts if order.action == "redeem" else {**facts, "spend": contracts(order.spend)}


def after_trade(desk: Desk, order: ContractOrder, step: WorldStep, tick_at: Instant, at: Instant) -> Desk:
    """Return the desk after a trade, with the cost of a mint counted.

    An older tick never replaces a newer one in `spent`.
    """
    if order.action == "redeem":
        return replace(desk, world=step.world)
    cost = int(Decimal(step.receipts[0].facts["cost"]).scaleb(6))
    spent = desk.spent.after(cost, tick_at, at)
    if tick_at < desk.spent.tick_at:
        spent = replace(spent, tick=desk.spent.tick, tick_at=desk.spent.tick_at)
    return replace(desk, world=step.world, spent=spent)


def with_own_fills(desk: Desk, receipts: Iterable[Receipt], account_id: str) -> Desk:
    """Return the desk with the account's own trades and payouts from these receipts added to its fills."""
    found: list[Fill] = []
    for receipt in receipts:
        facts = receipt.facts
        if facts.get("account") != account_id or receipt.kind not in ("filled", "settled"):
            continue
        action = "payout" if receipt.kind == "settled" else "mint" if facts["action"] == "mint" else "redeem"
        found.append(
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
    return with_fills(desk, found) if found else desk


def with_fills(desk: Desk, fills: Iterable[Fill]) -> Desk:
    return replace(desk, done=(*desk.done, *fills)[-MOST_DONE:])


def summary(desk: Desk, account_id: str = ACCOUNT) -> dict[str, Any]:
    """Return the account as records store it: amounts as exact text; equity is cash plus every position at its bid."""
    account = desk.world.accounts.get(account_id, NO_ACCOUNT)
    positions = account.positions
    return {
        "cash": text(contracts(account.cash)),
        "equity": text(contracts(equity(desk.world, 0, account_id))),
        "spent": text(contracts(desk.spent.total)),
        "positions": [dict(_plain(positions[key])) for key in sorted(positions)],
        "waiting": [ticket.id for ticket in desk.waiting],
    }


@lru_cache(maxsize=1_024)
def _plain(held: ContractPosition) -> Mapping[str, Any]:
    """Return a position as records store it. Cached: two of three positions are those of the previous tick."""
    return {
        "market_id": held.contract.market_id,
        "side": held.contract.side,
        "strikes": [text(usd(strike)) for strike in held.contract.strikes],
        "quantity": text(contracts(held.quantity)),
        "cost": text(contracts(held.cost)),
    }
