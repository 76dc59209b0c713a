"""The cache of replies: one call for equal requests, and the cost is charged to the payer."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from models.reply_store import MemoryReplyStore
from models.virtual_time import run
from pitboss.core.errors import TransientError
from pitboss.core.money import ZERO
from pitboss.core.ports import Message, ModelReply, ModelRequest, ToolCall, ToolSpec
from pitboss.models.cached import Cached
from pitboss.models.call import CallContext, CallResult, DirectClient, ModelClient
from pitboss.models.chat import reply
from pitboss.models.failures import Failure
from pitboss.models.request_key import request_key
from pitboss.models.retried import Retried
from pitboss.models.scripted import ScriptedModel as Scripted
from pitboss.models.scripted import says

CENT = Decimal("0.01")
TOOL = ToolSpec("look", "Looks.", {"type": "object", "properties": {"id": {"type": "string"}}})
ASKED = ModelRequest("Be calm.", (Message("user", "What now?"),), (TOOL,), None, {"temperature": 0})


class BlockingModel:
    """A model whose call returns once `let` is set."""

    name = "slow/one"

    def __init__(self, reply: ModelReply | Exception) -> None:
        self.reply, self.call_count, self.cancelled = reply, 0, 0
        self.let = asyncio.Event()

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.call_count += 1
        try:
            await self.let.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


def priced_reply(text: str = "hold", cost: Decimal | None = CENT, **more: Any) -> ModelReply:
    return ModelReply(text, cost_usd=cost, latency_ms=90.0, **more)


def ask(model: Cached, request: ModelRequest = ASKED) -> ModelReply:
    return asyncio.run(model.complete(request))


def test_an_equal_question_is_not_asked_again():
    shelf = MemoryReplyStore()
    model = Cached(DirectClient(Scripted([priced_reply()])), shelf, "run1")

    first, second = ask(model), ask(model)

    assert (first.text, second.text) == ("hold", "hold")
    assert (model.calls, model.hits) == (1, 1)
    assert second.latency_ms == 0


def test_a_hit_that_this_run_paid_for_counts_as_spent():
    shelf = MemoryReplyStore()
    model = Cached(DirectClient(Scripted([priced_reply()])), shelf, "run1")
    ask(model)

    again = ask(Cached(DirectClient(Scripted([])), shelf, "run1"))

    assert (again.cost_usd, again.saved_usd) == (CENT, ZERO)
    assert model.paid_usd() == CENT


def test_a_hit_that_another_run_paid_for_counts_as_saved():
    shelf = MemoryReplyStore()
    ask(Cached(DirectClient(Scripted([priced_reply()])), shelf, "run1"))

    again = ask(Cached(DirectClient(Scripted([])), shelf, "run2"))

    assert (again.cost_usd, again.saved_usd) == (ZERO, CENT)


@pytest.mark.parametrize(("run_id", "cost"), [("run1", None), ("run2", ZERO)])
def test_an_unknown_cost_stays_unknown_to_the_payer_and_counts_as_no_saving(run_id, cost):
    shelf = MemoryReplyStore()
    ask(Cached(DirectClient(Scripted([priced_reply(cost=None)])), shelf, "run1"))

    again = ask(Cached(DirectClient(Scripted([])), shelf, run_id))

    assert (again.cost_usd, again.saved_usd) == (cost, ZERO)


def test_the_answer_is_kept_before_it_is_given():
    shelf = MemoryReplyStore()

    ask(Cached(DirectClient(Scripted([priced_reply()])), shelf, "run1"))

    assert [row.reply.text for row in shelf.rows.values()] == ["hold"]


def parsed_reply(finish_reason: str, **message: Any) -> ModelReply:
    """A reply as the chat client reads it."""
    said = {"role": "assistant", "content": None, **message}
    result = reply.read({"choices": [{"finish_reason": finish_reason, "message": said}]}, "groq/m")
    assert isinstance(result, ModelReply)
    return result


@pytest.mark.parametrize(
    ("said", "is_kept"),
    [
        (parsed_reply("stop", refusal="I will not."), True),
        (parsed_reply("content_filter"), True),
        (parsed_reply("length", content="cut o"), True),
        (parsed_reply("stop"), True),
        (ModelReply(finish_reason="error", problem="the model refused"), True),
        (ModelReply(finish_reason="error", problem="the provider blocked the question: SAFETY"), True),
        (ModelReply(finish_reason="error", problem="the reply was blocked by the provider's filter (SAFETY)"), True),
        (parsed_reply("error"), False),
        (parsed_reply("malformed_function_call"), False),
        (ModelReply(finish_reason="error", problem="the provider could not take the reply (OTHER)"), False),
    ],
)
def test_a_failure_of_the_provider_is_not_kept_and_a_refusal_is_an_answer_like_any_other(said, is_kept):
    shelf = MemoryReplyStore()
    model = Cached(DirectClient(Scripted([said, says("hold")])), shelf, "run1")

    ask(model)

    assert bool(shelf.rows) is is_kept


def test_equal_questions_at_once_share_one_call():
    async def main() -> tuple[int, list[str]]:
        slow = BlockingModel(priced_reply())
        model = Cached(DirectClient(slow), MemoryReplyStore(), "run1")
        waiting = [asyncio.create_task(model.complete(ASKED)) for _ in range(5)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        slow.let.set()
        return slow.call_count, [reply.text for reply in await asyncio.gather(*waiting)]

    assert asyncio.run(main()) == (1, ["hold"] * 5)


def test_the_last_answer_of_several_that_come_together_is_kept_without_waiting_for_more():
    class RecordingStore(MemoryReplyStore):
        """Also records whether each reply was stored with the hint that more are under way."""

        def __init__(self) -> None:
            super().__init__()
            self.more: list[bool] = []

        async def put(
            self, key: str, model: str, run_id: str, cost_usd: Decimal | None, reply: ModelReply, more: bool = False
        ) -> None:
            self.more.append(more)
            await super().put(key, model, run_id, cost_usd, reply)

    async def story() -> list[bool]:
        inner, shelf = BlockingModel(priced_reply()), RecordingStore()
        model = Cached(DirectClient(inner), shelf, "run1")
        asked = [asyncio.create_task(model.complete(replace(ASKED, system=f"system {n}"))) for n in range(3)]
        for _ in range(3):
            await asyncio.sleep(0)
        assert inner.call_count == 3
        inner.let.set()
        await asyncio.gather(*asked)
        return shelf.more

    assert asyncio.run(story()) == [True, True, False]


def test_one_who_leaves_does_not_take_the_call_from_the_others():
    async def main() -> tuple[str, int]:
        slow = BlockingModel(priced_reply())
        model = Cached(DirectClient(slow), MemoryReplyStore(), "run1")
        leaving, staying = [asyncio.create_task(model.complete(ASKED)) for _ in range(2)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.sleep(0)
        slow.let.set()
        return (await staying).text, slow.cancelled

    assert asyncio.run(main()) == ("hold", 0)


def test_a_call_without_waiters_is_cancelled_and_can_be_repeated():
    async def main() -> tuple[int, str]:
        slow = BlockingModel(priced_reply())
        model = Cached(DirectClient(slow), MemoryReplyStore(), "run1")
        leaving = asyncio.create_task(model.complete(ASKED))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        slow.let.set()
        again = await model.complete(ASKED)
        return slow.cancelled, again.text

    assert asyncio.run(main()) == (1, "hold")


def test_an_answer_that_has_come_is_kept_although_who_asked_has_left():
    async def main() -> int:
        slow, shelf = BlockingModel(priced_reply()), MemoryReplyStore()
        model = Cached(DirectClient(slow), shelf, "run1")
        leaving = asyncio.create_task(model.complete(ASKED))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        slow.let.set()
        await asyncio.sleep(0)  # answered, and on its way to the shelf
        leaving.cancel()
        for _ in range(4):
            await asyncio.sleep(0)
        return len(shelf.rows)

    assert asyncio.run(main()) == 1


class BlockingClient(ModelClient):
    """A client that makes one attempt after another, each once `let` is set."""

    name = "slow/one"

    def __init__(self, *plan: ModelReply | Failure) -> None:
        self.plan, self.call_count, self.cancelled = list(plan), 0, 0
        self.was_sent, self.let = asyncio.Event(), asyncio.Event()

    async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
        self.call_count += 1
        self.was_sent.set()
        try:
            with context.sending():
                await self.let.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        outcome = self.plan.pop(0)
        return CallResult(outcome, attempts=1) if isinstance(outcome, ModelReply) else CallResult(None, outcome, 1)


BUSY = Failure("retry", "busy", "busy", status=429)


def cached_client(client: BlockingClient, shelf: MemoryReplyStore) -> Cached:
    return Cached(Retried(client, random=lambda: 1.0), shelf, "run1")


async def abandon_request(model: Cached, client: BlockingClient) -> None:
    """Send a request, and cancel it once it has reached the provider."""
    leaving = asyncio.create_task(model.complete(ASKED))
    await client.was_sent.wait()
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)


def test_the_answer_to_a_sent_question_is_awaited_and_cached_without_waiters():
    async def main() -> None:
        client, shelf = BlockingClient(priced_reply()), MemoryReplyStore()
        model = cached_client(client, shelf)
        await abandon_request(model, client)
        next_one = asyncio.create_task(model.complete(ASKED))
        await asyncio.sleep(0)
        client.let.set()
        assert (await next_one).text == "hold"
        assert (client.call_count, client.cancelled, len(shelf.rows)) == (1, 0, 1)

    run(main())


def test_a_question_without_waiters_is_not_retried():
    async def main() -> None:
        client, shelf = BlockingClient(BUSY, priced_reply()), MemoryReplyStore()
        model = cached_client(client, shelf)
        await abandon_request(model, client)
        client.let.set()
        await asyncio.sleep(60)
        assert client.call_count == 1
        assert (await model.complete(ASKED)).text == "hold"

    run(main())


def test_a_question_with_a_new_waiter_is_retried():
    async def main() -> None:
        client, shelf = BlockingClient(BUSY, priced_reply()), MemoryReplyStore()
        model = cached_client(client, shelf)
        await abandon_request(model, client)
        next_one = asyncio.create_task(model.complete(ASKED))
        await asyncio.sleep(0)
        client.let.set()
        assert (await next_one).text == "hold"
        assert (client.call_count, model.calls) == (2, 1)

    run(main())


def test_a_question_that_waits_between_two_tries_is_given_up_with_who_asked():
    async def main() -> None:
        client = BlockingClient(BUSY, priced_reply())
        client.let.set()
        model = cached_client(client, MemoryReplyStore())
        leaving = asyncio.create_task(model.complete(ASKED))
        await asyncio.sleep(0.1)
        leaving.cancel()
        await asyncio.sleep(60)
        assert client.call_count == 1

    run(main())


def test_closing_gives_up_what_is_still_asked_and_waits_for_it():
    async def main() -> None:
        client, shelf = BlockingClient(priced_reply()), MemoryReplyStore()
        model = cached_client(client, shelf)
        await abandon_request(model, client)
        await model.close()
        assert (client.cancelled, len(shelf.rows)) == (1, 0)
        await model.close()

    run(main())


def test_waiters_of_a_failed_call_send_their_own_and_no_failure_is_cached():
    async def main() -> tuple[list[str], int]:
        slow, shelf = BlockingModel(TransientError("busy")), MemoryReplyStore()
        model = Cached(DirectClient(slow), shelf, "run1")
        waiting = [asyncio.create_task(model.complete(ASKED)) for _ in range(3)]
        await asyncio.sleep(0)
        slow.let.set()
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        slow.reply = priced_reply()
        assert (await model.complete(ASKED)).text == "hold"
        return [str(error) for error in ended], slow.call_count

    assert asyncio.run(main()) == (["busy"] * 3, 4)


@pytest.mark.parametrize(
    "changed",
    [
        replace(ASKED, system="Be bold."),
        replace(ASKED, messages=(Message("user", "And now?"),)),
        replace(ASKED, messages=(*ASKED.messages, Message("assistant", "Hm."))),
        replace(ASKED, tools=()),
        replace(ASKED, tools=(ToolSpec("look", "Looks.", {"type": "object"}),)),
        replace(ASKED, must_call="look"),
        replace(ASKED, answer="schema"),
        replace(ASKED, settings={"temperature": 1}),
    ],
)
def test_whatever_can_change_the_answer_changes_the_key(changed):
    assert request_key("m", changed) != request_key("m", ASKED)


def test_models_and_repeats_have_keys_of_their_own():
    assert len({request_key("m", ASKED), request_key("n", ASKED), request_key("m", ASKED, 1)}) == 3


def request_with_results(first: str, second: str, state: str = "", order: tuple[int, int] = (0, 1)) -> ModelRequest:
    calls = (ToolCall(first, "look", '{"id":"x"}'), ToolCall(second, "look", '{"id":"y"}'))
    results = [Message("tool", f"saw {index}", call_id=call.id, name="look") for index, call in enumerate(calls)]
    turn = Message("assistant", "", calls, state=state)
    return replace(ASKED, messages=(*ASKED.messages, turn, *(results[index] for index in order)))


def test_ids_and_state_that_a_provider_invents_are_not_part_of_the_question():
    assert request_key("m", request_with_results("c1", "c2", "sig")) == request_key(
        "m", request_with_results("x-88", "x-12", "other")
    )


def test_results_that_belong_to_other_calls_are_another_question():
    swapped = request_with_results("c1", "c2")
    row, two = swapped.messages[2:]
    crossed = replace(swapped, messages=(*swapped.messages[:2], replace(row, call_id="c2"), replace(two, call_id="c1")))

    assert request_key("m", crossed) != request_key("m", swapped)


def test_an_id_inside_arguments_is_part_of_the_question():
    asked = request_with_results("c1", "c2")
    turn = asked.messages[1]
    changed = replace(turn, calls=(ToolCall("c1", "look", '{"id":"z"}'), turn.calls[1]))

    assert request_key("m", replace(asked, messages=(asked.messages[0], changed, *asked.messages[2:]))) != request_key(
        "m", asked
    )


def test_equal_questions_made_of_other_objects_have_the_same_key():
    again = ModelRequest(
        "".join(["Be ", "calm."]),
        (Message("user", "".join(["What ", "now?"])),),
        (ToolSpec("look", "Looks.", {"properties": {"id": {"type": "string"}}, "type": "object"}),),
        None,
        {"temperature": 0},
    )

    assert request_key("m", again) == request_key("m", ASKED)


def test_half_a_character_is_no_reason_to_fail():
    broken = replace(ASKED, messages=(Message("user", "\ud800"),))

    assert request_key("m", broken) != request_key("m", replace(ASKED, messages=(Message("user", "?"),)))
