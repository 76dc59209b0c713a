"""Reads a span of a deployment from its records: the account before it, its decisions, and what happened in it.

A record holds a summary of the account (cash, positions, orders), so the account that a span begins with can be built again:
what else the rules read, such as the peak, the reference of the day and the opens of the last hour, follows from the earlier
records. Theses, memory, and the margin figures that an exchange reported are in no record and are not needed here.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from decimal import Decimal
from typing import Any

from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.curve import points
from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, HOUR_MS, Instant, day_of, iso
from pitboss.core.money import ZERO
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import Record
from pitboss.live.runner import FEED_TIMEOUT
from pitboss.venues.perp.account_trades import SpanStep
from pitboss.venues.perp.course import marked_world
from pitboss.venues.perp.intents import OPENS
from pitboss.venues.perp.outcome import before_sending
from pitboss.venues.perp.state import PerpWorld, Position, WorkingOrder
from pitboss.venues.perp.trades import amount


@noun
class RecordedDecision:
    """The proposals of one tick, with the ids of the orders that the deployment sent for them."""

    at: Instant
    proposals: tuple[Any, ...]
    order_ids: tuple[str | None, ...]


@noun
class EarlierFacts:
    """What the records before a span leave behind, besides the account."""

    peak: Decimal = ZERO
    day: int = 0
    day_reference: Decimal = ZERO
    last_equity: Decimal = ZERO
    accepted_opens: tuple[Instant, ...] = ()
    orders: Mapping[str, Receipt] = field(default_factory=dict[str, Receipt])
    """The receipts of accepted orders, by id."""
    caps: str = ""
    """The caps of the last change before the span, as JSON text; empty for those of the skill."""


@noun
class RecordedSpan:
    """A span: the account at its beginning, its steps, its decisions, and when people lifted halts."""

    started_at: Instant
    ended_at: Instant
    start: Mapping[str, Any]
    earlier: EarlierFacts
    steps: tuple[SpanStep, ...]
    decisions: Mapping[int, RecordedDecision]
    """By the index of their step."""
    ticks: frozenset[int]
    """The indexes of the steps that are ticks: there the account was brought up to date."""

    @property
    def sent(self) -> dict[str, Instant]:
        """When the orders that were sent before the span were decided."""
        return {order_id: receipt.at for order_id, receipt in self.earlier.orders.items()}

    @property
    def end(self) -> Mapping[str, Any]:
        """The account at the end."""
        return next((step.account for step in reversed(self.steps) if step.account is not None), self.start)


def recorded_span(records: Iterable[Record], from_at: Instant, to_at: Instant, bar_ms: int) -> RecordedSpan:
    """Read the span `[from_at, to_at)`. It ends with the last record by which every order has had a whole bar to be filled in.

    On paper an order is filled by the bar after its tick, on an exchange at once: a comparison at the tick itself would count
    every order of it as one that only the exchange has filled.
    """
    earlier = _Earlier()
    bodies: list[tuple[Record, dict[str, Any]]] = []
    for record in records:
        body = codec.loads(record.covered)
        if record.tick_at >= to_at:
            break
        if record.tick_at < from_at and not bodies:  # a command can carry a time after the slot of the next tick
            earlier.take(body)
        else:
            bodies.append((record, body))
    steps: list[SpanStep] = []
    decisions: dict[int, RecordedDecision] = {}
    ticks: set[int] = set()
    start, started_at = earlier.account, earlier.at
    for record, body in bodies:
        receipts = receipts_of(body)
        if start is None:  # the first record of the deployment: the span begins with the account that its tick saw
            if "before" not in body:
                start, started_at = body.get("after"), record.tick_at
                earlier.take(body)
                continue
            start, started_at = body["before"], record.tick_at
            earlier.begin(start, record.tick_at)
            receipts = receipts[len(before_sending(receipts)) :]
        if record.kind == "tick":
            ticks.add(len(steps))
            if body["proposals"]:
                exact_body = codec.loads_exact(record.covered)
                ids = tuple(verdict["order_id"] for verdict in body["verdicts"])
                decisions[len(steps)] = RecordedDecision(record.tick_at, tuple(exact_body["proposals"]), ids)
        account = None if FEED_TIMEOUT in body.get("flags", ()) else body.get("after")
        steps.append(SpanStep(record.tick_at, receipts, account))
    if start is None or not steps:
        raise UserError(
            f"the deployment has no records between {iso(from_at)} and {iso(to_at)}", "choose another --from and --to"
        )
    count = _settled(steps, bar_ms)
    settled_steps = tuple(steps[:count])
    return RecordedSpan(
        started_at,
        max(step.at for step in settled_steps),
        start,
        earlier.facts(),
        settled_steps,
        {index: decision for index, decision in decisions.items() if index < count},
        frozenset(index for index in ticks if index < count),
    )


def of_symbols(span: RecordedSpan, symbols: Sequence[str]) -> RecordedSpan:
    """Return the span without the symbols that the skill does not trade; their value at its beginning is added to the cash.

    A live account may hold such symbols; what happens to them belongs to no trade of the deployment.
    """
    account, traded = span.start, set(symbols)
    positions = account["positions"]
    others = [row for symbol, row in positions.items() if symbol not in traded]
    worth = sum((amount(row["size"]) * amount(row["mark"]) - amount(row["cost"]) for row in others), ZERO)
    steps = tuple(
        replace(step, receipts=tuple(each for each in step.receipts if not each.symbol or each.symbol in traded))
        for step in span.steps
    )
    start = {
        **account,
        "cash_usd": amount(account["cash_usd"]) + worth,
        "positions": {symbol: row for symbol, row in positions.items() if symbol in traded},
        "orders": [row for row in account["orders"] if row[2] in traded],
    }
    return replace(span, start=start, steps=steps)


def receipts_of(body: Mapping[str, Any]) -> tuple[Receipt, ...]:
    """Return the receipts of a record."""
    return tuple(Receipt(**receipt) for receipt in body["receipts"])


def _settled(steps: Sequence[SpanStep], bar_ms: int) -> int:
    """Return how many steps there are up to the last one before which every order has had a whole bar; else all."""
    sent_at = sorted(receipt.at for step in steps for receipt in step.receipts if receipt.kind == "accepted")
    for index in range(len(steps) - 1, -1, -1):
        step = steps[index]
        count = bisect_right(sent_at, step.at)
        if step.account is not None and (not count or sent_at[count - 1] <= step.at // bar_ms * bar_ms - bar_ms):
            return index + 1
    return len(steps)


class _Earlier:
    """Follows the records before a span."""

    def __init__(self) -> None:
        self.account: Mapping[str, Any] | None = None
        self.at: Instant = 0
        self._facts = EarlierFacts()
        self._orders: dict[str, Receipt] = {}
        self._opens: list[Instant] = []
        self._caps = ""

    def begin(self, account: Mapping[str, Any], at: Instant) -> None:
        """Begin with the account of the first record."""
        value = amount(account["equity_usd"])
        self._facts = EarlierFacts(value, day_of(at), value, value)

    def take(self, body: Mapping[str, Any]) -> None:
        """Follow one record."""
        at = body["tick_at"]
        if self.account is None and ("before" in body or "after" in body):
            self.begin(body.get("before") or body["after"], at)
        for moment, usd in points(body.get("equity") or ()):
            self._mark(moment, Decimal(usd))
        for receipt in receipts_of(body):
            if receipt.kind == "accepted":
                self._orders[receipt.order_id] = receipt
            elif receipt.kind == "resumed" and receipt.facts.get("halt") != "daily_loss":
                value = self._facts.last_equity
                self._facts = replace(self._facts, peak=value, day_reference=value)
            elif receipt.kind == "caps":
                self._caps = str(receipt.facts["caps"])
        for proposal, verdict in zip(body.get("proposals", ()), body.get("verdicts", ()), strict=True):
            is_open = isinstance(proposal, dict) and proposal.get("action") in OPENS
            if is_open and verdict["outcome"] in ("allowed", "reduced") and not verdict["duplicate"]:
                self._opens.append(at)
        if body.get("after") is not None:
            self.account, self.at = body["after"], at

    def facts(self) -> EarlierFacts:
        """Return the facts at the last record."""
        recent = tuple(at for at in self._opens if at > self.at - HOUR_MS)
        return replace(self._facts, accepted_opens=recent, orders=dict(self._orders), caps=self._caps)

    def _mark(self, at: Instant, value: Decimal) -> None:
        facts = self._facts
        day, reference = facts.day, facts.day_reference
        if at // DAY_MS != day:
            day, reference = at // DAY_MS, value if at % DAY_MS == 0 else facts.last_equity
        self._facts = replace(facts, peak=max(facts.peak, value), day=day, day_reference=reference, last_equity=value)


# The account at the beginning -----------------------------------------------------------------------------------------


def start_world(
    span: RecordedSpan, market: Market, symbols: Sequence[str], base_interval: str, bar_ms: int, latency_ms: int
) -> PerpWorld:
    """Build the account at the beginning of a span as a paper account, marked at the last closes."""
    account, facts, at = span.start, span.earlier, span.started_at
    positions = {
        symbol: Position(
            symbol, amount(row["size"]), amount(row["cost"]), at, _optional(row["stop"]), _optional(row["take_profit"])
        )
        for symbol, row in sorted(account["positions"].items())
    }
    orders = tuple(_order(row, facts.orders, at, bar_ms, latency_ms) for row in account["orders"])
    world = PerpWorld(
        cash=amount(account["cash_usd"]),
        initial=amount(account["equity_usd"]),
        peak=facts.peak,
        day=facts.day,
        day_reference=facts.day_reference,
        last_equity=facts.last_equity,
        positions=positions,
        orders=orders,
        leverage={symbol: int(row["leverage"]) for symbol, row in account["positions"].items()},
        marks={symbol: amount(row["mark"]) for symbol, row in account["positions"].items()},
        halts=tuple(account["halts"]),
        next_order=_next_order(facts.orders),
    )
    return marked_world(world, market, symbols, base_interval, at // bar_ms * bar_ms)


def _order(
    row: Sequence[Any], accepted: Mapping[str, Receipt], at: Instant, bar_ms: int, latency_ms: int
) -> WorkingOrder:
    order_id, kind, symbol, side, size, limit = row
    receipt = accepted.get(order_id) or Receipt("accepted", at, symbol, order_id)
    return WorkingOrder(
        order_id,
        kind,
        symbol,
        side,
        amount(size),
        receipt.at,
        receipt.at + latency_ms,
        _optional(limit),
        _optional(receipt.facts.get("stop")),
        _optional(receipt.facts.get("take_profit")),
        rested=kind == "limit" and receipt.at + latency_ms + bar_ms <= at,
    )


def _next_order(accepted: Mapping[str, Receipt]) -> int:
    numbers = [int(order_id[1:]) for order_id in accepted if order_id[:1] == "o" and order_id[1:].isdigit()]
    return max(numbers, default=0) + 1


def _optional(value: Any) -> Decimal | None:
    return None if value is None else amount(value)
