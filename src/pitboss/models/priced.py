"""`Priced`: sets the cost of each reply. Outside the client and inside the budget, which settles with this cost."""

from collections.abc import Callable
from dataclasses import replace

from pitboss.core.instant import Instant
from pitboss.core.intent import NO_USAGE
from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.models.call import CallContext, CallResult, ModelClient
from pitboss.models.prices import FREE, ModelPrice


class Priced(ModelClient):
    """Sets `cost_usd`: what the provider reports as charged, else tokens times price, else None for unknown.

    A reply is priced as the model that was requested, whatever name the reply carries. A reported 0 counts as not
    reported, because that is what an unfilled field looks like: a model that is free has a price of 0.
    """

    def __init__(self, inner: ModelClient, price: ModelPrice | None, now: Callable[[], Instant] | None = None) -> None:
        self.name = inner.name
        self.inner = inner
        self.price = price
        self._now = now

    async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
        """Make the call, then price its reply."""
        result = await self.inner.call(request, context)
        return result if result.reply is None else replace(result, reply=self._priced(result.reply))

    def _priced(self, reply: ModelReply) -> ModelReply:
        if reply.cost_usd is not None and reply.cost_usd.is_finite() and reply.cost_usd > 0:
            return reply
        if self.price is None or (reply.usage == NO_USAGE and self.price != FREE):
            return replace(reply, cost_usd=None)
        return replace(reply, cost_usd=self.price.cost(reply.usage, None if self._now is None else self._now()))
