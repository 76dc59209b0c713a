"""The first call of a run is sent alone, and its outcome decides whether others are sent."""

import asyncio
from typing import Any

import pytest

from pitboss.core.errors import ModelUnavailable, TransientError
from pitboss.core.ports import Message, ModelReply, ModelRequest
from pitboss.models.call import CallContext, CallResult, ModelClient
from pitboss.models.failures import Failure
from pitboss.models.first_call import FirstCall

DOWN = CallResult(failure=Failure("retry", "unreachable", "groq/x: nothing answers"))
UP = CallResult(ModelReply("yes"))


class ControlledClient(ModelClient):
    """A client whose calls end when the test sets their result."""

    name = "groq/x"

    def __init__(self) -> None:
        self.under_way: list[asyncio.Future[CallResult]] = []

    async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
        self.under_way.append(asyncio.get_running_loop().create_future())
        return await self.under_way[-1]


async def started_calls(model: FirstCall, count: int) -> "list[asyncio.Task[CallResult]]":
    """Start `count` calls at once; return when every call that can begin has begun."""
    request = ModelRequest("", (Message("user", "?"),), (), None, {})
    tasks = [asyncio.create_task(model.call(request, CallContext())) for _ in range(count)]
    await run_pending_callbacks()
    return tasks


async def run_pending_callbacks() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_the_others_wait_for_the_first_and_are_then_sent_together() -> None:
    async def story() -> None:
        inner = ControlledClient()
        tasks = await started_calls(FirstCall(inner), 4)
        assert len(inner.under_way) == 1
        inner.under_way[0].set_result(UP)
        await run_pending_callbacks()
        assert len(inner.under_way) == 4
        for call in inner.under_way[1:]:
            call.set_result(DOWN)
        later = await asyncio.gather(*tasks[1:])
        assert [result.failure for result in later] == [DOWN.failure] * 3, "a later failure is an ordinary one"
        with pytest.raises(TransientError) as raised:
            later[0].reply_or_raise()
        assert not isinstance(raised.value, ModelUnavailable)

    asyncio.run(story())


@pytest.mark.parametrize("reaction", ["retry", "give_up"])
def test_after_a_failed_first_call_nothing_is_sent_and_the_run_ends(reaction: Any) -> None:
    async def story() -> None:
        inner = ControlledClient()
        model = FirstCall(inner)
        tasks = await started_calls(model, 3)
        inner.under_way[0].set_result(CallResult(failure=Failure(reaction, "x", "groq/x: nothing answers")))
        for task in (*tasks, *await started_calls(model, 1)):
            with pytest.raises(ModelUnavailable, match="nothing answers"):
                (await task).reply_or_raise()
        assert len(inner.under_way) == 1

    asyncio.run(story())


def test_a_first_call_that_is_given_up_leaves_its_turn_to_the_next() -> None:
    async def story() -> None:
        inner = ControlledClient()
        first, second = await started_calls(FirstCall(inner), 2)
        first.cancel()
        await run_pending_callbacks()
        assert len(inner.under_way) == 2
        inner.under_way[1].set_result(UP)
        assert (await second).reply == UP.reply

    asyncio.run(story())
