"""Retries: only where they help, and within the given number and time."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from models.virtual_time import run
from pitboss.core.errors import TransientError, UserError
from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.models.call import CallContext, CallResult, ModelClient
from pitboss.models.failures import Failure
from pitboss.models.retried import Retried

ASK = ModelRequest("", (), ())
DOWN = Failure("retry", "server", "down", status=500)
OK = ModelReply("fine")


class ScriptedClient(ModelClient):
    """Returns the outcomes of a plan in turn, and the last one from then on."""

    name = "example/model"

    def __init__(self, *plan: ModelReply | Failure | CallResult, takes_s: float = 0.0) -> None:
        self.plan, self.takes_s = plan, takes_s
        self.calls = 0
        self.left_s: list[float] = []

    async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
        outcome = self.plan[min(self.calls, len(self.plan) - 1)]
        self.calls += 1
        self.left_s.append(context.left_s)
        with context.sending():
            await asyncio.sleep(min(self.takes_s, context.left_s))
        if isinstance(outcome, CallResult):
            return outcome
        return CallResult(outcome, attempts=1) if isinstance(outcome, ModelReply) else CallResult(None, outcome, 1)


def adapted_failure(failure: Failure) -> CallResult:
    return CallResult(failure=failure, attempts=1, is_adapted=True)


def retried_client(client: Any, **more: Any) -> Retried:
    return Retried(client, **({"random": lambda: 0.5, "attempts": 4, "deadline_s": 120.0} | more))


async def outcome_and_time(model: Retried) -> tuple[Any, float]:
    """The reply or the error, and the time when it came."""
    try:
        found: Any = await model.complete(ASK)
    except (TransientError, UserError) as error:
        found = error
    return found, asyncio.get_running_loop().time()


def test_it_asks_until_there_is_an_answer() -> None:
    client = ScriptedClient(DOWN, DOWN, OK)
    found, at = run(outcome_and_time(retried_client(client)))
    assert (found, client.calls, at) == (OK, 3, pytest.approx(0.75, abs=0.001))


def test_tries_end_and_the_last_failure_is_reported() -> None:
    client = ScriptedClient(DOWN, replace(DOWN, message="still down"))
    found, _ = run(outcome_and_time(retried_client(client, attempts=3)))
    assert isinstance(found, TransientError)
    assert (str(found), client.calls) == ("still down", 3)


@pytest.mark.parametrize("reaction", ["give_up", "user"])
def test_what_cannot_get_better_is_asked_once(reaction: Any) -> None:
    client = ScriptedClient(replace(DOWN, reaction=reaction, status=400))
    found, _ = run(outcome_and_time(retried_client(client)))
    assert isinstance(found, UserError if reaction == "user" else TransientError)
    assert client.calls == 1


def test_an_error_that_is_no_failure_of_a_try_is_passed_on() -> None:
    class AbortingClient(ModelClient):
        name, calls = "m", 0

        async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
            self.calls += 1
            return CallResult(failure=Failure("give_up", "paused", "turned away by the limiter"))

    inner = AbortingClient()
    found, _ = run(outcome_and_time(retried_client(inner)))
    assert (str(found), inner.calls) == ("turned away by the limiter", 1)


def test_the_time_for_a_try_is_what_is_left_of_the_deadline() -> None:
    client = ScriptedClient(DOWN, takes_s=50.0)
    found, at = run(outcome_and_time(retried_client(client, random=lambda: 0.0)))
    assert isinstance(found, TransientError)
    assert client.left_s == pytest.approx([120.0, 70.0, 20.0], abs=0.01)
    assert at == pytest.approx(120.0, abs=0.01)


def test_pauses_count_against_the_deadline_and_one_that_would_pass_it_is_not_begun() -> None:
    client = ScriptedClient(replace(DOWN, wait_s=50.0))
    found, at = run(outcome_and_time(retried_client(client, random=lambda: 0.0)))
    assert isinstance(found, TransientError)
    assert (client.calls, at) == (3, pytest.approx(100.0, abs=0.01))


def test_waiting_for_a_turn_does_not_use_the_deadline_up() -> None:
    class QueueingClient(ModelClient):
        """Waits for an hour before every attempt."""

        name = "m"

        def __init__(self, inner: ModelClient) -> None:
            self.inner = inner

        async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
            await asyncio.sleep(3_600)
            return await self.inner.call(request, context)

    client = ScriptedClient(DOWN, OK, takes_s=1.0)
    found, at = run(outcome_and_time(retried_client(QueueingClient(client))))
    assert (found, at > 7_200) == (OK, True)


def test_a_client_that_has_learnt_is_asked_again_at_once_and_it_is_no_try() -> None:
    client = ScriptedClient(adapted_failure(replace(DOWN, reaction="user", status=400)), OK)
    found, at = run(outcome_and_time(retried_client(client, attempts=1)))
    assert (found, client.calls, at) == (OK, 2, pytest.approx(0.0, abs=0.001))


def test_a_client_that_never_stops_learning_is_left_in_the_end() -> None:
    client = ScriptedClient(adapted_failure(replace(DOWN, reaction="user", status=400)))
    found, _ = run(outcome_and_time(retried_client(client)))
    assert isinstance(found, UserError)
    assert client.calls == 5


def test_without_retries_an_attempt_has_the_whole_time_limit_of_its_client() -> None:
    client = ScriptedClient(OK)
    assert run(client.complete(ASK)) == OK
    assert client.left_s == [float("inf")]


def test_two_questions_at_once_have_a_deadline_each() -> None:
    async def both() -> None:
        client = ScriptedClient(DOWN, takes_s=50.0)
        await asyncio.gather(*(outcome_and_time(retried_client(client, random=lambda: 0.0)) for _ in range(2)))
        assert sorted(client.left_s) == pytest.approx([20.0, 20.0, 70.0, 70.0, 120.0, 120.0], abs=0.01)

    run(both())


def test_the_result_counts_all_attempts_and_everything_that_is_uncertain() -> None:
    late = CallResult(failure=DOWN, attempts=1, uncertain_usd=Decimal(2))
    client = ScriptedClient(late, late, CallResult(OK, attempts=1))
    result = run(retried_client(client).call(ASK, CallContext()))
    assert (result.reply, result.attempts, result.uncertain_usd) == (OK, 3, 4)
