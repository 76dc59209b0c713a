"""Every ending of a native reply has one outcome, and tokens are counted one way."""

from dataclasses import replace
from typing import Any

import pytest

from models.native.vendor_server import ASK, KEY, Kind, ask_once, claude, gemini, read_native
from pitboss.core.intent import Usage
from pitboss.core.ports import ModelReply, ToolCall

JSON = {"content-type": "application/json"}
EVENTS = {"content-type": "text/event-stream"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"symbol": "BTC"}}


def read_body(kind: Kind, body: Any) -> ModelReply:
    reply = read_native(kind, body, 200, JSON)
    assert isinstance(reply, ModelReply)
    return reply


def test_cached_and_cache_written_tokens_are_part_of_the_input() -> None:
    usage = {
        "input_tokens": 3,
        "output_tokens": 33,
        "cache_read_input_tokens": 1_111,
        "cache_creation_input_tokens": 418,
    }
    usage["output_tokens_details"] = {"thinking_tokens": 20}  # type: ignore[assignment]
    body = claude({"type": "text", "text": "hi"}, usage=usage)
    assert read_body("anthropic", body).usage == Usage(1_532, 33, 1_111, 20, 418)


def test_googles_thoughts_are_part_of_the_output() -> None:
    assert read_body("google", gemini({"text": "hi"})).usage == Usage(20, 10, 8, 6, 0)


def test_text_in_several_parts_is_one_text_and_thoughts_are_not_in_it() -> None:
    body = gemini({"text": "thinking", "thought": True}, {"text": "ho"}, {"text": "ld"})
    assert read_body("google", body).text == "hold"
    body = claude(
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": "ho"},
        {"type": "text", "text": "ld"},
    )
    assert read_body("anthropic", body).text == "hold"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("anthropic", claude({"type": "text", "text": "I can"}, CALL, stop="max_tokens")),
        ("google", gemini({"text": "I can"}, {"functionCall": {"name": "look", "args": {}}}, finish="MAX_TOKENS")),
        ("anthropic", claude({"type": "text", "text": "I can"}, stop="model_context_window_exceeded")),
    ],
)
def test_a_reply_cut_off_is_length_and_the_call_it_was_cut_in_is_none(kind: Kind, body: Any) -> None:
    reply = read_body(kind, body)
    assert (reply.finish_reason, reply.text, reply.calls) == ("length", "I can", ())
    assert "cut off" in reply.problem


def test_a_call_before_the_one_that_was_cut_off_counts() -> None:
    reply = read_body("anthropic", claude(CALL, {**CALL, "id": "toolu_2", "input": {}}, stop="max_tokens"))
    assert [call.id for call in reply.calls] == ["toolu_1"]
    assert reply.finish_reason == "length"


def test_a_refusal_is_an_error_in_words_without_calls() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "not for me"}
    reply = read_body("anthropic", claude(CALL, stop="refusal", stop_details=details))
    assert (reply.finish_reason, reply.calls) == ("error", ())
    assert "not for me" in reply.problem


@pytest.mark.parametrize("finish", ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "SPII", "BLOCKLIST"])
def test_an_answer_withheld_by_google_is_an_error_that_names_the_reason(finish: str) -> None:
    reply = read_body("google", gemini(finish=finish))
    assert reply.finish_reason == "error"
    assert finish in reply.problem


def test_a_blocked_prompt_is_an_error_in_googles_words() -> None:
    body = {
        "promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "not this"},
        "modelVersion": "gemini-test",
    }
    reply = read_body("google", body)
    assert (reply.finish_reason, reply.text) == ("error", "")
    assert "not this" in reply.problem


@pytest.mark.parametrize("finish", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
def test_a_call_that_google_could_not_read_is_reported(finish: str) -> None:
    reply = read_body("google", gemini(finish=finish))
    assert reply.finish_reason == "error"
    assert finish in reply.problem


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("anthropic", claude()),
        ("anthropic", claude({"type": "text", "text": " \n"})),
        ("google", gemini()),
        ("google", {"candidates": [{"finishReason": "OTHER"}], "modelVersion": "gemini-test"}),
        ("google", {"candidates": [], "modelVersion": "gemini-test"}),
    ],
)
def test_an_empty_reply_says_so(kind: Kind, body: Any) -> None:
    reply = read_body(kind, body)
    assert reply.finish_reason == "stop"
    assert "empty" in reply.problem


