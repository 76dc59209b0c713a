"""`Limited`: makes a run's calls no faster than their lane allows. Every attempt waits for its turn here."""

from pitboss.core.errors import TransientError
from pitboss.core.intent import NO_USAGE
from pitboss.core.ports import ModelRequest
from pitboss.models.call import CallContext, CallResult, ModelClient
from pitboss.models.failures import Failure
from pitboss.models.lane import Lane
from pitboss.models.providers import MAX_TOKENS


class Limited(ModelClient):
    """Waits for a permit of the lane, calls, and reports to the lane what the response says about limits."""

    def __init__(self, inner: ModelClient, lane: Lane, run_id: str, *, max_tokens: int = MAX_TOKENS) -> None:
        self.name = inner.name
        self.inner = inner
        self.lane = lane
        self.run_id = run_id
        self._max_tokens = max_tokens

    async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
        """Wait, call, and free the place."""
        max_tokens = request.settings.get("max_tokens")
        token_limit = max_tokens if isinstance(max_tokens, int) and max_tokens > 0 else self._max_tokens
        try:
            permit = await self.lane.acquire(self.run_id, self.lane.need(request, token_limit))
        except TransientError as error:
            return CallResult(failure=Failure("give_up", "paused", str(error)))
        usage, attempts = NO_USAGE, 1
        try:
            result = await self.inner.call(request, context)
            attempts = result.attempts
            if result.reply is not None:
                usage = result.reply.usage
            if result.status:
                self.lane.learn(result.headers, result.status, permit)
            return result
        finally:
            self.lane.release(permit, usage, attempts)
