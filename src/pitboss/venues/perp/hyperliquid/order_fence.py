"""The life of one order under the fence rule: what is known of it, and what may be done next. Pure.

An order carries an expiry that the exchange checks against its own time. It is sent once. Until its outcome is known it is
`sent` or `unresolved`, and nothing that adds risk in its symbol may follow. The states, and what leads to them:

    new          stored; no bytes have left
    sent         the bytes may have left
    resting      the exchange has it in its book (or it waits for its trigger)
    filled       executed; an immediate-or-cancel order perhaps in part
    cancelled    it was in the book and is not any more; it may have been executed in part
    refused      the exchange said no in a text of `LISTED_REFUSALS`, or nothing was ever sent
    expired      it never arrived and cannot arrive any more
    unresolved   no usable answer: only the exchange knows

Only positive evidence leads to a final state. An unknown text is no answer. An exchange that does not know the order proves
nothing until its own time, read before the question was asked, had passed the expiry and a margin: it may still arrive,
or be there and not be indexed yet. A fill of an order that was called dead is a contradiction, which stops all opens.
"""

from dataclasses import replace
from decimal import Decimal
from typing import Literal

from pitboss.core.instant import SECOND_MS, Instant
from pitboss.core.money import ZERO
from pitboss.core.noun import noun

OrderState = Literal["new", "sent", "resting", "filled", "cancelled", "refused", "expired", "unresolved"]
FINAL: frozenset[OrderState] = frozenset(("filled", "cancelled", "refused", "expired"))
IN_DOUBT: frozenset[OrderState] = frozenset(("sent", "unresolved"))

FENCE_MARGIN_MS = 5 * SECOND_MS
"""How long after the expiry, in the exchange's time, an order that it does not know is dead: its indexes lag behind its book."""

LISTED_REFUSALS = (
    "Price must be divisible by tick size",
    "Order has invalid size",
    "Order must have minimum value of",
    "Insufficient margin to place order",
    "Reduce only order would increase position",
    "Post only order would have immediately matched",
    "Order could not immediately match against any resting orders",
    "Invalid TP/SL price",
    "No liquidity available for market order",
    "Order price cannot be more than",
    "Order would cause position to exceed margin tier limit",
    "Order would increase open interest",
    "Only post-only orders allowed",
    "Trading is halted",
)
"""Beginnings of the texts with which the exchange definitely refuses one order. Any other text is ambiguous."""

_LIVE_STATUSES = frozenset(("open", "triggered"))
_DEAD_STATUSES = frozenset(
    (
        "canceled",
        "marginCanceled",
        "vaultWithdrawalCanceled",
        "openInterestCapCanceled",
        "selfTradeCanceled",
        "reduceOnlyCanceled",
        "siblingFilledCanceled",
        "delistedCanceled",
        "liquidatedCanceled",
        "scheduledCancel",
    )
)
_REJECTED_STATUSES = frozenset(
    (
        "rejected",
        "tickRejected",
        "minTradeNtlRejected",
        "perpMarginRejected",
        "reduceOnlyRejected",
        "badAloPxRejected",
        "iocCancelRejected",
        "badTriggerPxRejected",
        "marketOrderNoLiquidityRejected",
        "positionIncreaseAtOpenInterestCapRejected",
        "positionFlipAtOpenInterestCapRejected",
        "tooAggressiveAtOpenInterestCapRejected",
        "openInterestIncreaseRejected",
        "insufficientSpotBalanceRejected",
        "oracleRejected",
        "perpMaxPositionRejected",
    )
)

Answer = Literal["resting", "filled", "refused", "ambiguous"]


def is_listed_refusal(text: str) -> bool:
    """Return whether a text of the exchange definitely refuses one order."""
    return text.startswith(LISTED_REFUSALS)


