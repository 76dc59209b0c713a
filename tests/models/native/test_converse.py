"""Bedrock's Converse protocol: the bytes of requests, replies of every kind, errors, and the recorded exchanges."""

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.native.vendor import ASK, DECIDE, KEY, LOOK, MODELS, Answer, ask_once, meet
from pitboss.core.errors import TransientError, UserError
from pitboss.core.intent import Usage
from pitboss.core.ports import Message, ModelReply, ModelRequest, ToolCall
from pitboss.models import recordings
from pitboss.models.failures import Failure
from pitboss.models.native.answer_form import NativeForm
from pitboss.models.native.converse import CACHE_POINT, body, read
from pitboss.models.native.reply import ReplyContext
from pitboss.models.price_list import price_of
from pitboss.models.providers import PROVIDERS
from pitboss.models.routes import route

CLAUDE, LLAMA, GPT = MODELS["bedrock"], "us.meta.llama4-maverick-17b-instruct-v1:0", "openai.gpt-oss-120b-1:0"
MUST = replace(ASK, must_call="decide")
FORM = NativeForm()
CONTEXT = ReplyContext("bedrock/test", model=CLAUDE)
USAGE = {"inputTokens": 433, "outputTokens": 16, "totalTokens": 3_301, "cacheReadInputTokens": 2_752}
SIGNED = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "sealed"}}}
USE = {"toolUse": {"toolUseId": "tooluse_1", "name": "look", "input": {"symbol": "BTC"}, "type": "tool_use"}}


def reply(*blocks: dict[str, Any], stop: str = "end_turn") -> dict[str, Any]:
    return {"output": {"message": {"role": "assistant", "content": list(blocks)}}, "stopReason": stop, "usage": USAGE}


def reply_of(document: object) -> ModelReply:
    outcome = read(document, 200, {"x-amzn-RequestId": "req-1"}, CONTEXT)
    assert isinstance(outcome, ModelReply)
    return outcome


def spec(tool: Any) -> dict[str, Any]:
    schema = {"json": dict(tool.schema)}
    return {"toolSpec": {"name": tool.name, "description": tool.description, "inputSchema": schema}}


def test_a_request_on_the_wire_is_what_converse_takes() -> None:
    request = replace(MUST, settings={"temperature": 0.2, "max_tokens": 900})
    heard, asked = ask_once("bedrock", reply({"text": "Hold."}), request)
    assert heard.text == "Hold."
    assert asked.path in (f"/model/{CLAUDE}/converse", f"/model/{CLAUDE.replace(':', '%3A')}/converse")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "messages": [{"role": "user", "content": [{"text": "What now?"}]}],
        "inferenceConfig": {"maxTokens": 900, "temperature": 0.2},
        "system": [{"text": "You trade with care."}, CACHE_POINT],
        "toolConfig": {"tools": [spec(LOOK), spec(DECIDE), CACHE_POINT], "toolChoice": {"tool": {"name": "decide"}}},
    }


def test_an_identifier_with_slashes_stays_one_part_of_the_path() -> None:
    profile = "arn:aws:bedrock:eu-west-1:1234:application-inference-profile/abc"
    _, asked = ask_once("bedrock", reply({"text": "Hold."}), model=profile)
    assert asked.path.endswith("application-inference-profile%2Fabc/converse")


def test_what_a_family_does_not_take_is_not_sent() -> None:
    document = body(replace(ASK, settings={"reasoning": "high"}), LLAMA, FORM)
    assert "cachePoint" not in json.dumps(document)
    assert "additionalModelRequestFields" not in document
    assert "toolChoice" not in document["toolConfig"]
    effort = body(replace(ASK, settings={"reasoning": "high"}), GPT, FORM)
    assert effort["additionalModelRequestFields"] == {"reasoning_effort": "high"}
    nova = body(ASK, "us.amazon.nova-pro-v1:0", FORM)
    assert nova["system"][-1] == CACHE_POINT
    assert CACHE_POINT not in nova["toolConfig"]["tools"]


