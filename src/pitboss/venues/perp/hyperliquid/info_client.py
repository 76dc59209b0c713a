"""`HyperliquidInfo`: public requests to `/info`, with timeouts, the rate budget, and one more attempt after a failure.

Reading changes nothing, so a failed read may be repeated. What still fails is a `TransientError`: the caller knows nothing,
and never takes it for an empty reply.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pitboss.core import codec
from pitboss.core.errors import TransientError
from pitboss.core.instant import SECOND_MS, Instant
from pitboss.venues.perp.hyperliquid.rate_budget import RateBudget, RequestClass, info_weight
from pitboss.venues.perp.hyperliquid.transport import ExchangeTransport

TIMEOUT_S = 1.2
ATTEMPTS = 2
LONGEST_WAIT_MS = 2 * SECOND_MS
"""A request that the budget delays for longer fails instead: what it would return is needed now."""


class HyperliquidInfo:
    """Sends info requests one by one; several tasks may share it."""

    def __init__(
        self,
        transport: ExchangeTransport,
        budget: RateBudget,
        now: Callable[[], Instant],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._transport = transport
        self._budget = budget
        self._now = now
        self._sleep = sleep

    async def post(
        self, body: Mapping[str, object], purpose: RequestClass = "read", timeout_s: float = TIMEOUT_S
    ) -> Any:
        """Return the parsed reply; numbers are exact. Raises `TransientError` if there is no usable one."""
        problem = ""
        for _ in range(ATTEMPTS):
            reply = await self._attempt(body, purpose, timeout_s)
            if not isinstance(reply, TransientError):
                return reply
            problem = str(reply)
        raise TransientError(f"{body['type']}: {problem}")

    async def _attempt(self, body: Mapping[str, object], purpose: RequestClass, timeout_s: float) -> Any:
        kind = str(body["type"])
        weight = info_weight(kind)
        wait_ms = self._budget.wait_ms(purpose, weight, self._now())
        if wait_ms > LONGEST_WAIT_MS:
            return TransientError("the rate budget is used up")
        if wait_ms:
            await self._sleep(wait_ms / SECOND_MS)
        self._budget.spend(weight, self._now())
        try:
            status, text = await self._transport.post("/info", dict(body), timeout_s)
        except (TimeoutError, OSError) as error:
            return TransientError("no reply in time" if isinstance(error, TimeoutError) else "no connection")
        if status == 429:
            self._budget.on_refusal(self._now())
            return TransientError("too many requests")
        if status != 200:
            return TransientError(f"HTTP status {status}")
        try:
            reply = codec.loads_exact(text)
        except (ValueError, RecursionError):
            return TransientError("the reply is not JSON")
        self._budget.on_success()
        rows = len(reply) if isinstance(reply, list) else 0
        if (more := info_weight(kind, rows) - weight) > 0:
            self._budget.spend(more, self._now())
        return reply
