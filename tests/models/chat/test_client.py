"""The client against a real local server: every fault has a defined outcome, and the key is sent nowhere else."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from itertools import count
from time import monotonic
from typing import Any

import orjson
import pytest
from aiohttp import web

from pitboss.core.errors import TransientError, UserError
from pitboss.core.intent import Usage
from pitboss.core.ports import Message, ModelReply, ModelRequest, ToolCall, ToolSpec
from pitboss.core.redaction import HIDDEN
from pitboss.models import http_pool, http_post
from pitboss.models.call import CallContext
from pitboss.models.chat.client import ChatModel
from pitboss.models.providers import PROVIDERS, Provider, entry
from pitboss.models.retried import Retried
from pitboss.models.secret import Secret
from pitboss.testing import provider as fake
from pitboss.testing.provider import FakeProvider, Play

KEY = "sk-canary-0123456789"
DECIDE = ToolSpec("decide", "Decide.", {"type": "object"})
QUESTION = ModelRequest("Rules.", (Message("user", "Now?"),), (DECIDE,))
OK = fake.say("fine")


class RecordingSleep:
    """Records the requested pauses and returns at once."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def client(url: str, key: str | None = KEY, **more: Any) -> ChatModel:
    """One attempt per call."""
    options = {"clock": monotonic, "timeout_s": 5.0} | more
    return ChatModel("fake/m", entry("fake", url), Secret(key) if key else None, **options)


def model(url: str, key: str | None = KEY, **more: Any) -> Retried:
    retries = {"random": lambda: 0.5, "sleep": RecordingSleep(), "deadline_s": 60.0}
    retries |= {name: more.pop(name) for name in ("random", "sleep", "deadline_s", "attempts") if name in more}
    return Retried(client(url, key, **more), **retries)


def run(script: Any, work: Callable[[FakeProvider], Awaitable[Any]]) -> Any:
    async def inside() -> Any:
        async with FakeProvider(script) as server, http_pool.opened():
            return await work(server)

    return asyncio.run(inside())


def ask(script: Any, request: ModelRequest = QUESTION, **more: Any) -> tuple[ModelReply, FakeProvider]:
    async def work(server: FakeProvider) -> tuple[ModelReply, FakeProvider]:
        return await model(server.url, **more).complete(request), server

    return run(script, work)


def ask_in_vain(script: Any, error: type[Exception], **more: Any) -> tuple[Exception, FakeProvider]:
    async def work(server: FakeProvider) -> tuple[Exception, FakeProvider]:
        with pytest.raises(error) as caught:
            await model(server.url, **more).complete(QUESTION)
        return caught.value, server

    return run(script, work)


def test_a_question_is_posted_once_with_the_key_in_its_header_and_the_reply_is_timed() -> None:
    ticks = count(100.0, 0.25)
    reply, server = ask(fake.decide, clock=lambda: next(ticks))
    assert reply.calls[0].name == "decide"
    assert (reply.latency_ms, reply.usage, reply.cost_usd) == (250.0, Usage(1_000, 50), None)
    assert server.calls == 1
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert server.questions[0]["model"] == "m"
    assert KEY not in str(server.questions)


def test_without_a_key_there_is_no_authorization() -> None:
    _, server = ask(fake.decide, key=None)
    assert "Authorization" not in server.headers[0]


@pytest.mark.parametrize(
    "fault",
    [fake.busy(), fake.error(500), fake.error(529), fake.half, fake.reset, fake.garbage(), fake.body({"odd": 1}),
     fake.streamed("data: {\n\n"), fake.body({"error": {"code": 502, "message": "upstream"}})],
)  # fmt: skip
def test_a_fault_that_passes_is_tried_again(fault: Play) -> None:
    reply, server = ask([fault, fault, OK])
    assert reply.text == "fine"
    assert server.calls == 3


@pytest.mark.parametrize("fault", [fake.hang, fake.drip])
def test_a_server_that_never_finishes_is_left_after_the_timeout(fault: Play) -> None:
    reply, server = ask([fault, OK], timeout_s=0.15)
    assert reply.text == "fine"
    assert server.calls == 2


def test_a_flood_is_not_drunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_post, "LARGEST_BYTES", 1_000)
    error, server = ask_in_vain([fake.flood, fake.say("x" * 2_000)], TransientError, attempts=2)
    assert "larger than" in str(error)
    assert server.calls == 2


def test_tries_are_counted_and_the_last_failure_is_reported() -> None:
    error, server = ask_in_vain([fake.error(500, "on fire")], TransientError, attempts=3)
    assert server.calls == 3
    assert "on fire" in str(error)