@noun
class FencedOrder:
    """What is known of one order. `contradiction` says what cannot be: such an account is not traded until a person looks."""

    size: Decimal
    immediate: bool
    """Whether what does not fill at once is cancelled."""
    state: OrderState = "new"
    expires_at: Instant = 0
    answered_size: Decimal = ZERO
    """The size that the reply to the request said was filled; its fills are reported separately, and later."""
    filled_size: Decimal = ZERO
    """The sum of the fills that were reported."""
    fill_ids: tuple[int, ...] = ()
    oid: int | None = None
    note: str = ""
    contradiction: str = ""

    @property
    def executed(self) -> Decimal:
        """The size that is known to be executed."""
        return max(self.answered_size, self.filled_size)

    @property
    def is_final(self) -> bool:
        """Whether nothing more can happen to it."""
        return self.state in FINAL

    @property
    def may_be_sent(self) -> bool:
        """Whether its bytes may leave: once, and never again."""
        return self.state == "new"

    @property
    def is_in_doubt(self) -> bool:
        """Whether only the exchange knows what became of it."""
        return self.state in IN_DOUBT

    @property
    def unreported(self) -> Decimal:
        """The size that the reply said was filled and that no fill was reported for yet."""
        return max(ZERO, self.answered_size - self.filled_size)


def mark_sent(order: FencedOrder, expires_at: Instant) -> FencedOrder:
    """Record that the bytes may leave from now on."""
    return replace(order, state="sent", expires_at=expires_at) if order.state == "new" else order


def discard(order: FencedOrder, note: str) -> FencedOrder:
    """End an order whose bytes never left. `sent` is included: the caller knows that they did not."""
    return replace(order, state="refused", note=note) if order.state in ("new", "sent") else order


def on_answer(
    order: FencedOrder, answer: Answer, text: str = "", oid: int | None = None, size: Decimal = ZERO
) -> FencedOrder:
    """Apply the reply to the request itself. `size` is what the exchange says was filled at once."""
    if order.state not in IN_DOUBT:
        return order
    order = replace(order, oid=order.oid if oid is None else oid)
    if answer == "resting":
        return _with_fills(replace(order, state="resting"))
    if answer == "filled" and (order.immediate or size >= order.size):
        if not 0 < size <= order.size:
            return replace(order, state="unresolved", note="the reply tells an impossible size")
        return replace(order, state="filled", answered_size=size)
    if answer == "refused" and not order.executed:
        return replace(order, state="refused", note=text)
    return replace(order, state="unresolved", note=text or order.note)


def on_status(order: FencedOrder, status: str, oid: int | None = None) -> FencedOrder:
    """Apply an answer of `orderStatus`. A status that is not listed changes nothing."""
    if order.state == "new" or order.is_final:
        return order
    order = replace(order, oid=order.oid if oid is None else oid)
    if status in _LIVE_STATUSES:
        return _with_fills(replace(order, state="resting"))
    if status == "filled":
        return replace(order, state="filled")
    if status in _REJECTED_STATUSES and not order.executed and order.state != "resting":
        return replace(order, state="refused", note=status)
    if status in _DEAD_STATUSES | _REJECTED_STATUSES:
        return replace(order, state="cancelled", note=status)
    return order


def on_listed(order: FencedOrder, oid: int) -> FencedOrder:
    """Apply that the exchange lists the order among those in its book."""
    return on_status(order, "open", oid)


def on_unknown(order: FencedOrder, asked_after: Instant) -> FencedOrder:
    """Apply that the exchange does not know the order; `asked_after` is its time as last read before the question."""
    if order.state in IN_DOUBT and not order.executed and asked_after > order.expires_at + FENCE_MARGIN_MS:
        return replace(order, state="expired", note="it never arrived")
    return order


def on_fill(order: FencedOrder, fill_id: int, size: Decimal) -> FencedOrder:
    """Apply one fill; a fill that was counted before changes nothing."""
    if fill_id in order.fill_ids:
        return order
    dead = order.state in ("new", "refused", "expired")
    order = replace(order, filled_size=order.filled_size + size, fill_ids=(*order.fill_ids, fill_id))
    if dead:
        return replace(order, contradiction=f"an order that was {order.state} has a fill")
    if order.filled_size > order.size:
        return replace(order, contradiction="more was filled than ordered")
    return _with_fills(order)


def _with_fills(order: FencedOrder) -> FencedOrder:
    """Return the order as filled if its fills complete it. A part of it says nothing about the rest."""
    if order.filled_size == order.size and order.state in ("sent", "unresolved", "resting"):
        return replace(order, state="filled")
    return order
