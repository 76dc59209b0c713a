"""OpenAI's Responses protocol: requests, replies, streams, and the choice between it and chat completions."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from models.native.vendor_server import ASK, DECIDE, KEY, LOOK
from pitboss.core.ports import Message, ModelReply, ModelRequest, ToolCall
from pitboss.models import http_pool, recordings
from pitboss.models.call import CallContext, CallResult, ModelClient
from pitboss.models.failures import Failure, classify
from pitboss.models.native.answer_form import NativeForm
from pitboss.models.native.client import ResponsesModel
from pitboss.models.native.reply import ReplyContext
from pitboss.models.native.responses_models import needs_responses
from pitboss.models.native.responses_reply import read
from pitboss.models.native.responses_request import body
from pitboss.models.openai_client import OpenAIModel
from pitboss.models.providers import entry
from pitboss.models.retried import Retried
from pitboss.models.secret import Secret
from pitboss.testing import provider
from pitboss.testing.provider import FakeProvider

MUST = replace(ASK, must_call="decide")
CONTEXT = ReplyContext("openai/test")
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}
CALL = {
    "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": '{"symbol":"BTC"}',
    "status": "completed",
}  # fmt: skip
TEXT = {
    "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
    "content": [{"type": "output_text", "text": "Hold on.", "annotations": []}],
}  # fmt: skip
USAGE = {
    "input_tokens": 900, "input_tokens_details": {"cached_tokens": 300},
    "output_tokens": 70, "output_tokens_details": {"reasoning_tokens": 40}, "total_tokens": 970,
}  # fmt: skip


def response(*output: dict[str, Any], **more: Any) -> dict[str, Any]:
    document = {"id": "resp_1", "object": "response", "status": "completed", "model": "gpt-test", "error": None}
    return document | {"output": list(output), "incomplete_details": None, "usage": USAGE} | more


def reply_of(document: object, status: int = 200) -> ModelReply:
    reply = read(document, status, {}, CONTEXT)
    assert isinstance(reply, ModelReply)
    return reply


def test_a_request_stores_nothing_asks_for_sealed_reasoning_and_forces_by_name() -> None:
    document = body(replace(MUST, settings={"temperature": 0.2, "reasoning": "low"}), "gpt-5.6", NativeForm())
    assert (document["store"], document["include"]) == (False, ["reasoning.encrypted_content"])
    assert document["instructions"] == ASK.system
    assert document["input"] == [{"role": "user", "content": "What now?"}]
    assert [(tool["name"], tool["strict"]) for tool in document["tools"]] == [("look", False), ("decide", False)]
    assert document["tool_choice"] == {"type": "function", "name": "decide"}
    assert (document["reasoning"], document["temperature"]) == ({"effort": "low"}, 0.2)
    assert document["max_output_tokens"] == 4_096


def test_a_decision_as_text_is_checked_against_the_schema_and_no_tool_is_called() -> None:
    document = body(replace(MUST, answer="schema"), "gpt-5.6", NativeForm())
    assert document["text"]["format"]["schema"] == DECIDE.schema
    assert document["tool_choice"] == "none"
    described = body(replace(MUST, answer="schema"), "gpt-5.6", NativeForm(has_schemas=False))
    assert "text" not in described
    assert json.dumps("exclusiveMinimum")[1:-1] not in described["input"][-1]["content"]
    assert "JSON Schema" in described["input"][-1]["content"]


def test_reasoning_text_and_calls_are_read_and_sent_back_as_they_came() -> None:
    reply = reply_of(response(REASONING, TEXT, CALL, {"type": "web_search_call", "id": "ws_1"}))
    assert reply.text == "Hold on."
    assert reply.calls == (ToolCall("call_1", "look", '{"symbol":"BTC"}'),)
    assert (reply.usage.input_tokens, reply.usage.cached_tokens) == (900, 300)
    assert (reply.usage.output_tokens, reply.usage.reasoning_tokens) == (70, 40)
    turn = Message("assistant", reply.text, reply.calls, state=reply.state)
    result = Message("tool", "60,000", call_id="call_1", name="look")
    sent = body(replace(ASK, messages=(*ASK.messages, turn, result)), "gpt-5.6", NativeForm())["input"]
    assert sent[1] == REASONING
    assert (sent[2]["id"], sent[2]["content"][0]["text"]) == ("msg_1", "Hold on.")
    assert sent[3] == {name: value for name, value in CALL.items() if name != "status"}
    assert sent[4] == {"type": "function_call_output", "call_id": "call_1", "output": "60,000"}


def test_reasoning_is_not_sent_where_its_call_was_cut_off_or_it_was_refused() -> None:
    reply = reply_of(response(REASONING, CALL, status="incomplete", incomplete_details={"reason": "max_output_tokens"}))
    assert (reply.finish_reason, reply.calls) == ("length", ())
    turn = Message("assistant", "", state=reply.state)
    request = replace(ASK, messages=(*ASK.messages, turn, Message("user", "Go on.")))
    assert body(request, "m", NativeForm())["input"] == [
        {"role": "user", "content": "What now?"},
        {"role": "user", "content": "Go on."},
    ]
    whole = Message("assistant", "", state=reply_of(response(REASONING, CALL)).state)
    request = replace(ASK, messages=(*ASK.messages, whole))
    kinds = [item.get("type") for item in body(request, "m", NativeForm(has_thinking=False))["input"]]
    assert kinds == [None, "function_call"]


def test_calls_without_an_id_get_one_that_is_the_same_in_every_run() -> None:
    unnamed = {name: value for name, value in CALL.items() if name not in ("id", "call_id")}
    first, second = reply_of(response(REASONING, unnamed)), reply_of(response(REASONING, unnamed))
    assert first == second
    assert first.calls[0].id == "call_0_0"
    assert json.loads(first.state)["content"][1]["call_id"] == "call_0_0"


@pytest.mark.parametrize(
    ("document", "finish", "problem"),
    [
        (response(REASONING, incomplete_details={"reason": "content_filter"}, status="incomplete"), "error", "blocked"),
        (response({**TEXT, "content": [{"type": "refusal", "refusal": "No."}]}), "error", "the model refused: No."),
        (response(), "stop", "the reply was empty"),
        (response(status="queued"), "stop", "the reply was empty (queued)"),
    ],
)
def test_a_reply_that_is_no_answer_is_a_reply_with_a_problem(document: Any, finish: str, problem: str) -> None:
    reply = reply_of(document)
    assert reply.finish_reason == finish
    assert problem in reply.problem


def test_errors_inside_and_outside_of_a_good_response_are_failures() -> None:
    failed = response(status="failed", error={"code": "server_error", "message": "try later"})
    unknown = {"error": {"message": "The requested model 'gpt-9' does not exist.", "code": "model_not_found"}}
    for document, status, code in ((failed, 200, "server"), (unknown, 400, "unknown_model"), ("gone", 502, "server")):
        failure = read(document, status, {}, CONTEXT)
        assert isinstance(failure, Failure)
        assert failure.code == code


def stream(document: dict[str, Any], *, keeps_output: bool = True) -> str:
    """The events by which a server would send a response."""
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {**document, "output": []}}]
    for index, item in enumerate(document["output"]):
        events.append({"type": "response.output_item.added", "output_index": index, "item": {"type": item["type"]}})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    last = document if keeps_output else {**document, "output": []}
    events.append({"type": f"response.{document['status']}", "response": last})
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


@pytest.mark.parametrize("keeps_output", [True, False])
def test_a_stream_means_the_same_as_the_plain_response(keeps_output: bool) -> None:
    document = response(REASONING, TEXT, CALL)
    assert reply_of(stream(document, keeps_output=keeps_output)) == reply_of(document)


def test_a_stream_that_breaks_off_or_holds_an_error_is_a_failure() -> None:
    whole = stream(response(TEXT))
    cut = read(whole[: whole.rindex("event: ")], 200, {}, CONTEXT)
    assert isinstance(cut, Failure)
    assert "middle" in cut.message
    error = 'data: {"type": "error", "code": "rate_limit_exceeded", "message": "slow down"}\n\n'
    busy = read(error, 200, {}, CONTEXT)
    assert isinstance(busy, Failure)
    assert busy.code == "busy"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from(["type", "output", "content", "text", "call_id", "id", "status", "error", "usage", "reason",
                         "incomplete_details", "summary", "arguments", "name", "refusal", "input_tokens_details"]),
        inner | st.sampled_from(["message", "reasoning", "function_call", "refusal", "completed", "failed"]),
        max_size=5,
    ),
    max_leaves=20,
)  # fmt: skip


@example([{"type": []}], 200)
@given(JSON, st.sampled_from([200, 400, 404, 429, 500]))
def test_any_json_gives_a_reply_or_a_failure(document: Any, status: int) -> None:
    outcome = read(document, status, {}, CONTEXT)
    assert isinstance(outcome, ModelReply | Failure)
    if isinstance(outcome, ModelReply):
        turn = Message("assistant", outcome.text, outcome.calls, state=outcome.state)
        json.dumps(body(replace(ASK, messages=(*ASK.messages, turn)), "m", NativeForm()))


@pytest.mark.parametrize(
    ("model", "tools", "reasoning", "expected"),
    [
        ("gpt-5.6", True, None, True),
        ("gpt-5.6", False, None, False),
        ("gpt-5.5-mini", True, "none", True),
        ("gpt-5.4", True, "high", True),
        ("gpt-5.4", True, None, False),
        ("gpt-5.4-pro", False, None, True),
        ("o3-pro", False, None, True),
        ("o3", True, "high", False),
        ("gpt-5.3-codex", True, None, True),
        ("codex-mini-latest", True, None, True),
        ("gpt-4o-mini", True, None, False),
        ("gpt-5-mini", True, "low", False),
    ],
)
def test_the_table_of_models(model: str, tools: bool, reasoning: str | None, expected: bool) -> None:
    request = replace(ASK, tools=(LOOK,) if tools else (), settings={"reasoning": reasoning})
    assert needs_responses(model, request) is expected


class ScriptedClient(ModelClient):
    """A client that returns one prepared result after the other and counts its calls."""

    def __init__(self, name: str, results: Sequence[CallResult]) -> None:
        self.name = name
        self.results = list(results)
        self.calls = 0

    async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
        self.calls += 1
        return self.results.pop(0) if len(self.results) > 1 else self.results[0]


ANSWER = CallResult(ModelReply("yes"), attempts=1)


def refusal(status: int, text: str) -> CallResult:
    return CallResult(failure=classify(status, {"error": {"message": text}}, {}, "openai/x"), attempts=1)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (404, "This model is only supported in v1/responses and not in v1/chat/completions."),
        (
            400,
            "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. To use function "
            "tools, use /v1/responses or set reasoning_effort to 'none'.",
        ),
    ],
)
def test_the_protocol_is_learnt_from_a_refusal_once(status: int, text: str) -> None:
    chat, responses = ScriptedClient("openai/x", [refusal(status, text)]), ScriptedClient("openai/x", [ANSWER])
    model = Retried(OpenAIModel(chat, responses, lambda request: False), random=lambda: 0.0)
    for _ in range(3):
        assert asyncio.run(model.complete(ASK)).text == "yes"
    assert (chat.calls, responses.calls) == (1, 3)


def test_a_host_without_responses_is_asked_by_chat_completions() -> None:
    chat, responses = ScriptedClient("openai/x", [ANSWER]), ScriptedClient("openai/x", [refusal(404, "Not Found")])
    model = Retried(OpenAIModel(chat, responses, lambda request: True), random=lambda: 0.0)
    assert asyncio.run(model.complete(ASK)).text == "yes"
    assert (chat.calls, responses.calls) == (1, 1)


def test_calls_that_were_under_way_when_it_was_learnt_are_repeated_too() -> None:
    chat = ScriptedClient("openai/x", [refusal(404, "only supported in v1/responses")])
    responses = ScriptedClient("openai/x", [ANSWER])
    model = Retried(OpenAIModel(chat, responses, lambda request: False), random=lambda: 0.0)

    async def both() -> list[ModelReply]:
        return await asyncio.gather(model.complete(ASK), model.complete(ASK))

    assert [reply.text for reply in asyncio.run(both())] == ["yes", "yes"]


def test_a_model_refused_by_both_protocols_is_a_failure() -> None:
    chat = ScriptedClient("openai/x", [refusal(404, "only supported in v1/responses")])
    responses = ScriptedClient("openai/x", [refusal(404, "only supported in v1/chat/completions")])
    model = OpenAIModel(chat, responses, lambda request: False)
    results = [asyncio.run(model.call(ASK, CallContext())) for _ in range(3)]
    assert [result.is_adapted for result in results] == [True, False, False]


def test_fields_that_a_server_rejects_are_left_out_from_then_on() -> None:
    def script(question: Any) -> Any:
        for name in ("temperature", "prompt_cache_key"):
            if name in question:
                return provider.error(400, f"Unsupported parameter: '{name}' is not supported with this model.")
        if "include" in question:
            return provider.error(400, "Encrypted content is not supported with this model.")
        return provider.body(response(TEXT))

    async def run() -> list[dict[str, Any]]:
        async with FakeProvider(script, path="/responses") as server, http_pool.opened():
            served = entry("openai", server.url)
            model = Retried(
                ResponsesModel("openai/x", served, Secret(KEY), clock=monotonic), random=lambda: 0.0, attempts=1
            )
            request = replace(ASK, settings={"temperature": 0.5})
            assert (await model.complete(request)).text == "Hold on."
            assert (await model.complete(request)).text == "Hold on."
            return [dict(question) for question in server.questions]

    questions = asyncio.run(run())
    assert len(questions) == 5
    assert {"temperature", "prompt_cache_key", "include"}.isdisjoint(questions[-1])


SESSIONS = Path(__file__).parents[4] / "shared/data/wire/llm/sessions.jsonl.gz"


@pytest.mark.skipif(not SESSIONS.exists(), reason="the recorded sessions are not on this machine")
def test_every_recorded_exchange_is_read_with_its_calls_text_and_tokens() -> None:
    exchanges = [one for one in recordings.read(SESSIONS) if recordings.kind(one) == "responses"]
    assert len(exchanges) == 156
    for exchange in exchanges:
        outcome = recordings.parse(exchange)
        assert isinstance(outcome, ModelReply) == (exchange.status == 200)
        if exchange.streamed or not isinstance(outcome, ModelReply):
            continue
        output, usage = exchange.body["output"], exchange.body["usage"] or {}
        expected = [(item["call_id"], item["arguments"]) for item in output if item["type"] == "function_call"]
        assert [(call.id, call.arguments) for call in outcome.calls] == expected
        blocks = [block for item in output if item["type"] == "message" for block in item["content"]]
        assert outcome.text == "".join(block.get("text", "") for block in blocks)
        assert outcome.usage.input_tokens == usage.get("input_tokens", 0)
        assert bool(outcome.state) == any(item["type"] == "reasoning" for item in output)
