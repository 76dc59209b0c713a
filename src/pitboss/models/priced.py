"""`Priced`: says what each reply cost. Around the provider and inside the budget, which settles with what is said here."""

from collections.abc import Callable
from dataclasses import replace

from pitboss.core.instant import Instant
from pitboss.core.intent import NO_USAGE
from pitboss.core.ports import Model, ModelReply, ModelRequest
from pitboss.models.prices import FREE, ModelPrice


class Priced:
    """Sets `cost_usd`: what the provider says it charged, else tokens times price, else None for unknown.

    A reply is charged as the model that was asked, whatever name stands in it. A reported 0 is taken for "not said", as
    that is what a field nobody filled looks like: a model that is free has a price of 0.
    """

    def __init__(self, inner: Model, price: ModelPrice | None, now: Callable[[], Instant] | None = None) -> None:
        self.name = inner.name
        self.inner = inner
        self.price = price
        self._now = now

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Ask, then price the answer."""
        reply = await self.inner.complete(request)
        if reply.cost_usd is not None and reply.cost_usd.is_finite() and reply.cost_usd > 0:
            return reply
        if self.price is None or (reply.usage == NO_USAGE and self.price != FREE):
            return replace(reply, cost_usd=None)
        return replace(reply, cost_usd=self.price.cost(reply.usage, None if self._now is None else self._now()))
