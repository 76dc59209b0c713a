"""What one agent on this venue carries from tick to tick: the world, what it has spent, what waits, what came of it.

Time: a decision made at T is carried out at the first update at or after T. Where the market's newest update is that of
T itself, `submit` carries it out at once; else it waits here, and `bring` (called by whoever brings the next update)
judges it again on the world as it is then. Nothing in here can know of an update before it is given.

While an order waits its spend counts as spent, so no order of patience can pass a budget.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal

from pitboss.core.instant import Instant, day_of
from pitboss.core.money import exact, text
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.venues.predict.caps import NOTHING_SPENT, PredictCaps, Spent
from pitboss.venues.predict.judge import ContractOrder, judge, perform
from pitboss.venues.predict.portfolio import equity
from pitboss.venues.predict.state import ACCOUNT, NO_ACCOUNT, ContractPosition, PredictWorld, contracts, oracle_of, usd
from pitboss.venues.predict.trade import ContractTrade, Facts, WorldStep

MOST_WAITING = 16
MOST_DONE = 40
"""So many fills, payouts and late refusals are kept to be told."""

MOST_SHOWN = 600
"""Asks that are remembered beyond their tick: some thirty for each market of the schedule."""

VENUE = "B15_VENUE"


@noun
class WaitingOrder:
    """An allowed decision on its way. `spend` of its order is a promise: it is carried out for no more than that."""

    id: str
    order: ContractOrder
    tick_at: Instant
    confidence: Decimal | None = None
    shown: int | None = None
    """The ask the model had last seen of this contract when it decided."""


@noun
class Fill:
    """Something that came of an order, in plain units; `code` and `detail` say why where nothing came of it."""

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
    """The agent's side of the venue, whole: storing it and reading it back is resume."""

    world: PredictWorld
    spent: Spent = NOTHING_SPENT
    waiting: tuple[WaitingOrder, ...] = ()
    done: tuple[Fill, ...] = ()
    next_order: int = 1


@noun
class DeskOrder:
    """An order as the engine hands it to a broker: with the trade as `judged`, the world of the judgement, would make it."""

    order: ContractOrder
    tick_at: Instant
    confidence: Decimal | None = None
    shown: int | None = None
    trade: ContractTrade | None = None
    judged: PredictWorld | None = None


@noun
class DeskResult:
    """What became of a request: the desk after it, or why it was refused."""

    desk: Desk
    receipts: tuple[Receipt, ...] = ()
    order_id: str | None = None
    refusal: str = ""


def reckoned(desk: Desk, at: Instant, without: str = "") -> Spent:
    """What counts as spent at an instant: what was paid, and what waiting orders may still pay."""
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
        spent.seen,
    )


def told(desk: Desk, asks: Mapping[str, int]) -> Desk:
    """With asks the model was shown at this tick. Those of markets that are gone are forgotten, and all older ones where
    they would be too many: which are kept must not depend on an order that storing does not keep."""
    if not asks:
        return desk
    known = desk.world.oracles
    kept = {key: ask for key, ask in desk.spent.shown.items() if _market_of(key) in known}
    shown = {**kept, **asks}
    return replace(desk, spent=replace(desk.spent, shown=shown if len(shown) <= MOST_SHOWN else dict(asks)))


@lru_cache(maxsize=4_096)
def _market_of(key: str) -> str:
    """The market of an ask that was shown. The same few hundred are looked at every tick."""
    return key.rsplit("|", 2)[0]


def submit(desk: Desk, request: DeskOrder, at: Instant, account_id: str = ACCOUNT) -> DeskResult:
    """Carry an order out if the update it must be carried out at is here; else let it wait for that update."""
    order = request.order
    if _due(desk.world, order, request.tick_at):
        weighed = request.trade if request.judged is desk.world else None
        step = perform(desk.world, order, at, account_id, weighed)
        if step.abort is not None:
            return DeskResult(desk, refusal=f"{step.abort.words} ({step.abort.name})")
        after = _paid(desk, order, step, request.tick_at, at)
        return DeskResult(_noting(after, step.receipts, account_id), step.receipts, step.receipts[0].order_id)
    if len(desk.waiting) >= MOST_WAITING:
        return DeskResult(desk, refusal=f"{MOST_WAITING} orders wait for a price already")
    ticket = WaitingOrder(f"o{desk.next_order}", order, request.tick_at, request.confidence, request.shown)
    facts = _facts(order)
    if request.trade is not None:
        facts["fair"] = usd(request.trade.quote.fair)
    receipt = Receipt("accepted", at, order.contract.market_id, ticket.id, facts)
    after = replace(desk, waiting=(*desk.waiting, ticket), next_order=desk.next_order + 1)
    return DeskResult(after, (receipt,), ticket.id)