def test_googles_calls_end_as_calls_although_it_says_stop_and_get_ids_by_their_place() -> None:
    parts = [{"functionCall": {"name": "look", "args": {"symbol": symbol}}} for symbol in ("BTC", "ETH")]
    reply = read_body("google", gemini(*parts, {"functionCall": {"name": "look", "id": "g7"}}))
    assert reply.finish_reason == "tool_calls"
    assert reply.calls == (
        ToolCall("call_0_0", "look", '{"symbol":"BTC"}'),
        ToolCall("call_0_1", "look", '{"symbol":"ETH"}'),
        ToolCall("g7", "look", "{}"),
    )


def test_content_of_an_unknown_kind_is_ignored() -> None:
    body = claude({"type": "hologram", "beam": 1}, {"type": "text", "text": "hold"}, CALL, stop="tool_use")
    reply = read_body("anthropic", body)
    assert (reply.text, [call.name for call in reply.calls]) == ("hold", ["look"])


def test_an_unknown_stop_reason_is_an_ordinary_end() -> None:
    assert read_body("anthropic", claude({"type": "text", "text": "hold"}, stop="new_reason")).finish_reason == "stop"


def test_a_reply_that_repeats_the_key_is_kept_without_it() -> None:
    block = {"type": "tool_use", "id": "t", "name": "look", "input": {"symbol": KEY}}
    thought = {"type": "thinking", "thinking": KEY, "signature": "c2ln"}
    reply, _ = ask_once("anthropic", claude(thought, {"type": "text", "text": f"it is {KEY}"}, block), replace(ASK))
    assert KEY not in str(reply)
    assert reply.text == "it is ***"


# What is no reply ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["anthropic", "google"])
@pytest.mark.parametrize(
    "body", ["<html>gateway</html>", "", "[1, 2", "[]", "null", "7", '{"content": 7, "candidates": 7}']
)
def test_a_body_that_is_no_reply_is_worth_another_try_or_is_empty(kind: Kind, body: str) -> None:
    reply = read_native(kind, body, 200, JSON)
    if isinstance(reply, ModelReply):
        assert reply.problem
        assert not reply.calls
    else:
        assert reply.reaction == "retry"


def events(*data: str) -> str:
    return "".join(f"event: x\ndata: {line}\n\n" for line in data)


@pytest.mark.parametrize("kind", ["anthropic", "google"])
@pytest.mark.parametrize("body", ["", "data: {", events("{}"), events("not json"), ": keep-alive\n\n"])
def test_a_stream_that_is_no_reply_is_worth_another_try_or_is_empty(kind: Kind, body: str) -> None:
    reply = read_native(kind, body, 200, EVENTS)
    if isinstance(reply, ModelReply):
        assert reply.problem
    else:
        assert reply.reaction == "retry"


def test_an_error_inside_a_stream_that_began_well_is_worth_another_try() -> None:
    body = 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
    failure = read_native("anthropic", body, 200, EVENTS)
    assert not isinstance(failure, ModelReply)
    assert failure.reaction == "retry"


def anthropic_stream(*middle: str, end: bool = True) -> str:
    start = '{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"c","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":4,"output_tokens":1}}}'
    stop = (
        '{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":9}}'
    )
    lines = [start, *middle, *([stop, '{"type":"message_stop"}'] if end else [])]
    return "".join(f"event: {line.split(chr(34))[3]}\ndata: {line}\n\n" for line in lines)


def block(index: int, content: str, *deltas: str) -> tuple[str, ...]:
    return (
        f'{{"type":"content_block_start","index":{index},"content_block":{content}}}',
        *(f'{{"type":"content_block_delta","index":{index},"delta":{delta}}}' for delta in deltas),
        f'{{"type":"content_block_stop","index":{index}}}',
    )


TOOL = '{"type":"tool_use","id":"t1","name":"look","input":{}}'


def test_a_streamed_call_is_joined_and_empty_arguments_are_an_empty_object() -> None:
    pieces = ('{"type":"input_json_delta","partial_json":""}', '{"type":"input_json_delta","partial_json":"{\\"a\\":"}')
    last = '{"type":"input_json_delta","partial_json":"1}"}'
    body = anthropic_stream(*block(0, TOOL, *pieces, last), *block(1, TOOL.replace("t1", "t2")))
    reply = read_native("anthropic", body, 200, EVENTS)
    assert isinstance(reply, ModelReply)
    assert reply.calls == (ToolCall("t1", "look", '{"a":1}'), ToolCall("t2", "look", "{}"))
    assert reply.usage == Usage(4, 9)


def test_a_stream_that_breaks_off_is_no_answer() -> None:
    piece = '{"type":"input_json_delta","partial_json":"{\\"a\\":1}"}'
    body = anthropic_stream(*block(0, TOOL, piece), end=False)
    reply = read_native("anthropic", body, 200, EVENTS)
    assert not isinstance(reply, ModelReply)
    assert reply.reaction == "retry"