def test_claude_that_thinks_is_offered_only_the_decision_and_no_temperature() -> None:
    settings = {"reasoning": "low", "temperature": 0.5, "max_tokens": 8_000}
    document = body(replace(MUST, settings=settings), CLAUDE, FORM)
    assert document["additionalModelRequestFields"] == {"thinking": {"type": "enabled", "budget_tokens": 2_048}}
    assert document["inferenceConfig"] == {"maxTokens": 8_000}
    assert document["toolConfig"] == {"tools": [spec(DECIDE), CACHE_POINT]}


def test_a_decision_as_json_is_held_to_its_schema_or_described() -> None:
    request = replace(MUST, answer="schema")
    text_format = body(request, CLAUDE, FORM)["outputConfig"]["textFormat"]
    assert text_format["type"] == "json_schema"
    assert json.loads(text_format["structure"]["jsonSchema"]["schema"])["required"] == ["action"]
    described = body(request, CLAUDE, NativeForm(has_schemas=False))
    assert "outputConfig" not in described
    assert "JSON Schema" in described["messages"][-1]["content"][-1]["text"]


def test_a_turn_goes_back_as_it_came_with_its_signed_reasoning_and_the_result_of_its_call() -> None:
    heard = reply_of(reply(SIGNED, {"text": "I look."}, USE, stop="tool_use"))
    assert heard.calls == (ToolCall("tooluse_1", "look", '{"symbol":"BTC"}'),)
    assert (heard.finish_reason, heard.provider_id, heard.model) == ("tool_calls", "req-1", CLAUDE)
    turn = Message("assistant", heard.text, heard.calls, state=heard.state)
    result = Message("tool", "64,000", call_id="tooluse_1", name="look")
    request = replace(ASK, messages=(*ASK.messages, turn, result))
    sent = body(request, CLAUDE, FORM)["messages"]
    use = {"toolUse": {"toolUseId": "tooluse_1", "name": "look", "input": {"symbol": "BTC"}}}
    answer = {"toolResult": {"toolUseId": "tooluse_1", "content": [{"text": "64,000"}], "status": "success"}}
    assert sent[1:] == [
        {"role": "assistant", "content": [SIGNED, {"text": "I look."}, use]},
        {"role": "user", "content": [answer]},
    ]
    assert body(request, CLAUDE, NativeForm(has_thinking=False))["messages"][1]["content"] == [{"text": "I look."}, use]
    other = replace(ASK, messages=(*ASK.messages, replace(turn, state=""), result))
    assert body(other, CLAUDE, FORM)["messages"][1]["content"] == [{"text": "I look."}, use]


def test_reasoning_without_a_signature_is_read_over_and_not_sent_back() -> None:
    heard = reply_of(reply({"reasoningContent": {"reasoningText": {"text": "Hm."}}}, {"text": "Hold."}))
    assert (heard.text, heard.state) == ("Hold.", "")


def test_calls_without_an_id_get_one_that_their_result_refers_to() -> None:
    heard = reply_of(reply(SIGNED, {"toolUse": {"name": "look", "input": {}}}, {"toolUse": {"input": None}}))
    assert [(call.id, call.name, call.arguments) for call in heard.calls] == [
        ("call_0_0", "look", "{}"),
        ("call_0_1", "unknown", "{}"),
    ]
    turn = Message("assistant", heard.text, heard.calls, state=heard.state)
    result = Message("tool", "1", call_id="call_0_1")
    sent = body(replace(ASK, messages=(*ASK.messages, turn, result)), CLAUDE, FORM)["messages"]
    assert [block["toolUse"]["toolUseId"] for block in sent[1]["content"][1:]] == ["call_0_0", "call_0_1"]
    assert sent[2]["content"][0]["toolResult"]["toolUseId"] == "call_0_1"