def test_waits_double_with_full_jitter_and_have_a_ceiling() -> None:
    waits = RecordingSleep()
    ask_in_vain([fake.error(500)], TransientError, attempts=9, sleep=waits, deadline_s=500)
    assert waits.seconds == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_a_wait_that_the_provider_asks_for_is_kept_at_least() -> None:
    waits = RecordingSleep()
    ask([fake.busy("7"), fake.busy("0.5"), OK], sleep=waits)
    assert waits.seconds == [7.25, 1.0]


def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    waits = RecordingSleep()
    error, server = ask_in_vain([fake.busy("3600")], TransientError, sleep=waits)
    assert waits.seconds == []
    assert server.calls == 1
    assert "busy" in str(error)


@pytest.mark.parametrize("fault", [fake.hang, fake.drip, fake.busy("0.01"), fake.error(503), fake.reset])
def test_the_deadline_is_never_passed(fault: Play) -> None:
    waits = RecordingSleep()
    _, server = ask_in_vain([fault], TransientError, attempts=1_000, timeout_s=0.1, deadline_s=0.4, sleep=waits)
    assert len(waits.seconds) <= 1  # the second pause would last 0.5 s
    assert server.calls <= 2


def test_a_retry_after_on_a_good_reply_is_nothing_to_wait_for() -> None:
    waits = RecordingSleep()
    good = fake.body(fake.message({"model": "m"}, "fine"), headers={"Retry-After": "60"})
    reply, _ = ask([good], sleep=waits)
    assert (reply.text, waits.seconds) == ("fine", [])


@pytest.mark.parametrize(
    ("fault", "part"),
    [
        (fake.error(401, f"bad key {KEY}"), "key was refused"),
        (fake.error(404, "The model `m` does not exist"), "no such model"),
        (fake.error(402, "pay first"), "no money"),
        (fake.error(429, "You exceeded your current quota", code="insufficient_quota"), "no money"),
        (fake.error(307, headers={"Location": "http://elsewhere.test/"}), "redirects"),
    ],
)
def test_what_a_person_must_put_right_is_asked_once_and_reported_with_a_hint(fault: Play, part: str) -> None:
    error, server = ask_in_vain([fault], UserError)
    assert part in str(error)
    assert isinstance(error, UserError)
    assert error.hint
    assert server.calls == 1


def test_a_redirect_is_never_followed() -> None:
    async def work(server: FakeProvider) -> None:
        async with FakeProvider() as redirected:
            location = {"Location": f"{redirected.url}/chat/completions"}
            server.script = [fake.error(308, headers=location)]
            with pytest.raises(UserError):
                await model(server.url).complete(QUESTION)
            assert redirected.calls == 0

    run(fake.decide, work)


def refuse_parameter(part: str, reason: str) -> Callable[[Mapping[str, Any]], Play]:
    return lambda question: fake.error(400, reason, param=part) if question.get(part) else OK


FORCED = replace(QUESTION, must_call="decide")


