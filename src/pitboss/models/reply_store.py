"""Stored replies as one run sees them: a reply counts as spent if this run paid for it, else as saved.

`ReplyStore` is the storage (`store/answers.py` implements it); `RunReplies` is used by `Cached`.
"""

from dataclasses import replace
from decimal import Decimal
from typing import Protocol

from pitboss.core.money import ZERO
from pitboss.core.ports import ModelReply

MOST_RECENT = 64
"""Replies of this run kept in memory: more than twice the widest window of speculation."""


class CachedReply(Protocol):
    """A stored reply, with the run that paid for it."""

    @property
    def run_id(self) -> str: ...
    @property
    def cost_usd(self) -> Decimal | None: ...
    @property
    def reply(self) -> ModelReply: ...


class ReplyStore(Protocol):
    """Where replies are stored. `put` returns when the reply is durable; with `more` to come it may wait a little.

    `put` returns whether `get` will return this reply, and not one that another process stored before. `put_paid` stores
    a reply for accounting only: `get` never returns it.
    """

    def get(self, key: str) -> CachedReply | None: ...
    async def put(
        self, key: str, model: str, run_id: str, cost_usd: Decimal | None, reply: ModelReply, more: bool = False
    ) -> bool | None: ...
    async def put_paid(
        self, key: str, model: str, run_id: str, cost_usd: Decimal | None, reply: ModelReply
    ) -> None: ...
    def paid_usd(self, run_id: str) -> Decimal: ...


class RunReplies:
    """A `ReplyStore` from the point of view of one run.

    A reply that this run paid for (by speculation, or before a crash) counts as spent by the tick that uses it; one that
    another run paid for costs nothing and counts as saved. An unknown cost of this run stays unknown.
    """

    def __init__(self, store: ReplyStore, model: str, run_id: str) -> None:
        self._store = store
        self._model = model
        self._run_id = run_id
        self._recent: dict[str, ModelReply] = {}

    def find(self, key: str) -> ModelReply | None:
        """The stored reply to a request, as it counts for this run."""
        recent = self._recent.get(key)
        if recent is not None:
            return replace(recent, latency_ms=0.0, saved_usd=ZERO)
        entry = self._store.get(key)
        return None if entry is None else self.as_hit(entry.reply, entry.run_id, entry.cost_usd)

    def as_hit(self, reply: ModelReply, payer_id: str, cost_usd: Decimal | None) -> ModelReply:
        """A reply that the run `payer_id` paid for, as it counts for this run."""
        is_own = payer_id == self._run_id
        return replace(
            reply,
            latency_ms=0.0,
            cost_usd=cost_usd if is_own else ZERO,
            saved_usd=ZERO if is_own else cost_usd or ZERO,
        )

    async def add(self, key: str, reply: ModelReply, more: bool) -> None:
        """Store a reply that this run paid for. With `more` to come, storing may wait for them."""
        is_first = await self._store.put(key, self._model, self._run_id, reply.cost_usd, reply, more=more)
        if is_first:  # a speculative reply is used soon, and reading it back costs as much as a fifth of a tick
            self._recent[key] = reply
            if len(self._recent) > MOST_RECENT:
                del self._recent[next(iter(self._recent))]

    async def add_paid(self, key: str, reply: ModelReply) -> None:
        """Store a reply that this run paid for and that must not be served again."""
        await self._store.put_paid(key, self._model, self._run_id, reply.cost_usd, reply)

    def paid_usd(self) -> Decimal:
        """What this run has paid for replies, used or not."""
        return self._store.paid_usd(self._run_id)
