"""`Cached`: serves a request that was answered before from the stored reply, at once and without cost.

A reply is stored before it is returned, so no reply is paid for twice. Equal requests at the same time share one call: those
of one run, and with the same `SharedCalls` those of all runs of this process. The run that started the call pays; for
the others its cost counts as saved. If a shared call fails or is abandoned, the next waiter sends its own request and the
remaining waiters share that one. Between processes only stored replies are shared: both may call and pay, and the reply
that was stored first is served from then on.

A reply of a provider that failed halfway (`cacheable`) is not served again; if it was charged it is stored all the same,
so that the stored replies are all that the run has paid for. A call that is under way when the process is killed has no
reply to store: it is sent again, and the run's budget counts it as uncertain. Where replies are stored is up to the caller
(`store/answers.py`).
"""

import asyncio
from decimal import Decimal

from pitboss.core.errors import TransientError
from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.models.cacheable import is_cacheable
from pitboss.models.call import CallContext, CallResult, ModelClient
from pitboss.models.reply_store import ReplyStore, RunReplies
from pitboss.models.request_key import request_key
from pitboss.models.shared_calls import SharedCall, SharedCalls


class Cached(ModelClient):
    """A cache of replies around `inner`. `run_id` is the run that pays for calls."""

    def __init__(
        self,
        inner: ModelClient,
        store: ReplyStore,
        run_id: str,
        repeat: int = 0,
        shared: SharedCalls | None = None,
        identity: str = "",
    ) -> None:
        """`shared` holds the calls of all runs that use the same store; without it only this run's calls are joined.

        `identity` separates the replies of one server from those of others; without it the model's name does.
        """
        self.inner = inner
        self.name = inner.name
        self.run_id = run_id
        self.repeat = repeat
        self._identity = identity or inner.name
        self.calls = 0
        """Requests that were passed on to the model."""
        self.hits = 0
        """Requests that were served from a stored reply or joined a call under way."""
        self._replies = RunReplies(store, inner.name, run_id)
        self._shared = shared or SharedCalls()
        self._own: dict[str, SharedCall] = {}

    async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
        """Serve the stored reply, join a call under way, or make the call."""
        key = request_key(self._identity, request, self.repeat)
        while True:
            shared = self._shared.find(key)
            if shared is not None and shared.owner is not self:
                reply = await self._wait_for_other(shared)
                if reply is not None:
                    return CallResult(reply)
                continue  # it brought no reply: call, unless another waiter has begun to already
            reply = self._replies.find(key) if shared is None else None
            self.hits += shared is not None or reply is not None
            if reply is not None:
                return CallResult(reply)
            try:
                result = await self._wait(key, shared or self._begin(key, request), context)
            except TransientError:
                if shared is None:
                    raise
                continue
            if shared is None or not result.is_transient:
                return result  # else an earlier call of this run has failed: call again

    async def _wait_for_other(self, shared: SharedCall) -> ModelReply | None:
        """The reply of another run's call; None where it brings none, whatever the reason."""
        await asyncio.wait((shared.task,))  # neither side cancels the other
        if shared.task.cancelled() or shared.task.exception() is not None:
            return None
        reply = shared.task.result().reply
        if reply is None or not is_cacheable(reply):
            return None
        self.hits += 1
        return self._replies.as_hit(reply, shared.owner_run_id, reply.cost_usd)

    def _begin(self, key: str, request: ModelRequest) -> SharedCall:
        self.calls += 1
        context = CallContext()
        shared = SharedCall(asyncio.create_task(self._run(key, request, context)), context, self, self.run_id)
        shared.task.add_done_callback(_retrieve_exception)
        self._own[key] = shared
        self._shared.begin(key, shared)
        return shared

    async def _wait(self, key: str, shared: SharedCall, context: CallContext) -> CallResult:
        shared.waiting += 1
        shared.context.is_wanted = True
        try:
            return await asyncio.shield(shared.task)
        finally:
            shared.waiting -= 1
            context.attempts += shared.context.attempts
            if not shared.waiting and not shared.has_reply and not shared.task.done():
                self._abandon(key, shared)

    def _abandon(self, key: str, shared: SharedCall) -> None:
        """End a call that no caller of this run waits for. One at the provider will be charged: its reply is stored.

        Waiters of other runs do not keep it alive, because this run would pay for them.
        """
        shared.context.is_wanted = False
        if not shared.context.is_sent:
            shared.task.cancel()
            self._forget(key, shared)

    def _forget(self, key: str, shared: SharedCall) -> None:
        if self._own.get(key) is shared:  # an abandoned call may have been replaced by a later one
            del self._own[key]
        self._shared.end(key, shared)

    async def close(self) -> None:
        """Cancel calls under way and wait for their end. A reply that has arrived is stored first."""
        calls = dict(self._own)
        for key, shared in calls.items():
            if not shared.has_reply:
                shared.task.cancel()
                self._forget(key, shared)
        await asyncio.gather(*(shared.task for shared in calls.values()), return_exceptions=True)

    def paid_usd(self) -> Decimal:
        """What this run has paid for replies, used or not."""
        return self._replies.paid_usd()

    async def _run(self, key: str, request: ModelRequest, context: CallContext) -> CallResult:
        shared = self._own[key]
        try:
            result = await self.inner.call(request, context)
            reply = result.reply
            if reply is not None:
                shared.has_reply = True  # it is paid for from here on, and stored whether or not a caller still waits
                if is_cacheable(reply):
                    more = any(not call.has_reply for call in self._own.values())
                    await self._replies.add(key, reply, more)
                elif reply.cost_usd:
                    await self._replies.add_paid(key, reply)
            return result
        finally:
            self._forget(key, shared)


def _retrieve_exception(task: asyncio.Task[CallResult]) -> None:
    """Mark the exception of a task as retrieved, so that asyncio does not log it when all waiters have left."""
    if not task.cancelled():
        task.exception()
