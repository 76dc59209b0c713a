"""`Limited`: makes a run's calls no faster than their lane allows. Every attempt waits for its turn here."""

from pitboss.core.errors import TransientError
from pitboss.core.intent import NO_USAGE
from pitboss.core.ports import ModelRequest
from pitboss.models.call import CallContext, CallResult, ModelClient
from pitboss.models.failures import Failure
from pitboss.models.lane import Lane


class Limited(ModelClient):
    """Waits for a permit of the lane, calls, and reports to the lane what the response says about limits."""

    def __init__(self, inner: ModelClient, lane: Lane, run_id: str) -> None:
        self.name = inner.name
        self.inner = inner
        self.lane = lane
        self.run_id = run_id

    async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
        """Wait for a permit, call, and release the permit."""
        try:
            permit = await self.lane.acquire(self.run_id, self.lane.need(request))
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
