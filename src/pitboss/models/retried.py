"""`Retried`: repeats a failed call while that can help, within a number of attempts and a deadline.

It stands outside budget, price and limiter, so that every attempt waits for its turn and has its worst case reserved. An
attempt that may have been charged stays counted even if a later one succeeds. What a failure means is decided in
`failures`; how long a pause lasts in `core.backoff`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from pitboss.core.backoff import backoff_s
from pitboss.core.money import ZERO
from pitboss.core.ports import ModelRequest
from pitboss.models.call import CallContext, CallResult, ModelClient
from pitboss.models.failures import Failure

LOG = logging.getLogger("pitboss.models")
ATTEMPTS = 4
DEADLINE_S = 120.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 20.0
MOST_ADAPTATIONS = 4
"""Changes of form tried for one request. Bounded because some servers object to either of two forms."""


class Retried(ModelClient):
    """Calls `inner` until there is a reply, a failure that is not retried, or no attempt or time left."""

    def __init__(
        self,
        inner: ModelClient,
        *,
        random: Callable[[], float],
        attempts: int = ATTEMPTS,
        deadline_s: float = DEADLINE_S,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`random` returns numbers from 0 to 1 for the jitter."""
        self.name = inner.name
        self.inner = inner
        self.attempts = attempts
        self.deadline_s = deadline_s
        self._random = random
        self._sleep = sleep

    async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
        """Call, and call again. The result counts all attempts and everything that is uncertain."""
        context.left_s = self.deadline_s
        failures = adaptations = attempts = 0
        uncertain_usd = ZERO
        while True:
            result = await self.inner.call(request, context)
            attempts += result.attempts
            uncertain_usd += result.uncertain_usd
            result = replace(result, attempts=attempts, uncertain_usd=uncertain_usd)
            failure = result.failure
            if failure is None:
                return result
            if result.is_adapted:
                adaptations += 1
                pause_s, may_retry = 0.0, adaptations <= MOST_ADAPTATIONS
            else:
                failures += 1
                pause_s = backoff_s(failures, self._random(), FIRST_PAUSE_S, LONGEST_PAUSE_S, failure.wait_s)
                may_retry = failure.reaction == "retry" and failures < self.attempts
            if not may_retry or pause_s >= context.left_s or not context.is_wanted:
                return result
            LOG.info("model call is retried", extra=_fields(self.name, failure, pause_s))
            if pause_s:
                context.left_s -= pause_s
                await self._sleep(pause_s)


def _fields(model: str, failure: Failure, pause_s: float) -> dict[str, Any]:
    """The reason as a code: the provider's text stays out of the log."""
    return {"fields": {"model": model, "error": failure.code, "status": failure.status, "pause_s": round(pause_s, 3)}}