def test_tokens_of_the_cache_are_part_of_the_input_and_the_price_is_amazons() -> None:
    usage = reply_of(reply({"text": "Hold."})).usage
    assert usage == Usage(433 + 2_752, 16, 2_752)
    priced = price_of(
        PROVIDERS["bedrock"].prices, "anthropic.claude-sonnet-4-20250514-v1:0", Usage(1_000_000, 1_000_000)
    )
    assert priced == Decimal(18)


@pytest.mark.parametrize(
    ("stop", "finish", "problem"),
    [
        ("max_tokens", "length", "cut off"),
        ("model_context_window_exceeded", "length", "cut off"),
        ("guardrail_intervened", "error", "blocked by the provider's filter (guardrail_intervened)"),
        ("content_filtered", "error", "blocked by the provider's filter"),
        ("refusal", "error", "the model refused"),
        ("malformed_tool_use", "error", "could not take the reply"),
    ],
)
def test_a_reply_that_is_no_answer_says_why_and_its_call_is_not_taken(stop: str, finish: str, problem: str) -> None:
    heard = reply_of(reply({"text": "I"}, USE, stop=stop))
    assert (heard.finish_reason, heard.calls) == (finish, ())
    assert problem in heard.problem


@pytest.mark.parametrize(
    ("status", "error", "reaction", "code"),
    [
        (429, {"message": "Too many requests, please wait before trying again."}, "retry", "busy"),
        (503, {"message": "Bedrock is unable to process your request."}, "retry", "busy"),
        (500, {"message": "The system encountered an unexpected error."}, "retry", "server"),
        (400, {"message": "The provided model identifier is invalid."}, "user", "unknown_model"),
        (
            400,
            {
                "message": "Invocation of model ID x with on-demand throughput isn't supported. Use an inference profile."
            },
            "user",
            "unknown_model",
        ),
        (400, {"message": "Input is too long for requested model: maximum context."}, "give_up", "too_long"),
        (400, {"message": "messages: at least one is required"}, "give_up", "bad_request"),
        (403, {"Message": "You don't have access to the model with the specified model ID."}, "user", "forbidden"),
    ],
)
def test_errors_lead_to_what_can_be_done_about_them(
    status: int, error: dict[str, Any], reaction: str, code: str
) -> None:
    failure = read(error, status, {"x-amzn-ErrorType": "ValidationException"}, CONTEXT)
    assert isinstance(failure, Failure)
    assert (failure.reaction, failure.code) == (reaction, code)
    assert next(iter(error.values()))[:40] in failure.message


def test_a_throttled_call_is_repeated_and_a_rejected_one_is_not() -> None:
    throttled = Answer({"message": "Too many requests"}, 429, {"x-amzn-ErrorType": "ThrottlingException"})
    heard, vendor = meet("bedrock", [throttled, Answer(reply({"text": "Hold."}))], lambda model, _: model.complete(ASK))
    assert (heard.text, len(vendor.posted)) == ("Hold.", 2)
    invalid = Answer({"message": "messages.0: invalid"}, 400, {"x-amzn-ErrorType": "ValidationException"})

    async def refused(model: Any, _: Any) -> str:
        with pytest.raises((TransientError, UserError)) as caught:
            await model.complete(ASK)
        return str(caught.value)

    said, vendor = meet("bedrock", [invalid], refused)
    assert len(vendor.posted) == 1
    assert "messages.0: invalid" in said