@exact
def bring(
    desk: Desk, update: WorldStep, caps: PredictCaps, at: Instant, account_id: str = ACCOUNT
) -> tuple[Desk, tuple[Receipt, ...]]:
    """The desk after one update of its world (`world.feed`, `world.advance`, a push), and all that happened by it.

    Waiting orders whose update this is are judged again by every rule, as of now, and carried out or refused.
    """
    desk = replace(desk, world=update.world)
    if update.receipts:
        desk = _noting(desk, update.receipts, account_id)
    if not desk.waiting:
        return desk, update.receipts
    receipts = list(update.receipts)
    for ticket in desk.waiting:
        late = ticket.order.action == "mint" and at - ticket.tick_at > caps.max_price_age_ms
        if late or _due(desk.world, ticket.order, ticket.tick_at):
            desk, happened = _carried_out(desk, ticket, caps, at, account_id)
            receipts += happened
    return desk, tuple(receipts)


def _due(world: PredictWorld, order: ContractOrder, tick_at: Instant) -> bool:
    """Whether the first update at or after the decision is part of the world. After settlement none will come."""
    market = oracle_of(world, order.contract.market_id)
    if market is None or market.settlement is not None:
        return True
    return market.priced_at is not None and market.priced_at >= tick_at


def _carried_out(
    desk: Desk, ticket: WaitingOrder, caps: PredictCaps, at: Instant, account_id: str
) -> tuple[Desk, tuple[Receipt, ...]]:
    order, key = ticket.order, ticket.order.contract.key
    # Its own tick's cap was kept when it was promised: here only the promise binds, which the tick has paid for.
    spent = replace(
        reckoned(desk, at, ticket.id),
        tick=0,
        tick_at=-1,
        shown={} if ticket.shown is None else {key: ticket.shown},
        seen={},
    )
    desk = replace(desk, waiting=tuple(other for other in desk.waiting if other.id != ticket.id))
    found = judge(caps, desk.world, spent, _intent(ticket), at, ticket.tick_at, account_id)
    code, detail = found.verdict.code or VENUE, found.verdict.detail
    if found.order is not None:
        step = perform(desk.world, found.order, at, account_id, found.trade)
        if step.abort is None:
            desk = _paid(desk, order, step, ticket.tick_at, at)
            receipts = tuple(replace(one, facts={**one.facts, "order": ticket.id}) for one in step.receipts)
            return _noting(desk, receipts, account_id), receipts
        code, detail = VENUE, f"{step.abort.words} ({step.abort.name})"
    facts: Facts = {**_facts(order), "code": code, "reason": detail}
    strike, none = usd(order.contract.strikes[0]), Decimal(0)
    fate = Fill(
        "refused", at, order.contract.market_id, order.contract.side, strike, none, none, none, ticket.id, code, detail
    )
    return _kept(desk, (fate,)), (Receipt("rejected", at, order.contract.market_id, ticket.id, facts),)


def _intent(ticket: WaitingOrder) -> dict[str, Any]:
    """The decision as it was understood when it was made: its market named, its spend what was promised."""
    order = ticket.order
    intent: dict[str, Any] = {
        "action": order.action,
        "market_id": order.contract.market_id,
        "side": order.contract.side,
        "strike": usd(order.contract.strikes[0]),
        "confidence": ticket.confidence,
        "reasoning": "",
    }
    return intent if order.action == "redeem" else {**intent, "spend": contracts(order.spend)}


def _facts(order: ContractOrder) -> Facts:
    facts: Facts = {
        "action": order.action,
        "side": order.contract.side,
        "strike": usd(order.contract.strikes[0]),
        "quantity": contracts(order.quantity),
        "price": usd(order.price),
    }
    return facts if order.action == "redeem" else {**facts, "spend": contracts(order.spend)}


def _paid(desk: Desk, order: ContractOrder, step: WorldStep, tick_at: Instant, at: Instant) -> Desk:
    """The desk after a trade, with what a mint cost counted. An older tick never takes a newer one's place."""
    if order.action == "redeem":
        return replace(desk, world=step.world)
    cost = int(Decimal(step.receipts[0].facts["cost"]).scaleb(6))
    spent = desk.spent.after(cost, tick_at, at)
    if tick_at < desk.spent.tick_at:
        spent = replace(spent, tick=desk.spent.tick, tick_at=desk.spent.tick_at)
    return replace(desk, world=step.world, spent=spent)


def _noting(desk: Desk, receipts: Iterable[Receipt], account_id: str) -> Desk:
    """With the account's own trades and payouts among these kept to be told."""
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
    return _kept(desk, found) if found else desk


def _kept(desk: Desk, fills: Iterable[Fill]) -> Desk:
    return replace(desk, done=(*desk.done, *fills)[-MOST_DONE:])


def summary(desk: Desk, account_id: str = ACCOUNT) -> dict[str, Any]:
    """The account as records keep it: amounts as exact text, equity as cash and every position at its bid."""
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
    """A position as records keep it. Two of three are those of the tick before."""
    return {
        "market_id": held.contract.market_id,
        "side": held.contract.side,
        "strikes": [text(usd(strike)) for strike in held.contract.strikes],
        "quantity": text(contracts(held.quantity)),
        "cost": text(contracts(held.cost)),
    }