@pytest.mark.parametrize(
    ("request_", "part", "reason"),
    [
        (replace(FORCED, answer="schema"), "response_format", "This model does not support response format `json_schema`."),
        (FORCED, "tool_choice", "`tool_choice` is not supported"),
        (QUESTION, "max_tokens", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
    ],
)  # fmt: skip
def test_a_form_that_the_server_does_not_know_is_left_out_from_then_on(
    request_: ModelRequest, part: str, reason: str
) -> None:
    async def work(server: FakeProvider) -> None:
        waits = RecordingSleep()
        retrying = model(server.url, sleep=waits)
        for _ in range(2):
            assert (await retrying.complete(request_)).text == "fine"
        assert [part in question for question in server.questions] == [True, False, False]
        assert waits.seconds == []

    run(refuse_parameter(part, reason), work)


def test_a_name_is_forced_as_required_before_nothing_is_forced() -> None:
    async def work(server: FakeProvider) -> None:
        served = replace(entry("fake", server.url), dialect=PROVIDERS["openai"].dialect)
        retrying = Retried(ChatModel("fake/m", served, clock=monotonic), random=lambda: 0.0)
        assert (await retrying.complete(FORCED)).text == "fine"
        choice = {"type": "function", "function": {"name": "decide"}}
        assert [question.get("tool_choice") for question in server.questions] == [choice, "required", None]

    run(refuse_parameter("tool_choice", "tool_choice is not supported"), work)


def test_a_late_refusal_does_not_unlearn_what_others_have_learnt_since() -> None:
    refused = fake.error(400, "tool_choice is not supported", param="tool_choice")
    arrived, learnt = asyncio.Event(), asyncio.Event()

    async def late(request: Any, question: Mapping[str, Any]) -> Any:
        arrived.set()
        await learnt.wait()
        return await refused(request, question)

    async def work(server: FakeProvider) -> None:
        served = replace(entry("fake", server.url), dialect=PROVIDERS["openai"].dialect)
        retrying = Retried(ChatModel("fake/m", served, clock=monotonic), random=lambda: 0.0)
        plays = iter([late])
        server.script = lambda question: next(plays, refused if question.get("tool_choice") else OK)
        first = asyncio.create_task(retrying.complete(FORCED))
        await arrived.wait()
        assert (await retrying.complete(FORCED)).text == "fine"
        learnt.set()
        assert (await first).text == "fine"
        # The late one, the other's three, and the late one again in the plainest form at once.
        assert ["tool_choice" in question for question in server.questions] == [True, True, True, False, False]

    run(fake.decide, work)


def test_one_try_is_one_request_whatever_comes_of_it() -> None:
    async def work(server: FakeProvider) -> None:
        busy = await client(server.url).call(QUESTION, CallContext())
        assert busy.failure is not None
        assert (busy.failure.code, busy.failure.wait_s, busy.attempts, server.calls) == ("busy", 7.0, 1, 1)
        assert (await client(server.url).call(FORCED, CallContext())).is_adapted
        assert server.calls == 2

    run([fake.busy("7"), fake.error(400, "`tool_choice` is not supported", param="tool_choice")], work)


def test_a_try_takes_no_longer_than_is_left() -> None:
    async def work(server: FakeProvider) -> None:
        context = CallContext(left_s=0.1)
        result = await client(server.url, timeout_s=30.0).call(QUESTION, context)
        assert result.failure is not None
        assert (result.failure.code, result.failure.may_be_charged) == ("timeout", True)
        assert context.left_s < 0.1

    run([fake.hang], work)


def test_a_stream_may_take_longer_than_the_time_limit_as_long_as_it_is_not_silent() -> None:
    async def slowly(request: web.BaseRequest, question: Mapping[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for _ in range(6):
            await asyncio.sleep(0.4)
            await response.write(b": thinking\n\n")
        body = {"id": "x", "choices": [{"index": 0, "delta": {"content": "hold"}, "finish_reason": "stop"}]}
        await response.write(b"data: " + orjson.dumps(body) + b"\n\ndata: [DONE]\n\n")
        return response

    async def work(server: FakeProvider) -> None:
        assert (await model(server.url, timeout_s=2.0).complete(QUESTION)).text == "hold"
        assert server.calls == 1

    run([slowly], work)


@pytest.mark.parametrize("name", ["temperature", "seed"])
def test_a_setting_that_is_not_accepted_is_left_out_once_and_every_reply_says_so(name: str) -> None:
    request = replace(QUESTION, settings={"temperature": 0.5, "seed": 7})

    async def work(server: FakeProvider) -> None:
        client = model(server.url)
        assert (await client.complete(request)).rejected_settings == (name,)
        assert (await client.complete(request)).rejected_settings == (name,)
        assert [name in question for question in server.questions] == [True, False, False]

    run(refuse_parameter(name, f"Unsupported value: '{name}' does not support this value with this model."), work)


def test_a_refusal_that_names_no_optional_setting_is_reported() -> None:
    async def work(server: FakeProvider) -> None:
        with pytest.raises(UserError, match="messages"):
            await model(server.url).complete(replace(QUESTION, settings={"temperature": 0.5}))
        assert server.calls == 1

    run(refuse_parameter("messages", "Unsupported value: 'messages'"), work)


def test_a_request_that_can_never_work_is_not_repeated() -> None:
    _, server = ask_in_vain([fake.error(400, "context length exceeded")], TransientError)
    assert server.calls == 1


def test_a_key_is_not_even_read_for_an_address_it_does_not_belong_to() -> None:
    stolen = replace(PROVIDERS["openai"], base_url="https://elsewhere.test/v1")
    with pytest.raises(UserError, match="not sent to"):
        ChatModel("openai/x", stolen, Secret(KEY), clock=monotonic)


@pytest.mark.parametrize(
    "play",
    [
        fake.say(f"you sent {KEY}"),
        fake.call("decide", {"reason": KEY}),
        fake.say("x", id=KEY, model=KEY),
        fake.streamed(f'data: {{"choices":[{{"delta":{{"content":"{KEY}"}},"finish_reason":"stop"}}]}}\n\n'),
        fake.garbage('{"choices":[{"message":{"content":"\\u0073k-canary-0123456789"}}]}'),
        fake.streamed(
            'data: {"choices":[{"delta":{"content":"sk-can"}}]}\n\n'
            'data: {"choices":[{"delta":{"content":"ary-0123456789"},"finish_reason":"stop"}]}\n\n'
        ),
        fake.call("decide", '{"reason": "\\u0073k-canary-0123456789"}'),
        fake.error(400, "no", code="tool_use_failed", failed_generation=KEY),
    ],
)
def test_a_key_that_is_sent_back_is_taken_out_of_the_reply(play: Play) -> None:
    reply, _ = ask([play])
    assert KEY not in repr(reply)
    assert HIDDEN in repr(reply)


@pytest.mark.parametrize(
    "play",
    [
        fake.error(500, f"key {KEY}"),
        fake.error(400, KEY),
        fake.garbage(KEY),
        fake.error(404, f"model {KEY}"),
        fake.error(400, "x" * 290 + KEY),
    ],
)
def test_a_key_that_is_sent_back_is_taken_out_of_errors(play: Play) -> None:
    error, _ = ask_in_vain([play], (TransientError, UserError))  # type: ignore[arg-type]
    assert "sk-can" not in repr(error) + repr(vars(error)) + repr(error.__context__)


@pytest.mark.parametrize("sent", [fake.streamed, fake.garbage])
def test_a_stream_that_was_not_requested_is_read_too(sent: Callable[[str], Play]) -> None:
    """Whatever its sender calls it."""
    reply, _ = ask([sent('data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')])
    assert reply.text == "hi"


def test_another_models_name_is_kept_and_is_no_error() -> None:
    reply, _ = ask([fake.say("fine", model="some/other-model")])
    assert reply.model == "some/other-model"


def test_ids_that_are_missing_go_on_from_the_calls_before() -> None:
    earlier = Message("assistant", "", (ToolCall("c0", "look", "{}"), ToolCall("c1", "look", "{}")))
    request = replace(QUESTION, messages=(*QUESTION.messages, earlier))
    wish = {"id": "", "function": {"name": "decide", "arguments": "{}"}}
    reply, _ = ask([fake.body({"choices": [{"message": {"tool_calls": [wish]}}]})], request)
    assert [call.id for call in reply.calls] == ["c2"]


def test_the_result_holds_headers_and_status_of_every_response() -> None:
    async def work(server: FakeProvider) -> None:
        busy, good = [await client(server.url).call(QUESTION, CallContext()) for _ in range(2)]
        assert (busy.status, busy.headers["retry-after"], busy.reply) == (429, "0", None)
        assert good.reply is not None
        assert (good.status, good.reply.usage) == (200, Usage(1_000, 50))

    run([fake.busy("0"), OK], work)


def test_a_server_that_is_not_there_is_named() -> None:
    async def work() -> None:
        async with FakeProvider() as server:
            url = server.url
        async with http_pool.opened():
            with pytest.raises(TransientError, match=r"cannot reach 127\.0\.0\.1"):
                await model(url, attempts=2).complete(QUESTION)

    asyncio.run(work())


def test_many_calls_share_connections_and_none_is_lost() -> None:
    async def work(server: FakeProvider) -> int:
        retrying = model(server.url)
        for _ in range(3):
            replies = await asyncio.gather(*(retrying.complete(QUESTION) for _ in range(50)))
            assert all(reply.calls for reply in replies)
        assert len(server.peers) == 50
        return server.calls

    assert run(fake.decide, work) == 150


def test_many_faults_leave_every_call_answered_or_accounted_for() -> None:
    faults = [fake.busy("0"), fake.error(500), fake.reset, fake.half, fake.garbage(), OK]
    numbers = count()

    async def work(server: FakeProvider) -> list[Any]:
        retrying = model(server.url, deadline_s=10)
        return await asyncio.gather(*(retrying.complete(QUESTION) for _ in range(60)), return_exceptions=True)

    outcomes = run(lambda question: faults[next(numbers) * 7 % len(faults)], work)
    assert len(outcomes) == 60
    assert all(isinstance(outcome, ModelReply | TransientError) for outcome in outcomes)
    assert any(isinstance(outcome, ModelReply) for outcome in outcomes)


def test_one_session_serves_a_loop_until_it_is_closed() -> None:
    async def work() -> None:
        first = http_pool.session()
        assert http_pool.session() is first
        await http_pool.close()
        assert first.closed
        async with http_pool.opened() as second:
            assert second is not first
            async with http_pool.opened() as third:
                assert third is second
            assert not second.closed
        assert second.closed
        await http_pool.close()

    asyncio.run(work())


def test_being_cancelled_is_passed_on() -> None:
    async def work(server: FakeProvider) -> None:
        reached = asyncio.Event()

        def script(question: Mapping[str, Any]) -> Play:
            reached.set()
            return fake.hang

        server.script = script
        task = asyncio.create_task(model(server.url).complete(QUESTION))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(fake.decide, work)


def test_an_address_that_cannot_be_read_is_the_users_to_put_right() -> None:
    broken = Provider("x", "http://[::1/v1", ())
    with pytest.raises(UserError):
        ChatModel("x/m", broken, clock=monotonic)
