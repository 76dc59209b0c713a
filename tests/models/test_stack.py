"""Budget, limiter and retries together, as a run has them: every try waits its turn and is paid for, and none is forgotten."""

import asyncio
from collections.abc import Callable, Coroutine
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.virtual_time import run, virtual_lane
from pitboss.core.errors import BudgetExceeded, TransientError, UserError
from pitboss.core.intent import Usage
from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.models.budget import Budget
from pitboss.models.budgeted import Budgeted
from pitboss.models.call import CallContext, CallResult, ModelClient
from pitboss.models.failures import Failure
from pitboss.models.lane import Lane
from pitboss.models.limited import Limited
from pitboss.models.priced import Priced
from pitboss.models.prices import flat
from pitboss.models.retried import Retried

PRICE = flat(0, 10_000)  # a cent a token of the answer: with 100 tokens asked for, no call costs more than a dollar
ASK = ModelRequest("", (), (), settings={"max_tokens": 100})
DOLLAR, CENT = Decimal(1), Decimal("0.01")
LATE = Failure("retry", "timeout", "no answer")
REFUSED = Failure("retry", "busy", "too busy", status=429)
OK = ModelReply("fine", usage=Usage(1, 5), cost_usd=None)

Outcome = ModelReply | Failure


class ScriptedClient(ModelClient):
    """Takes `takes_s` per attempt and returns the outcomes of a plan in turn, the last one from then on."""

    name = "example/model"

    def __init__(self, *plan: Outcome, takes_s: float = 1.0) -> None:
        self.plan, self.takes_s = list(plan), takes_s
        self.sent_at: list[float] = []
        self.charged = Decimal(0)
        """What a merciless provider has charged: everything for whatever it did not refuse."""

    async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
        outcome = self.plan[min(len(self.sent_at), len(self.plan) - 1)]
        self.sent_at.append(asyncio.get_running_loop().time())
        if isinstance(outcome, ModelReply):
            self.charged += CENT * outcome.usage.output_tokens
        elif outcome.may_be_charged:
            self.charged += DOLLAR
        with context.sending():
            await asyncio.sleep(min(self.takes_s, context.left_s))
        return CallResult(outcome, attempts=1) if isinstance(outcome, ModelReply) else CallResult(None, outcome, 1)


def client_stack(
    client: ScriptedClient, budget: Budget, shared_lane: Lane, run_id: str = "a", **patience: Any
) -> Retried:
    inner = Budgeted(Priced(Limited(client, shared_lane, run_id), PRICE), budget, PRICE)
    return Retried(inner, **({"random": lambda: 0.0, "attempts": 4, "deadline_s": 120.0} | patience))


def test_a_try_that_timed_out_counts_at_its_worst_even_if_a_later_one_succeeds() -> None:
    budget = Budget(DOLLAR * 3)
    client = ScriptedClient(LATE, OK)
    reply = run(client_stack(client, budget, virtual_lane()).complete(ASK))
    assert (reply.text, reply.cost_usd) == ("fine", 5 * CENT)
    assert (budget.spent, budget.uncertain, budget.reserved) == (5 * CENT, DOLLAR, 0)


def test_a_try_that_was_refused_costs_nothing() -> None:
    budget = Budget(DOLLAR)
    run(client_stack(ScriptedClient(REFUSED, REFUSED, OK), budget, virtual_lane()).complete(ASK))
    assert (budget.spent, budget.uncertain, budget.reserved) == (5 * CENT, 0, 0)


def test_no_try_is_made_that_the_budget_cannot_pay_after_those_before_it() -> None:
    budget, client = Budget(DOLLAR * Decimal("2.5")), ScriptedClient(LATE)
    with pytest.raises(BudgetExceeded):
        run(client_stack(client, budget, virtual_lane()).complete(ASK))
    assert len(client.sent_at) == 2
    assert budget.uncertain == client.charged == 2 * DOLLAR


def test_every_try_waits_for_its_turn_in_the_limiter() -> None:
    client = ScriptedClient(REFUSED, REFUSED, OK, takes_s=0.0)
    run(client_stack(client, Budget(), virtual_lane(rpm=1)).complete(ASK))
    assert client.sent_at == pytest.approx([0.0, 60.0, 120.0], abs=0.01)


def test_a_pause_between_attempts_occupies_no_slot() -> None:
    async def main() -> None:
        shared_lane = virtual_lane(most=1)
        slow = ScriptedClient(Failure("retry", "busy", "busy", wait_s=50.0, status=429), OK)
        quick = ScriptedClient(OK)
        first = asyncio.create_task(client_stack(slow, Budget(), shared_lane).complete(ASK))
        await asyncio.sleep(2)
        await client_stack(quick, Budget(), shared_lane, "b").complete(ASK)
        assert quick.sent_at == pytest.approx([2.0], abs=0.001)
        await first

    run(main())


def test_a_call_that_is_cancelled_while_it_waits_for_its_turn_costs_nothing_and_leaves_its_place() -> None:
    async def main() -> None:
        shared_lane, budget, client = (
            virtual_lane(tpm=100, most=8),
            Budget(DOLLAR * 10),
            ScriptedClient(OK, takes_s=10.0),
        )
        model = client_stack(client, budget, shared_lane)
        first = asyncio.create_task(model.complete(ASK))
        waiting = [asyncio.create_task(model.complete(ASK)) for _ in range(3)]
        await asyncio.sleep(1)
        assert (len(client.sent_at), budget.reserved) == (1, 4 * DOLLAR)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert (budget.uncertain, budget.reserved, shared_lane.under_way, shared_lane.waiting) == (0, DOLLAR, 1, 0)
        await first
        await model.complete(ASK)  # nothing of theirs is left in the quota of tokens
        assert client.sent_at[1] < 71

    run(main())


