"""`FencedSender`: brings orders to the exchange at most once, and finds out what became of them.

The steps, and what a restart finds after a crash directly behind each:

    store     rows in state `new`                        nothing was sent: they are discarded
    leverage  set and read back, for an open             the same; the leverage is read again before the next open
    sign      the signature exists in memory only        the same: what was not marked was never sent
    mark      rows in state `sent`, with nonce           in doubt: only the exchange knows
    send      the bytes leave                            in doubt
    answer    rows say what the reply proves             as stored; what is ambiguous is in doubt

A doubt ends by the fence rule (`order_fence`): the exchange's time is read, then the order is asked for. Nothing is sent twice.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, get_args

from pitboss.core.errors import TransientError
from pitboss.core.instant import SECOND_MS, Instant
from pitboss.signer.hyperliquid.actions import (
    Action,
    LimitWire,
    OrderWire,
    TriggerWire,
    cancel_by_cloid_action,
    order_action,
    update_leverage_action,
)
from pitboss.signer.hyperliquid.client import HyperliquidSignature
from pitboss.signer.hyperliquid.verdict_terms import SignedVerdict
from pitboss.signer.protocol import SigningRefusal
from pitboss.venues.perp.hyperliquid.account_reader import AccountReader, VenueClock
from pitboss.venues.perp.hyperliquid.action_budget import ActionBudget
from pitboss.venues.perp.hyperliquid.exchange_client import TIMEOUT_S, ActionReply, Alarm, ExchangeClient
from pitboss.venues.perp.hyperliquid.order_fence import (
    FencedOrder,
    discard,
    mark_sent,
    on_answer,
    on_status,
    on_unknown,
)
from pitboss.venues.perp.hyperliquid.order_store import LiveOrder, OrderStore
from pitboss.venues.perp.hyperliquid.rate_budget import RequestClass

EXPIRY_MS = 10 * SECOND_MS
"""How long the exchange may take to accept an order, in its own time."""
CANCELS_AT_ONCE = 40
"""How many orders one action cancels; the signer refuses an action with more than 200."""

StepLabel = Literal[
    "stored", "leverage_set", "signed", "marked", "bytes_sent", "answered",
    "resolved", "cancel_sent", "protected", "account_read",
]  # fmt: skip
STEP_LABELS: tuple[StepLabel, ...] = get_args(StepLabel)


def no_step(label: StepLabel) -> None:
    """Ignore that a step is done."""
    del label


class ActionSigner(Protocol):
    """Has actions signed by the process that holds the key. A lost answer is a `TransientError`."""

    async def sign(self, request_id: str, payload: dict[str, Any]) -> HyperliquidSignature | SigningRefusal: ...


class FencedSender:
    """Sends the orders of one account. `on_step` is called after every step, so that tests can stop the process there."""

    def __init__(
        self,
        network: str,
        store: OrderStore,
        signer: ActionSigner,
        exchange: ExchangeClient,
        reader: AccountReader,
        clock: VenueClock,
        now: Callable[[], Instant],
        on_step: Callable[[StepLabel], None] = no_step,
    ) -> None:
        self.store = store
        self.reader = reader
        self.clock = clock
        self.alarm: Alarm = ""
        """Set when the exchange or the signer does not accept this process any more; a person has to look."""
        self.alarm_text = ""
        self._network = network
        self._signer = signer
        self._exchange = exchange
        self._now = now
        self._on_step = on_step

    @property
    def actions(self) -> ActionBudget:
        """What is left of the account's own limit of actions."""
        return self._exchange.actions

    async def read_actions(self) -> None:
        """Read how many actions are left, if that is due. A failure leaves the figure as it is."""
        if not self.actions.is_read_due(self._now()):
            return
        try:
            left = await self.reader.actions_left()
        except TransientError:
            self.actions.on_read_failure(self._now())
        else:
            self.actions.on_read(left, self._now())

    def begin(self, orders: Sequence[LiveOrder]) -> bool:
        """Store new orders; False if one of them was stored before."""
        stored = self.store.add(orders)
        self._on_step("stored")
        return stored

    def give_up(self, orders: Sequence[LiveOrder], note: str) -> tuple[LiveOrder, ...]:
        """End orders of which nothing was sent."""
        return self.store.change_all(orders, [discard(order.fence, note) for order in orders])

    async def send(
        self,
        orders: Sequence[LiveOrder],
        verdict: SignedVerdict,
        purpose: RequestClass,
        last_check: Callable[[], str] = lambda: "",
        timeout_s: float = TIMEOUT_S,
    ) -> tuple[LiveOrder, ...]:
        """Send stored orders in one action, and return them with what the reply proves.

        `last_check` says, directly before the bytes leave, why they must not.
        """
        if not all(order.fence.may_be_sent for order in orders):
            return tuple(orders)
        if not await self._exchange.wait(purpose, len(orders)):
            return self.give_up(orders, "the rate budget is used up")
        action = order_action([_wire(order) for order in orders])
        expires_at = self.clock.estimate() + EXPIRY_MS
        signature = await self._sign(orders[0].cloid[2:], action, expires_at, verdict)
        if isinstance(signature, str):
            return self.give_up(orders, signature)
        self._on_step("signed")
        problem = last_check()
        if problem:
            return self.give_up(orders, problem)
        fences = [mark_sent(order.fence, signature.expires_after) for order in orders]
        orders = self.store.change_all(orders, fences, signature.nonce)
        self._on_step("marked")
        reply = await self._exchange.send(action, signature, purpose, len(orders), timeout_s)
        self._on_step("bytes_sent")
        self._note_alarm(reply)
        fences = [
            on_answer(order.fence, answer.answer, answer.text, answer.oid, answer.size)
            for order, answer in zip(orders, reply.orders, strict=True)
        ]
        orders = self.store.change_all(orders, fences)
        self._on_step("answered")
        return orders

    async def set_leverage(
        self,
        order: LiveOrder,
        leverage: int,
        is_cross: bool,
        verdict: SignedVerdict,
        last_check: Callable[[], str] = lambda: "",
    ) -> str:
        """Set the leverage of an order's symbol and read it back; return why it is not what was asked, or nothing."""
        try:
            if await self.reader.leverage(order.symbol) == (leverage, is_cross):
                return ""
            action = update_leverage_action(order.terms.asset, is_cross, leverage)
            signature = await self._sign(f"l{order.cloid[2:]}", action, self.clock.estimate() + EXPIRY_MS, verdict)
            if isinstance(signature, str):
                return signature
            if problem := last_check():
                return problem
            reply = await self._exchange.send(action, signature, "open", 0)
            self._note_alarm(reply)
            self._on_step("leverage_set")
            value, value_is_cross = await self.reader.leverage(order.symbol)  # the reply may be lost, the change done
        except TransientError as error:
            return f"the leverage cannot be read: {error}"
        if (value, value_is_cross) != (leverage, is_cross):
            return f"the leverage is {value} and not {leverage}: {reply.text or 'it was not changed'}"
        return ""

    async def cancel(self, orders: Sequence[LiveOrder]) -> tuple[LiveOrder, ...]:
        """Cancel orders, and return them with what is known then. An order whose cancel has no usable answer is asked for."""
        after: list[LiveOrder] = []
        for start in range(0, len(orders), CANCELS_AT_ONCE):
            after += await self._cancel(orders[start : start + CANCELS_AT_ONCE])
        return tuple(after)

    async def _cancel(self, orders: Sequence[LiveOrder]) -> tuple[LiveOrder, ...]:
        if not await self._exchange.wait("cancel", len(orders)):
            return tuple(orders)
        action = cancel_by_cloid_action([(order.terms.asset, order.cloid) for order in orders])
        expires_at = self.clock.estimate() + EXPIRY_MS
        signature = await self._sign(f"c{orders[0].cloid[2:]}.{expires_at}", action, expires_at, None)
        if isinstance(signature, str):
            return tuple(orders)
        reply = await self._exchange.send(action, signature, "cancel", len(orders))
        self._on_step("cancel_sent")
        self._note_alarm(reply)
        after: list[LiveOrder] = []
        for order, answer in zip(orders, reply.orders, strict=True):
            if answer.answer == "resting" and answer.text == "success":
                after.append(self.store.change(order, on_status(order.fence, "canceled")))
            else:
                after.append(await self.ask(order))
        return tuple(after)

    async def resolve(self, order: LiveOrder) -> LiveOrder:
        """Find out what became of an order: read the exchange's time first, then ask for the order."""
        await self.clock.read()
        return await self.ask(order)

    async def ask(self, order: LiveOrder) -> LiveOrder:
        """Ask for an order; what the exchange does not answer changes nothing."""
        asked_after = self.clock.newest
        try:
            status = await self.reader.status(order.cloid)
        except TransientError:
            return order
        fence = on_unknown(order.fence, asked_after) if status is None else on_status(order.fence, *status)
        order = self.store.change(order, fence)
        self._on_step("resolved")
        return order

    def change(self, order: LiveOrder, fence: FencedOrder) -> LiveOrder:
        """Store what has become known of an order."""
        return self.store.change(order, fence)

    async def _sign(
        self, request_id: str, action: Action, expires_at: Instant, verdict: SignedVerdict | None
    ) -> HyperliquidSignature | str:
        """Return a signature, or why there is none. Without one nothing leaves, so a lost answer is a plain no."""
        payload: dict[str, Any] = {
            "network": self._network,
            "action": action,
            "expires_after": expires_at,
            "vault": None,
            "verdict": None if verdict is None else verdict.wire(),
        }
        try:
            signature = await self._signer.sign(request_id, payload)
        except TransientError as error:
            return str(error)
        if isinstance(signature, SigningRefusal):
            return f"the signer refuses: {signature.code} {signature.message}"
        if signature.expires_after != expires_at:
            return "the signer has signed another expiry"
        return signature

    def _note_alarm(self, reply: ActionReply) -> None:
        if reply.alarm in ("agent", "nonce"):
            self.alarm, self.alarm_text = reply.alarm, reply.text


def _wire(order: LiveOrder) -> OrderWire:
    terms = order.terms
    kind: LimitWire | TriggerWire
    if terms.trigger is not None:
        kind = TriggerWire(True, terms.trigger, "sl" if order.leg == "stop" else "tp")
    else:
        kind = LimitWire("Ioc" if terms.tif == "Ioc" else "Gtc")
    return OrderWire(terms.asset, terms.side > 0, terms.price, terms.size, terms.reduce_only, kind, order.cloid)
