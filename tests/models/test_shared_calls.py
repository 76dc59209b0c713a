"""Equal requests of several runs at once: one call, one payer, and no waiter that waits for ever."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.reply_store import MemoryReplyStore, StoredReply
from models.virtual_time import run
from pitboss.core.errors import BudgetExceeded, TransientError, UserError
from pitboss.core.money import ZERO
from pitboss.core.ports import Message, ModelReply, ModelRequest
from pitboss.models.cached import Cached
from pitboss.models.call import CallContext, CallResult, DirectClient, ModelClient
from pitboss.models.failures import Failure
from pitboss.models.request_key import request_key
from pitboss.models.retried import Retried
from pitboss.models.shared_calls import SharedCalls

CENT = Decimal("0.01")
DOWN = Failure("retry", "busy", "busy", status=503)
WRONG = Failure("user", "auth", "the key is wrong", status=401)
HALFWAY = ModelReply(finish_reason="error", problem="the provider could not take the reply (OTHER)")


def question(name: str) -> ModelRequest:
    return ModelRequest("Be calm.", (Message("user", name),), (), None, {})


class UniqueReplyStore(MemoryReplyStore):
    """A reply store that takes a moment for every write and accepts one reply per key."""

    async def put(
        self, key: str, model: str, run_id: str, cost_usd: Decimal | None, reply: ModelReply, more: bool = False
    ) -> None:
        await asyncio.sleep(0.01)
        assert key not in self.rows, "the same question was paid for twice"
        self.rows[key] = StoredReply(run_id, cost_usd, reply)


class ChargingProvider(ModelClient):
    """Takes `takes_s` per call, fails as `fails` says, and charges for every reply."""

    name = "example/model"

    def __init__(self, fails: dict[str, list[ModelReply | Failure]] | None = None, takes_s: float = 1.0) -> None:
        self.fails, self.takes_s = fails or {}, takes_s
        self.requests, self.answered = Counter[str](), Counter[str]()

    async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
        name = request.messages[0].text
        self.requests[name] += 1
        with context.sending():
            await asyncio.sleep(self.takes_s)
        if self.fails.get(name):
            fault = self.fails[name].pop(0)
            return CallResult(fault, attempts=1) if isinstance(fault, ModelReply) else CallResult(None, fault, 1)
        self.answered[name] += 1
        return CallResult(ModelReply(f"{name}!", cost_usd=CENT, latency_ms=90.0), attempts=1)


class RunsWithSharedCalls:
    """Runs that share a reply store, with or without shared calls in flight."""

    def __init__(self, provider: ChargingProvider) -> None:
        self.provider, self.shelf, self.flights = provider, UniqueReplyStore(), SharedCalls()

    def run(self, run_id: str, repeat: int = 0, attempts: int = 1) -> Cached:
        asking = Retried(self.provider, random=lambda: 1.0, attempts=attempts)
        return Cached(asking, self.shelf, run_id, repeat, self.flights)


def money(reply: ModelReply) -> tuple[Decimal | None, Decimal]:
    return reply.cost_usd, reply.saved_usd


def test_who_asked_first_pays_and_who_waited_has_saved_it() -> None:
    async def main() -> None:
        room = RunsWithSharedCalls(ChargingProvider())
        first, *waiters = [room.run(f"run{number}") for number in range(4)]
        replies = await asyncio.gather(*(run.complete(question("up?")) for run in (first, *waiters)))
        assert [reply.text for reply in replies] == ["up?!"] * 4
        assert [money(reply) for reply in replies] == [(CENT, ZERO)] + [(ZERO, CENT)] * 3
        assert [reply.latency_ms for reply in replies] == [90.0, 0.0, 0.0, 0.0]
        assert (room.provider.requests["up?"], first.calls, [run.hits for run in waiters]) == (1, 1, [1, 1, 1])
        assert [room.shelf.paid_usd(run.run_id) for run in (first, *waiters)] == [CENT, ZERO, ZERO, ZERO]

    run(main())


def test_repeats_are_questions_of_their_own_and_other_rooms_are_not_heard() -> None:
    async def main() -> None:
        room = RunsWithSharedCalls(ChargingProvider())
        elsewhere = RunsWithSharedCalls(room.provider)
        requests = [room.run("a", 0), room.run("b", 1), room.run("c", 1), elsewhere.run("d", 0)]
        await asyncio.gather(*(run.complete(question("up?")) for run in requests))
        assert room.provider.answered["up?"] == 3

    run(main())


@pytest.mark.parametrize("sent", [False, True])
def test_one_whose_call_is_given_up_by_its_run_asks_for_himself(sent: bool) -> None:
    async def main() -> None:
        room = RunsWithSharedCalls(ChargingProvider())
        first, second, third = room.run("first"), room.run("second"), room.run("third")
        leaving = asyncio.create_task(first.complete(question("up?")))
        await asyncio.sleep(0.5 if sent else 0)
        staying = [asyncio.create_task(run.complete(question("up?"))) for run in (second, third)]
        await asyncio.sleep(0)
        leaving.cancel()
        await first.close()
        replies = await asyncio.gather(*staying)
        assert [money(reply) for reply in replies] == [(CENT, ZERO), (ZERO, CENT)]
        assert room.provider.answered["up?"] == 1
        assert first.paid_usd() == ZERO

    run(main())


def test_what_its_run_lost_after_it_was_sent_still_serves_the_others_and_is_paid_by_who_sent_it() -> None:
    async def main() -> None:
        room = RunsWithSharedCalls(ChargingProvider())
        first, second = room.run("first"), room.run("second")
        leaving = asyncio.create_task(first.complete(question("up?")))
        await asyncio.sleep(0.5)
        staying = asyncio.create_task(second.complete(question("up?")))
        await asyncio.sleep(0)
        leaving.cancel()
        assert money(await staying) == (ZERO, CENT)
        assert first.paid_usd() == CENT

    run(main())


def test_one_who_waits_for_another_and_leaves_takes_nothing_along() -> None:
    async def main() -> None:
        room = RunsWithSharedCalls(ChargingProvider())
        staying = asyncio.create_task(room.run("first").complete(question("up?")))
        await asyncio.sleep(0.5)
        leaving = asyncio.create_task(room.run("second").complete(question("up?")))
        await asyncio.sleep(0)
        leaving.cancel()
        assert money(await staying) == (CENT, ZERO)
        assert leaving.cancelled()

    run(main())


class FailingModel:
    """The model stack of a run that fails before any request is sent, for its own budget or key."""

    name = "example/model"

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def complete(self, request: ModelRequest) -> ModelReply:
        await asyncio.sleep(0.1)
        raise self.error


@pytest.mark.parametrize("error", [BudgetExceeded("spent"), UserError("no key"), TransientError("busy")])
def test_what_is_the_matter_with_one_run_is_not_passed_on_to_another(error: Exception) -> None:
    async def main() -> None:
        room = RunsWithSharedCalls(ChargingProvider())
        poor = Cached(DirectClient(FailingModel(error)), room.shelf, "poor", 0, room.flights)
        requests = [poor, room.run("rich"), room.run("third")]
        ended = await asyncio.gather(*(run.complete(question("up?")) for run in requests), return_exceptions=True)
        assert (type(ended[0]), str(ended[0])) == (type(error), str(error))
        assert [money(run) for run in ended[1:] if isinstance(run, ModelReply)] == [(CENT, ZERO), (ZERO, CENT)]

    run(main())


def test_a_reply_that_is_no_answer_is_for_who_got_it_and_the_next_one_asks_again() -> None:
    async def main() -> None:
        room = RunsWithSharedCalls(ChargingProvider({"up?": [HALFWAY]}))
        first, second = await asyncio.gather(
            room.run("first").complete(question("up?")), room.run("second").complete(question("up?"))
        )
        assert (first.finish_reason, second.text, money(second)) == ("error", "up?!", (CENT, ZERO))

    run(main())


def test_a_call_that_a_closed_loop_left_behind_is_not_waited_for() -> None:
    room = RunsWithSharedCalls(ChargingProvider())

    async def leave() -> None:
        asyncio.create_task(room.run("first").complete(question("up?")))  # noqa: RUF006 - that is the point
        await asyncio.sleep(0.5)

    run(leave())
    reply = run(room.run("second").complete(question("up?")))
    assert money(reply) == (CENT, ZERO)


# Random runs --------------------------------------------------------------------------------------------------------

TENTHS = st.integers(0, 25).map(lambda tenths: tenths / 10)
MISHAPS = st.sampled_from((DOWN, WRONG, HALFWAY))


@dataclass(frozen=True)
class PlannedRequest:
    run: int
    question: str
    after_s: float
    leaves_s: float | None
    """How long it waits before it is cancelled."""


@dataclass(frozen=True)
class CallPlan:
    asks: list[PlannedRequest]
    closes: dict[int, float]
    """When whole runs stop."""
    fails: dict[str, list[ModelReply | Failure]]
    repeats: tuple[int, ...]
    attempts: int


@st.composite
def plans(draw: st.DrawFn) -> CallPlan:
    names = st.sampled_from("abc")
    asks = st.builds(PlannedRequest, st.integers(0, 5), names, TENTHS, st.none() | TENTHS)
    return CallPlan(
        draw(st.lists(asks, min_size=1, max_size=24)),
        draw(st.dictionaries(st.integers(0, 5), TENTHS, max_size=3)),
        draw(st.dictionaries(names, st.lists(MISHAPS, max_size=4))),
        draw(st.tuples(*[st.integers(0, 1)] * 6)),
        draw(st.integers(1, 3)),
    )


@given(plans())
@settings(max_examples=60, deadline=None)
def test_every_shared_question_is_paid_once_and_no_waiter_waits_for_ever(plan: CallPlan) -> None:
    fails = {name: list(mishaps) for name, mishaps in plan.fails.items()}
    room = RunsWithSharedCalls(ChargingProvider(fails))
    runs = [room.run(f"run{number}", repeat, plan.attempts) for number, repeat in enumerate(plan.repeats)]

    async def complete_ask(ask: PlannedRequest) -> ModelReply:
        await asyncio.sleep(ask.after_s)
        if ask.leaves_s is None:
            return await runs[ask.run].complete(question(ask.question))
        async with asyncio.timeout(ask.leaves_s):
            return await runs[ask.run].complete(question(ask.question))

    async def closed(number: int, after_s: float) -> None:
        await asyncio.sleep(after_s)
        await runs[number].close()

    async def main() -> list[ModelReply | BaseException]:
        tasks = [asyncio.create_task(complete_ask(ask)) for ask in plan.asks]
        stops = [asyncio.create_task(closed(*run)) for run in plan.closes.items()]
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*stops)
        for client in runs:
            await client.close()
        return ended

    ended = run(main())  # where everybody waits for nothing, the loop says so

    rows: Counter[str] = Counter()
    for ask, end in zip(plan.asks, ended, strict=True):
        key = request_key("example/model", question(ask.question), plan.repeats[ask.run])
        if isinstance(end, ModelReply) and end.finish_reason != "error":
            assert end.text == f"{ask.question}!"
            ours = room.shelf.rows[key].run_id == f"run{ask.run}"
            assert money(end) == ((CENT, ZERO) if ours else (ZERO, CENT))
            rows[key] += 1
        elif isinstance(end, ModelReply):
            assert HALFWAY in plan.fails.get(ask.question, ()), "another's failed reply was passed on"
        elif isinstance(end, asyncio.CancelledError):
            assert ask.run in plan.closes, "a call that another gave up took somebody along"
        elif isinstance(end, TimeoutError):
            assert ask.leaves_s is not None
        else:
            assert isinstance(end, TransientError | UserError)
            assert plan.fails.get(ask.question), "nothing failed"
    # `Shelf.put` has seen to it that no question was paid for twice
    assert set(rows) <= set(room.shelf.rows)
    assert sum(room.provider.answered.values()) >= len(room.shelf.rows)
    if not plan.closes:
        assert sum(room.provider.answered.values()) == len(room.shelf.rows), "an answer that was given was not kept"
    names = [request_key("example/model", question(name), repeat) for name in "abc" for repeat in (0, 1)]
    assert not any(run._shared._under_way or run._own for run in runs)
    assert sum((run.paid_usd() for run in runs), ZERO) == CENT * sum(key in room.shelf.rows for key in names)
