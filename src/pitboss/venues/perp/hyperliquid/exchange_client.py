"""`ExchangeClient`: sends one signed action to `/exchange`, once, and says for each of its orders what the reply proves.

A 200 with `status: ok` may hold an error for every order; an error of the server may follow an order that was executed. So each
order is classified on its own, and only a listed text is a refusal (`order_fence.LISTED_REFUSALS`). Nothing is sent again here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from typing import Any, Literal, cast

from pitboss.core import codec
from pitboss.core.instant import SECOND_MS, Instant
from pitboss.core.money import ZERO
from pitboss.core.noun import noun
from pitboss.signer.hyperliquid.actions import Action
from pitboss.signer.hyperliquid.client import HyperliquidSignature
from pitboss.venues.perp.hyperliquid.action_budget import ActionBudget
from pitboss.venues.perp.hyperliquid.order_fence import Answer, is_listed_refusal
from pitboss.venues.perp.hyperliquid.rate_budget import RateBudget, RequestClass, action_weight
from pitboss.venues.perp.hyperliquid.strict_json import UnreadableReply, amount_of, fields_of, int_of
from pitboss.venues.perp.hyperliquid.transport import ExchangeTransport

TIMEOUT_S = 2.0
LONGEST_WAIT_MS = 2 * SECOND_MS
MOST_TEXT = 200

Alarm = Literal["", "agent", "nonce", "throttled", "actions"]
"""What a reply says about all further actions: the key is not accepted, its nonces are not, or there were too many."""


@noun
class OrderAnswer:
    """What a reply proves about one order of an action."""

    answer: Answer
    text: str = ""
    oid: int | None = None
    size: Decimal = ZERO


@noun
class ActionReply:
    """The reply to one action. `accepted` is set if the exchange said ok to the action as a whole."""

    orders: tuple[OrderAnswer, ...]
    accepted: bool = False
    alarm: Alarm = ""
    text: str = ""


class ExchangeClient:
    """Sends the signed actions of one account."""

    def __init__(
        self,
        transport: ExchangeTransport,
        budget: RateBudget,
        now: Callable[[], Instant],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.actions = ActionBudget()
        self._transport = transport
        self._budget = budget
        self._now = now
        self._sleep = sleep

    async def wait(self, purpose: RequestClass, count: int) -> bool:
        """Wait until the budgets let an action leave; False if that would take too long, and nothing may be sent."""
        now = self._now()
        wait_ms = max(
            self._budget.wait_ms(purpose, action_weight(count), now), self.actions.wait_ms(purpose, count, now)
        )
        if wait_ms > LONGEST_WAIT_MS:
            return False
        if wait_ms:
            await self._sleep(wait_ms / SECOND_MS)
        return True

    async def send(
        self,
        action: Action,
        signature: HyperliquidSignature,
        purpose: RequestClass,
        count: int,
        timeout_s: float = TIMEOUT_S,
    ) -> ActionReply:
        """Send one action with so many orders or cancels. Never raises for what the network or the exchange does."""
        self._budget.spend(action_weight(count), self._now())
        self.actions.spend(purpose, max(1, count), self._now())
        body = {
            "action": action,
            "nonce": signature.nonce,
            "signature": {"r": signature.r, "s": signature.s, "v": signature.v},
            "vaultAddress": None,
            "expiresAfter": signature.expires_after,
        }
        try:
            status, text = await self._transport.post("/exchange", body, timeout_s)
        except TimeoutError:
            return _unusable("no reply in time", count)
        except OSError:
            return _unusable("the connection failed", count)
        reply = read_reply(status, text, count)
        if reply.alarm == "actions":
            self.actions.on_refusal(self._now())
        elif reply.alarm == "throttled":
            self._budget.on_refusal(self._now())
        elif reply.accepted:
            self._budget.on_success()
        return reply


def read_reply(status: int, text: str, count: int) -> ActionReply:
    """Classify a reply to an action with `count` orders. Never raises."""
    if status == 429:
        return _unusable("too many requests", count, "throttled")
    if status != 200:
        return _unusable(f"HTTP status {status}", count)
    try:
        content = codec.loads_exact(text)
    except (ValueError, RecursionError):
        return _unusable("the reply is not JSON", count)
    reply = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
    response = reply.get("response")
    if reply.get("status") == "err" and isinstance(response, str):
        return _unusable(response, count, _alarm(response))
    if reply.get("status") != "ok" or not isinstance(response, dict):
        return _unusable("the reply has neither status ok nor err", count)
    data = cast("dict[str, Any]", response).get("data")
    statuses = cast("dict[str, Any]", data).get("statuses") if isinstance(data, dict) else None
    rows = cast("list[Any]", statuses) if isinstance(statuses, list) else []
    if len(rows) != count:  # statuses carry no id: if one is missing, it is not known to which orders the others belong
        orders = (OrderAnswer("ambiguous", f"the reply has {len(rows)} statuses for {count} orders"),) * count
        return ActionReply(orders, accepted=True)
    return ActionReply(tuple(_answer(row) for row in rows), accepted=True)


def _answer(row: Any) -> OrderAnswer:
    if row in ("waitingForFill", "waitingForTrigger", "success"):
        return OrderAnswer("resting", row)
    if not isinstance(row, dict) or len(cast("dict[str, Any]", row)) != 1:
        return OrderAnswer("ambiguous", "the status of this order cannot be read")
    ((kind, value),) = cast("Mapping[str, Any]", row).items()
    try:
        if kind == "error" and isinstance(value, str):
            text = value[:MOST_TEXT]
            return OrderAnswer("refused" if is_listed_refusal(text) else "ambiguous", text)
        if kind == "resting":
            return OrderAnswer("resting", oid=int_of(fields_of(value, kind), "oid"))
        if kind == "filled":
            fields = fields_of(value, kind)
            return OrderAnswer("filled", oid=int_of(fields, "oid"), size=amount_of(fields, "totalSz"))
    except UnreadableReply as error:
        return OrderAnswer("ambiguous", str(error))
    return OrderAnswer("ambiguous", "the status of this order is unknown")


def _alarm(text: str) -> Alarm:
    if "does not exist" in text and "API Wallet" in text:
        return "agent"
    if text.startswith("Invalid nonce"):
        return "nonce"
    return "actions" if text.startswith("Too many cumulative requests") else ""


def _unusable(text: str, count: int, alarm: Alarm = "") -> ActionReply:
    return ActionReply((OrderAnswer("ambiguous", text[:MOST_TEXT]),) * count, False, alarm, text[:MOST_TEXT])