def test_a_call_that_was_sent_and_is_cancelled_may_have_been_charged() -> None:
    async def main() -> None:
        budget, client = Budget(DOLLAR * 10), ScriptedClient(OK, takes_s=10.0)
        task = asyncio.create_task(client_stack(client, budget, virtual_lane()).complete(ASK))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert (budget.uncertain, budget.reserved) == (DOLLAR, 0)

    run(main())


def test_a_call_that_the_limiter_turns_away_costs_nothing() -> None:
    async def main() -> None:
        shared_lane, budget, client = virtual_lane(), Budget(DOLLAR * 10), ScriptedClient(OK)
        shared_lane.learn({"retry-after": "7200"}, 429)
        with pytest.raises(TransientError, match="no more calls"):
            await client_stack(client, budget, shared_lane).complete(ASK)
        assert (budget.uncertain, budget.reserved, client.sent_at) == (0, 0, [])

    run(main())


outcomes = st.lists(
    st.sampled_from(
        [
            OK, LATE, REFUSED,
            Failure("retry", "server", "500", status=500),
            Failure("retry", "unreachable", "nobody there"),
            Failure("give_up", "too_long", "too long", status=400),
            Failure("retry", "busy", "wait", wait_s=7.0, status=429),
        ]
    ),
    min_size=1,
    max_size=6,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(outcomes, st.integers(0, 40), st.one_of(st.none(), st.integers(0, 200))), min_size=1, max_size=8
    ),
    st.integers(0, 12),
    st.integers(1, 6),
    st.integers(1, 3),
)
def test_whatever_happens_the_cap_holds_the_rate_holds_and_nothing_stays_set_aside(
    calls: list[tuple[list[Outcome], int, int | None]], dollars: int, rpm: int, most: int
) -> None:
    async def main() -> None:
        budget, shared_lane = Budget(DOLLAR * dollars), virtual_lane(rpm=rpm, most=most)
        clients = [ScriptedClient(*plan, takes_s=3.0) for plan, _, _ in calls]
        loop = asyncio.get_running_loop()

        async def ask(number: int, start: int) -> None:
            await asyncio.sleep(start)
            await client_stack(clients[number], budget, shared_lane, f"run {number % 3}").complete(ASK)

        tasks = [asyncio.create_task(ask(number, start)) for number, (_, start, _) in enumerate(calls)]
        for task, (_, _, cancel_s) in zip(tasks, calls, strict=True):
            if cancel_s is not None:
                loop.call_later(cancel_s, task.cancel)
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        for end in ended:
            assert end is None or isinstance(end, TransientError | UserError | BudgetExceeded | asyncio.CancelledError)
        charged = sum((client.charged for client in clients), Decimal(0))
        assert charged <= budget.spent + budget.uncertain <= budget.limit_usd  # type: ignore[operator]
        assert (budget.reserved, shared_lane.under_way, shared_lane.waiting) == (0, 0, 0)
        sent_times = sorted(at for client in clients for at in client.sent_at)
        assert all(later - first >= 60 for first, later in zip(sent_times, sent_times[rpm:], strict=False))

    run(main())


class CancelAtStep:
    """Cancels a task before its step of a number, so that a test can try every place where it waits."""

    def __init__(self, work: Coroutine[Any, Any, Any], cancel_at: int) -> None:
        self.work, self.cancel_at, self.steps_taken = work, cancel_at, 0

    def __await__(self) -> Any:
        inner = self.work.__await__()
        value, error = None, None
        while True:
            try:
                waits_for = inner.send(value) if error is None else inner.throw(error)
            except StopIteration as done:
                return done.value
            error = None
            self.steps_taken += 1
            if self.steps_taken == self.cancel_at:
                if waits_for is not None:
                    waits_for._asyncio_future_blocking = False
                error = asyncio.CancelledError()
                continue
            try:
                value = yield waits_for
            except BaseException as thrown:  # noqa: BLE001 – handed on to the coroutine, as a task would
                error = thrown


def cancel_at_step(make: Callable[[], Coroutine[Any, Any, Any]], cancel_at: int) -> CancelAtStep:
    return CancelAtStep(make(), cancel_at)


def test_a_call_can_be_cancelled_wherever_it_waits_and_leaves_nothing_behind() -> None:
    steps_seen: set[str] = set()

    async def main(cancel_at: int) -> bool:
        shared_lane, budget = virtual_lane(rpm=2, most=1), Budget(DOLLAR * Decimal("1.5"))
        client = ScriptedClient(LATE, OK, takes_s=2.0)
        competitor = asyncio.create_task(
            client_stack(ScriptedClient(OK, takes_s=5.0), budget, shared_lane, "b").complete(ASK)
        )
        await asyncio.sleep(0)
        total_steps = cancel_at_step(lambda: client_stack(client, budget, shared_lane).complete(ASK), cancel_at)
        cancelled = False
        try:
            await total_steps
        except asyncio.CancelledError:
            cancelled = True
            steps_seen.add(f"sent {len(client.sent_at)}, uncertain {budget.uncertain}")
        except BudgetExceeded:
            pass
        await competitor
        assert (budget.reserved, shared_lane.under_way, shared_lane.waiting) == (0, 0, 0)
        assert client.charged <= budget.spent + budget.uncertain
        if not client.sent_at:
            assert budget.uncertain == 0
        return cancelled

    cancel_at = 1
    while run(main(cancel_at)):
        cancel_at += 1
        assert cancel_at < 100
    assert cancel_at > 2  # it waits for money or its turn, and for the answer
    assert {"sent 0, uncertain 0", "sent 1, uncertain 1"} <= steps_seen
