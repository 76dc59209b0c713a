"""What reaches the vendors' clients: whole replies of bounded size in their documented form, and nothing else."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.native.vendor_server import ASK, KEY, Kind, VendorReply, claude, gemini, read_native, talk_to_vendor
from pitboss.core.errors import TransientError, UserError
from pitboss.core.ports import ModelReply
from pitboss.models import http_post
from pitboss.models.failures import Failure

BOTH = pytest.mark.parametrize("kind", ["anthropic", "google"])
JSON = {"content-type": "application/json"}
GOOD: dict[str, dict[str, Any]] = {
    "anthropic": claude({"type": "text", "text": "hold"}),
    "google": gemini({"text": "hold"}),
}
CALLING: dict[str, dict[str, Any]] = {
    "anthropic": claude({"type": "tool_use", "id": "t1", "name": "look", "input": {"symbol": "BTC"}}, stop="tool_use"),
    "google": gemini({"functionCall": {"name": "look", "args": {"symbol": "BTC"}}, "thoughtSignature": "c2ln"}),
}


def outcome(kind: Kind, body: Any, status: int = 200, **headers: str) -> ModelReply | Failure:
    """By its text, as it arrives."""
    content = body if isinstance(body, str) else json.dumps(body)
    return read_native(kind, content, status, JSON | headers)


def test_a_flood_is_not_drunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_post, "LARGEST_BYTES", 1_000)
    flood = VendorReply(claude({"type": "text", "text": "x" * 2_000}))

    async def talk(native: Any, _: Any) -> None:
        with pytest.raises(TransientError, match="larger than 1,000 bytes"):
            await native.complete(ASK)

    _, vendor = talk_to_vendor("anthropic", [flood], talk, attempts=1)
    assert len(vendor.posted) == 1


@BOTH
def test_a_small_body_that_unpacks_into_a_flood_is_not_drunk(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_post, "LARGEST_BYTES", 10_000)

    async def talk(native: Any, _: Any) -> None:
        with pytest.raises(TransientError, match="larger than"):
            await native.complete(ASK)

    talk_to_vendor(kind, [VendorReply(json.dumps(GOOD[kind]) + " " * 100_000, gzipped=True)], talk, attempts=1)


@BOTH
def test_a_pressed_reply_is_unpacked(kind: Kind) -> None:
    reply, _ = talk_to_vendor(kind, [VendorReply(GOOD[kind], gzipped=True)], lambda native, _: native.complete(ASK))
    assert reply.text == "hold"


@BOTH
def test_a_redirect_is_the_persons_to_put_right(kind: Kind) -> None:
    failure = outcome(kind, "", 307, location="https://elsewhere.test/")
    assert isinstance(failure, Failure)
    assert (failure.reaction, failure.code) == ("user", "redirect")


@pytest.mark.parametrize(
    ("kind", "body", "reaction", "code"),
    [
        ("anthropic", {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, "retry", "busy"),
        ("anthropic", {"type": "error", "error": {"type": "authentication_error", "message": "x"}}, "user", "bad_key"),
        ("anthropic", {"type": "error", "error": {"type": "invalid_request_error", "message": "x"}}, "give_up", "bad_request"),
        ("google", {"error": {"code": 503, "message": "x", "status": "UNAVAILABLE"}}, "retry", "busy"),
        ("google", [{"error": {"code": 429, "message": "x", "status": "RESOURCE_EXHAUSTED"}}], "retry", "busy"),
    ],
)  # fmt: skip
def test_an_error_with_a_good_status_is_the_error_it_says(kind: Kind, body: Any, reaction: str, code: str) -> None:
    failure = outcome(kind, body)
    assert isinstance(failure, Failure)
    assert (failure.reaction, failure.code) == (reaction, code)


@BOTH
@pytest.mark.parametrize("body", ["", "<html>", "null", "5", '"x"', "{}", "[]", '{"other": 1}', "[" * 50_000])
def test_what_is_no_reply_is_worth_another_try(kind: Kind, body: str) -> None:
    failure = outcome(kind, body)
    assert isinstance(failure, Failure)
    assert (failure.reaction, failure.code) == ("retry", "malformed")


@BOTH
def test_a_reply_nested_deeper_than_anyone_reads_is_no_crash(kind: Kind) -> None:
    deep = "[" * 990 + "]" * 990
    assert isinstance(outcome(kind, json.dumps(CALLING[kind]).replace('"BTC"', deep)), ModelReply | Failure)


@pytest.mark.parametrize(
    ("block", "name", "arguments"),
    [
        ({"id": "t1", "name": "look"}, "look", "{}"),
        ({"id": "t1", "name": "look", "input": None}, "look", "{}"),
        ({"id": "t1", "name": "look", "input": '{"a": 1}'}, "look", '{"a": 1}'),
        ({"id": "t1", "name": "look", "input": [1]}, "look", "[1]"),
        ({"id": "t1", "name": "look", "input": {"a": 2**70}}, "look", '{"a":1180591620717411300000}'),
        ({"id": "t1", "input": {}}, "unknown", "{}"),
        ({"id": 5, "name": None}, "unknown", "{}"),
    ],
)
def test_a_call_in_an_odd_form_is_still_that_call(block: dict[str, Any], name: str, arguments: str) -> None:
    reply = outcome("anthropic", claude({"type": "tool_use", **block}))
    assert isinstance(reply, ModelReply)
    assert [(call.name, call.arguments) for call in reply.calls] == [(name, arguments)]
    assert reply.calls[0].id


@pytest.mark.parametrize(
    ("call", "name", "arguments"),
    [
        ({"name": "look"}, "look", "{}"),
        ({"name": "look", "args": None}, "look", "{}"),
        ({"name": "look", "args": "text"}, "look", '{"arguments":"text"}'),
        ({"name": "look", "args": [1]}, "look", '{"arguments":[1]}'),
        ({"args": {}}, "unknown", "{}"),
        ({}, "unknown", "{}"),
    ],
)
def test_googles_call_in_an_odd_form_is_still_that_call(call: dict[str, Any], name: str, arguments: str) -> None:
    for field in ("functionCall", "function_call"):
        reply = outcome("google", gemini({field: call}))
        assert isinstance(reply, ModelReply)
        assert [(call.name, call.arguments) for call in reply.calls] == [(name, arguments)]


@pytest.mark.parametrize(
    "odd",
    [
        {}, None, "x", 5, {"hologram": 1}, {"text": None}, {"text": 5}, {"functionCall": None},
        {"fileData": {"fileUri": "gs://x"}}, {"inlineData": {"data": "!"}}, {"functionResponse": {"name": "look"}},
        {"codeExecutionResult": {"output": "1"}}, {"executableCode": {"language": "COBOL", "code": "1"}},
        {"type": "text"}, {"type": "text", "text": None}, {"type": "server_tool_use", "id": "s", "name": "new"},
        {"type": "container_upload", "file_id": "f"}, {"type": "fallback", "from": {}, "to": {}},
        {"type": "web_search_tool_result"}, {"type": "mcp_tool_use"}, {"type": "thinking"}, {"type": "compaction"},
    ],
)  # fmt: skip
@BOTH
def test_an_unusable_part_does_not_affect_the_others(kind: Kind, odd: Any) -> None:
    body = claude(odd, {"type": "text", "text": "hold"}) if kind == "anthropic" else gemini(odd, {"text": "hold"})
    reply = outcome(kind, body)
    assert isinstance(reply, ModelReply)
    assert (reply.text, reply.calls, reply.problem) == ("hold", (), "")


@pytest.mark.parametrize("signature", ["not base64!", 5, None, "a"])
def test_a_signature_that_is_none_is_left_out(signature: Any) -> None:
    reply = outcome("google", gemini({"text": "hold", "thoughtSignature": signature}))
    assert isinstance(reply, ModelReply)
    assert (reply.text, reply.state) == ("hold", "")


@pytest.mark.parametrize("content", [None, "hold", []])
def test_content_that_is_text_or_nothing_is_taken_as_that(content: Any) -> None:
    reply = outcome("anthropic", claude(content=content))
    assert isinstance(reply, ModelReply)
    assert reply.text == (content or "")
    assert bool(reply.problem) == (not content)


@BOTH
@pytest.mark.parametrize(
    "usage", [None, {}, [], {"input_tokens": "5", "promptTokenCount": -3}, {"input_tokens": 1e300}]
)
def test_without_tokens_that_can_be_believed_the_cost_is_unknown_and_never_nothing(kind: Kind, usage: Any) -> None:
    reply = outcome(kind, GOOD[kind] | {"usage": usage, "usageMetadata": usage})
    assert isinstance(reply, ModelReply)
    assert reply.text == "hold"
    assert reply.usage.input_tokens == 0
    assert reply.cost_usd is None


def test_parts_of_the_tokens_are_never_more_than_the_whole() -> None:
    reply = outcome(
        "google", gemini({"text": "x"}, usageMetadata={"cachedContentTokenCount": 9, "promptTokenCount": 4})
    )
    assert isinstance(reply, ModelReply)
    assert (reply.usage.input_tokens, reply.usage.cached_tokens) == (4, 4)


@pytest.mark.parametrize("finish", ["BRAND_NEW", "MISSING_THOUGHT_SIGNATURE", "stop", "FINISH_REASON_UNSPECIFIED"])
def test_an_unknown_finish_reason_of_google_is_an_ordinary_end_without_a_warning(finish: str) -> None:
    reply = outcome("google", gemini({"text": "hold"}, finish=finish))
    assert isinstance(reply, ModelReply)
    assert (reply.text, reply.finish_reason) == ("hold", "stop")


def test_an_unknown_block_reason_is_reported() -> None:
    reply = outcome("google", {"promptFeedback": {"blockReason": "BRAND_NEW"}})
    assert isinstance(reply, ModelReply)
    assert reply.finish_reason == "error"
    assert "BRAND_NEW" in reply.problem


@BOTH
def test_half_a_surrogate_pair_can_be_stored(kind: Kind) -> None:
    reply = outcome(kind, json.dumps(GOOD[kind]).replace("hold", "\\ud83d").replace("test", "\\ud83d"))
    assert isinstance(reply, ModelReply)
    assert f"{reply.text}{reply.model}".encode()


def test_a_key_that_comes_back_as_any_field_is_not_kept() -> None:
    body = claude({"type": "tool_use", "id": KEY, "name": KEY, "input": {KEY: KEY}}, id=KEY, model=KEY)
    reply, _ = talk_to_vendor("anthropic", [VendorReply(body)], lambda native, _: native.complete(ASK))
    assert KEY not in str(reply)


def test_a_setting_that_is_refused_is_no_reason_to_give_schemas_up() -> None:
    refused = VendorReply(
        {"type": "error", "error": {"type": "invalid_request_error", "message": "temperature: not supported"}}, 400
    )

    async def talk(native: Any, vendor: Any) -> None:
        question = replace(ASK, must_call="decide", answer="schema")
        with pytest.raises(UserError, match="temperature"):
            await native.complete(question)
        assert len(vendor.posted) == 1
        await native.complete(question)
        assert "output_format" in str(vendor.posted[1].body) or "output_config" in str(vendor.posted[1].body)

    talk_to_vendor("anthropic", [refused, VendorReply(GOOD["anthropic"])], talk)


# Streams ------------------------------------------------------------------------------------------------------------

START = {"type": "message_start", "message": {**claude(stop=""), "stop_reason": None}}
END = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}
STOP = {"type": "message_stop"}


def block_events(index: int, *deltas: dict[str, Any], **block: Any) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


TEXT = block_events(0, {"type": "text_delta", "text": "ho"}, {"type": "text_delta", "text": "ld"}, type="text", text="")
STREAMS: dict[str, list[dict[str, Any]]] = {
    "anthropic": [START, {"type": "ping"}, *TEXT, {"type": "novelty"}, END, STOP],
    "google": [
        {**gemini({"text": "ho"}), "candidates": [{"content": {"parts": [{"text": "ho"}]}}]},
        gemini({"text": "ld"}),
        {"usageMetadata": {"candidatesTokenCount": 5}},
    ],
}


def stream_text(events: list[dict[str, Any]], end: str = "\n", named: bool = True) -> str:
    return "".join(
        (f"event: {event['type']}{end}" if named and "type" in event else "") + f"data: {json.dumps(event)}{end}{end}"
        for event in events
    )


@BOTH
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: "\ufeff" + text,
        lambda text: ": keep-alive\n\n" + text,
        lambda text: "id: 1\nretry: 5\n" + text,
        lambda text: text + "data: [DONE]\n\n",
        lambda text: text.replace("data: ", "data:"),
        lambda text: text.rstrip("\n"),
        lambda text: text + "data: \n\n",
        lambda text: text.replace("event: ", "event: odd_"),
        lambda text: "".join(line + "\n" for line in text.split("\n") if not line.startswith("event")),
        lambda text: text.replace('"usage', '\ndata: "usage'),
    ],
)
def test_the_form_of_a_stream_does_not_matter(kind: Kind, change: Any) -> None:
    text = change(stream_text(STREAMS[kind]))
    for headers in ({"content-type": "text/event-stream"}, {"Content-Type": "Text/Event-Stream; x"}, JSON):
        reply = read_native(kind, text, 200, headers)
        assert isinstance(reply, ModelReply), reply
        assert (reply.text, reply.finish_reason, reply.problem) == ("hold", "stop", "")


@BOTH
def test_a_plain_reply_that_is_called_a_stream_is_read_as_what_it_is(kind: Kind) -> None:
    reply = read_native(kind, json.dumps(GOOD[kind]), 200, {"content-type": "text/event-stream"})
    assert isinstance(reply, ModelReply)
    assert reply.text == "hold"


def test_googles_stream_as_a_list_is_the_same_stream() -> None:
    assert outcome("google", STREAMS["google"]).text == "hold"  # type: ignore[union-attr]


@BOTH
def test_a_stream_cut_off_before_its_ending_is_never_taken_for_a_whole_reply(kind: Kind) -> None:
    ending = 5 if kind == "anthropic" else 1
    for length in range(ending):
        failure = outcome(kind, stream_text(STREAMS[kind][:length]) + "\n")
        assert isinstance(failure, Failure)
        assert failure.reaction == "retry"


def test_blocks_of_unknown_kinds_and_gaps_in_their_numbers_do_not_break_a_stream() -> None:
    call = block_events(
        9, {"type": "input_json_delta", "partial_json": '{"a":1}'}, type="tool_use", id="t", name="look", input={}
    )
    odd = block_events(1, {"type": "holo_delta", "x": 1}, type="hologram")
    search = block_events(
        2, {"type": "input_json_delta", "partial_json": "{}"}, type="server_tool_use", id="s", name="web"
    )
    thought = block_events(
        3,
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "signature_delta", "signature": "c2ln"},
        type="thinking",
        thinking="",
        signature="",
    )
    reply = outcome("anthropic", stream_text([START, *TEXT, *odd, *search, *thought, *call, END, STOP]))
    assert isinstance(reply, ModelReply)
    assert (reply.text, [(call.name, call.arguments) for call in reply.calls]) == ("hold", [("look", '{"a":1}')])
    assert "c2ln" in reply.state


def test_broken_arguments_of_a_stream_are_reported_as_they_are() -> None:
    call = block_events(
        0, {"type": "input_json_delta", "partial_json": '{"a":'}, type="tool_use", id="t", name="look", input={}
    )
    reply = outcome("anthropic", stream_text([START, *call, END, STOP]))
    assert isinstance(reply, ModelReply)
    assert reply.calls[0].arguments == '{"a":'


# Anything at all ----------------------------------------------------------------------------------------------------

NAMES = [
    "content", "type", "text", "tool_use", "id", "name", "input", "usage", "input_tokens", "stop_reason", "error", "message",
    "candidates", "parts", "functionCall", "args", "finishReason", "usageMetadata", "promptTokenCount", "promptFeedback",
    "blockReason", "thinking", "signature", "thoughtSignature", "index", "delta", "content_block", "stop_details", "code",
]  # fmt: skip
ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from(["text", "tool_use"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=20,
)


@given(ANY)
def test_any_values_are_a_reply_or_a_failure(value: Any) -> None:
    bodies = [value, {"content": [value]}, {"candidates": [{"content": {"parts": [value]}}], "usageMetadata": value}]
    for body in [*bodies, [value]]:
        for kind in ("anthropic", "google"):
            for content in (body, f"data: {json.dumps(body)}\n\n"):
                assert isinstance(read_native(kind, content), ModelReply | Failure)


@given(value=ANY, kind=st.sampled_from(["anthropic", "google"]))
def test_any_body_gives_a_reply_or_a_failure_that_says_something(value: Any, kind: Kind) -> None:
    body = claude(value, usage=value) if kind == "anthropic" else gemini(value, usageMetadata=value)
    result = read_native(kind, json.dumps(body), 200, JSON)
    assert isinstance(result, Failure) or result.text or result.calls or result.problem
    assert "could not be read" not in getattr(result, "message", "")


@BOTH
@pytest.mark.parametrize("before", range(270, 300, 3))
def test_half_a_key_is_not_reported_where_the_words_of_an_error_are_cut(kind: Kind, before: int) -> None:
    message = "x" * before + KEY
    answer = VendorReply({"type": "error", "error": {"type": "api_error", "code": 400, "message": message}}, 400)

    async def talk(native: Any, _: Any) -> str:
        with pytest.raises((UserError, TransientError)) as caught:
            await native.complete(ASK)
        return str(caught.value)

    reply_text, _ = talk_to_vendor(kind, [answer], talk, attempts=1)
    assert KEY[:4] not in reply_text


def test_a_call_of_googles_that_comes_in_pieces_is_not_taken_for_one_without_arguments() -> None:
    first = {"functionCall": {"name": "look", "willContinue": True}}
    second = {"functionCall": {"partialArgs": [{"jsonPath": "$.symbol", "stringValue": "BTC"}]}}
    for part in (first, second):
        assert isinstance(outcome("google", gemini(part)), Failure)
