"""`FirstCall`: the first request of a run is its test call. It is sent alone, and a failure of it ends the run before its first tick.

Requests that are made meanwhile, such as those of speculation, wait for its reply, so a provider that is down, refuses the key or does
not know the model receives one request and its retries, not a window of them. The test call is the request that the first tick needs
anyway: it costs nothing extra, and a run that is served from the cache makes none.
"""

import asyncio
from dataclasses import replace

from pitboss.core.ports import ModelRequest
from pitboss.models.call import CallContext, CallResult, ModelClient


class FirstCall(ModelClient):
    """Calls `inner` with one request at a time until a first reply has arrived."""

    def __init__(self, inner: ModelClient) -> None:
        self.inner = inner
        self.name = inner.name
        self._has_reply = False
        self._failed: CallResult | None = None
        self._ended: asyncio.Event | None = None
        """Set when the test call under way has ended."""

    async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
        """Make the test call, or wait for it and then make the call. After a failed test call nothing is sent any more."""
        while not self._has_reply:
            if self._failed is not None:
                return CallResult(failure=self._failed.failure)
            if self._ended is None:
                return await self._test(request, context)
            await self._ended.wait()
        return await self.inner.call(request, context)

    async def _test(self, request: ModelRequest, context: CallContext) -> CallResult:
        ended = self._ended = asyncio.Event()
        try:
            result = await self.inner.call(request, context)
            self._has_reply = result.reply is not None
            if result.failure is not None and context.is_wanted:  # one that is not wanted any more was not retried
                reaction = "unavailable" if result.is_transient else result.failure.reaction
                result = self._failed = replace(result, failure=replace(result.failure, reaction=reaction))
            return result
        finally:
            self._ended = None
            ended.set()