@pytest.mark.parametrize(
    ("message", "model", "left_out"),
    [
        ("This model doesn't support the toolConfig.toolChoice.tool field.", LLAMA, "tool_choice"),
        ("You invoked an unsupported model or your request did not allow prompt caching.", CLAUDE, "cache marks"),
        ("The model returned: temperature is not supported by this model.", CLAUDE, "inferenceConfig.temperature"),
        ("The maximum tokens you requested exceeds the model limit of 2048.", CLAUDE, "max_tokens above 2048"),
    ],
)
def test_a_refused_setting_is_left_out_from_then_on_and_named(message: str, model: str, left_out: str) -> None:
    request = replace(MUST, settings={"temperature": 0.2})
    script = [Answer({"message": message}, 400), Answer(reply({"text": "Hold."}))]
    heard, vendor = meet("bedrock", script, lambda client, _: client.complete(request), model)
    assert heard.rejected_settings == (left_out,)
    first, second = (asked.body for asked in vendor.posted)
    assert first != second


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["text", "toolUse", "reasoningContent", "input", "name", "toolUseId"]), inner)
    ),
    max_leaves=8,
)


@given(value=ANY, stop=st.none() | st.text(max_size=5))
def test_any_body_gives_a_reply_or_a_failure_that_says_something(value: Any, stop: Any) -> None:
    documents = [value, reply(value, stop=stop), {"output": {"message": {"content": value}}, "usage": value}]
    for document in documents:
        outcome = read(json.dumps(document), 200, {}, CONTEXT)
        if isinstance(outcome, Failure):
            assert outcome.message
            continue
        assert outcome.text or outcome.calls or outcome.problem
        turn = Message("assistant", outcome.text, outcome.calls, state=outcome.state)
        json.dumps(body(ModelRequest("", (*ASK.messages, turn), ASK.tools), CLAUDE, FORM))


def test_bedrock_needs_an_address_and_a_key_and_the_key_goes_only_there() -> None:
    with pytest.raises(UserError, match="an address for each customer or region") as caught:
        route(f"bedrock/{CLAUDE}", {"AWS_BEARER_TOKEN_BEDROCK": KEY})
    assert "BEDROCK_BASE_URL" in caught.value.hint
    assert "bedrock-runtime.us-east-1.amazonaws.com" in caught.value.hint
    address = "https://bedrock-runtime.eu-west-1.amazonaws.com"
    with pytest.raises(UserError, match="needs a key"):
        route(f"bedrock/{CLAUDE}", {"BEDROCK_BASE_URL": address})
    found = route(f"bedrock/{CLAUDE}", {"BEDROCK_BASE_URL": f"{address}/", "AWS_BEARER_TOKEN_BEDROCK": KEY})
    assert (found.model, found.provider.base_url, found.provider.may_hold_key) == (CLAUDE, address, True)


SESSIONS = Path(__file__).parents[4] / "shared/data/wire/llm/sessions.jsonl.gz"


@pytest.mark.skipif(not SESSIONS.exists(), reason="the recorded sessions are not on this machine")
def test_every_recorded_exchange_is_read_with_its_calls_text_and_tokens() -> None:
    exchanges = [one for one in recordings.read(SESSIONS) if recordings.kind(one) == "bedrock"]
    assert len(exchanges) == 70
    for exchange in exchanges:
        outcome = recordings.parse(exchange)
        if exchange.status != 200:
            assert isinstance(outcome, Failure)
            assert outcome.code == "unknown_model"
            continue
        assert isinstance(outcome, ModelReply)
        document = json.loads(exchange.body) if isinstance(exchange.body, str) else exchange.body
        blocks, usage = document["output"]["message"]["content"], document["usage"]
        uses = [block["toolUse"] for block in blocks if "toolUse" in block]
        assert [(call.id, call.name, json.loads(call.arguments)) for call in outcome.calls] == [
            (use["toolUseId"], use["name"], use["input"]) for use in uses
        ]
        assert outcome.text == "".join(block.get("text", "") for block in blocks)
        assert outcome.usage.input_tokens + outcome.usage.output_tokens == usage["totalTokens"]
        assert (
            outcome.finish_reason
            == {"tool_use": "tool_calls", "end_turn": "stop", "max_tokens": "length"}[document["stopReason"]]
        )
