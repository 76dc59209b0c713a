"""Plain replies in every shape that servers send, and in shapes that none should."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.intent import NO_USAGE, Usage
from pitboss.core.ports import ModelReply, ToolCall
from pitboss.models.chat import finish, reply
from pitboss.models.chat.content import without_thoughts
from pitboss.models.chat.usage import read_cost, read_usage
from pitboss.models.failures import Failure
from pitboss.models.json_body import parse_body

NAMES = [
    "choices",
    "message",
    "delta",
    "content",
    "text",
    "type",
    "tool_calls",
    "function",
    "function_call",
    "name",
    "arguments",
    "id",
    "finish_reason",
    "usage",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "prompt_tokens_details",
    "cached_tokens",
    "cost",
    "error",
    "code",
    "refusal",
    "model",
    "failed_generation",
    "thinking",
    "extra_content",
    "index",
]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["tool_use_failed", "length"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=25,
)


def body(message: Any = None, finish: Any = "stop", **top: Any) -> dict[str, Any]:
    return {"id": "r1", "model": "m1", "choices": [{"index": 0, "message": message, "finish_reason": finish}], **top}


def read_reply(message: Any = None, finish: Any = "stop", **top: Any) -> ModelReply:
    result = reply.read(body(message, finish, **top))
    assert isinstance(result, ModelReply)
    return result


def tool_call(name: Any = "decide", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def test_a_plain_answer_is_text_with_who_said_it() -> None:
    result = read_reply({"role": "assistant", "content": "Paris"})
    assert (result.text, result.calls, result.finish_reason, result.problem) == ("Paris", (), "stop", "")
    assert (result.provider_id, result.model) == ("r1", "m1")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("", ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"),
        ([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "4"}], "4"),
        (["a", {"text": "b"}, {"type": "image_url", "image_url": "x"}, 5, None], "ab"),
        ({"type": "text", "text": "alone"}, "alone"),
        (17, ""),
        ("<think>\nhm\n</think>\n\n{}", "{}"),
        ("  <thinking>x</thinking>4", "4"),
        ("<think>never done", ""),
        ("hm, so</think>4", "4"),
        ("I think so", "I think so"),
        ("a <think> tag and </think> later", "a <think> tag and </think> later"),
        ("half \ud800 pair", "half ? pair"),
    ],
)
def test_content_in_any_form_gives_its_text(content: Any, text: str) -> None:
    assert read_reply({"content": content}).text == text


@pytest.mark.parametrize("wishes", [None, [], {}, "x", 4, [None, "x"]])
def test_no_calls_in_any_form_are_no_calls(wishes: Any) -> None:
    result = read_reply({"content": "hi", "tool_calls": wishes})
    assert result.calls == ()
    assert result.finish_reason == "stop"


@pytest.mark.parametrize(
    ("entry", "call"),
    [
        (tool_call(arguments='{ "a": 1 }'), ToolCall("call_1", "decide", '{ "a": 1 }')),
        ({"id": "x", "function": {"name": "decide"}}, ToolCall("x", "decide", "")),
        (tool_call(arguments=None), ToolCall("call_1", "decide", "")),
        (tool_call(arguments={"b": 1, "a": [2]}), ToolCall("call_1", "decide", '{"b":1,"a":[2]}')),
        (tool_call(arguments=[]), ToolCall("call_1", "decide", "[]")),
        (tool_call(arguments="{broken"), ToolCall("call_1", "decide", "{broken")),
        (tool_call(name=None), ToolCall("call_1", "", "{}")),
        ({"name": "decide", "arguments": "{}"}, ToolCall("c5", "decide", "{}")),
        ({"id": "x", "type": "custom", "custom": {"name": "decide", "input": "go"}}, ToolCall("x", "decide", "go")),
        ({**tool_call(), "id": ""}, ToolCall("c5", "decide", "{}")),
        ({**tool_call(), "id": None}, ToolCall("c5", "decide", "{}")),
        ({**tool_call(), "id": 9}, ToolCall("c5", "decide", "{}")),
    ],
)
def test_a_call_in_any_form_is_read(entry: dict[str, Any], call: ToolCall) -> None:
    result = reply.read(body({"content": None, "tool_calls": [entry]}, "tool_calls"), first_call=5)
    assert isinstance(result, ModelReply)
    assert result.calls == (call,)
    assert (result.finish_reason, result.problem) == ("tool_calls", "")


def test_missing_and_repeated_ids_are_made_by_order_and_never_meet_another() -> None:
    wishes = [{**tool_call(), "id": entry} for entry in ("", "c1", "c1", "")]
    result = read_reply({"tool_calls": wishes})
    assert [call.id for call in result.calls] == ["c0", "c1", "c2", "c3"]
    assert result == read_reply({"tool_calls": wishes})


def test_the_old_form_of_a_call_is_read() -> None:
    result = read_reply({"content": None, "function_call": {"name": "decide", "arguments": "{}"}}, "function_call")
    assert result.calls == (ToolCall("c0", "decide", "{}"),)
    assert result.finish_reason == "tool_calls"


def test_tools_that_the_provider_ran_itself_are_not_calls() -> None:
    assert read_reply({"content": "hi", "executed_tools": [tool_call()]}).calls == ()


@pytest.mark.parametrize(
    ("finish", "message", "reason", "problem"),
    [
        ("stop", {"content": "x"}, "stop", ""),
        (None, {"content": "x"}, "stop", ""),
        (7, {"content": "x"}, "stop", ""),
        ("eos", {"content": "x"}, "stop", ""),
        ("tool_calls", {"content": "x"}, "stop", ""),
        ("tool_calls", {"content": None}, "stop", finish.EMPTY),
        ("stop", {"content": " \n"}, "stop", finish.EMPTY),
        ("stop", None, "stop", finish.EMPTY),
        ("stop", {"tool_calls": [tool_call()]}, "tool_calls", ""),
        ("length", {"content": "half an ans"}, "length", finish.CUT),
        ("MAX_TOKENS", {"content": ""}, "length", finish.CUT),
        ("length", {"tool_calls": [tool_call(arguments='{"a')]}, "length", finish.CUT),
        ("content_filter", {"content": ""}, "error", finish.BLOCKED),
        ("SAFETY", {"content": None}, "error", finish.BLOCKED),
        ("error", {"content": "so f"}, "error", finish.BROKE),
        ("stop", {"content": None, "refusal": "I will not."}, "error", f"{finish.REFUSED}: I will not."),
        ("stop", {"content": [{"type": "refusal", "refusal": "No."}]}, "error", f"{finish.REFUSED}: No."),
    ],
)
def test_each_way_of_ending_has_its_outcome(finish: Any, message: Any, reason: str, problem: str) -> None:
    result = read_reply(message, finish)
    assert (result.finish_reason, result.problem) == (reason, problem)


def test_what_a_refusal_says_is_kept_as_text() -> None:
    assert read_reply({"content": None, "refusal": "I will not."}).text == "I will not."


def test_a_reply_without_choices_is_empty_when_it_says_so_and_malformed_when_it_does_not() -> None:
    result = reply.read({"choices": [], "usage": {"prompt_tokens": 5}})
    assert isinstance(result, ModelReply)
    assert (result.problem, result.usage.input_tokens) == (finish.EMPTY, 5)
    for strange in ({}, [], "text", None, 5, {"choices": None}, {"choices": {}}):
        failed = reply.read(strange)
        assert isinstance(failed, Failure)
        assert (failed.reaction, failed.code) == ("retry", "malformed")


def test_an_error_in_a_good_status_is_an_error() -> None:
    failed = reply.read({"error": {"code": 401, "message": "no"}})
    assert isinstance(failed, Failure)
    assert failed.code == "bad_key"


def test_the_older_text_form_is_read() -> None:
    result = reply.read({"choices": [{"text": "hi", "finish_reason": "stop"}]})
    assert isinstance(result, ModelReply)
    assert result.text == "hi"


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, NO_USAGE),
        ([], NO_USAGE),
        ({}, NO_USAGE),
        ({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}, Usage(10, 2)),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 50,
                "total_tokens": 150,
                "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
                "completion_tokens_details": {"reasoning_tokens": 40},
            },
            Usage(100, 50, 60, 40, 30),
        ),
        ({"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 4}, Usage(9, 1, 4)),
        ({"prompt_tokens": 9, "completion_tokens": 1, "num_cached_tokens": 4}, Usage(9, 1, 4)),
        ({"prompt_tokens": 9, "completion_tokens": 1, "cached_tokens": 4}, Usage(9, 1, 4)),
        ({"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": None}, Usage(9, 1)),
        ({"prompt_tokens": 35, "completion_tokens": 12, "total_tokens": 109}, Usage(35, 74, 0, 62)),
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 10,
                "total_tokens": 115,
                "completion_tokens_details": {"reasoning_tokens": 100},
            },
            Usage(5, 110, 0, 100),
        ),
        ({"prompt_tokens": 5, "completion_tokens": 10, "completion_tokens_details": {"reasoning_tokens": 11}}, Usage(5, 10, 0, 10)),
        ({"prompt_tokens": 5, "completion_tokens": 1, "cached_tokens": 9}, Usage(5, 1, 5)),
        ({"input_tokens": 5, "output_tokens": 1}, Usage(5, 1)),
        ({"prompt_tokens": -5, "completion_tokens": "many", "total_tokens": True}, NO_USAGE),
        ({"prompt_tokens": 5.0, "completion_tokens": float("nan")}, Usage(5, 0)),
    ],
)  # fmt: skip
def test_every_way_of_counting_tokens_becomes_ours(usage: Any, expected: Usage) -> None:
    assert read_usage(usage) == expected


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"cost": 0.0160614, "cost_details": {"upstream_inference_cost": 0.0001764}}, Decimal("0.0160614")),
        ({"cost": 0}, Decimal(0)),
        ({"cost": 0.001, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.5}}, Decimal("0.501")),
        ({"cost": 0.001, "is_byok": True, "cost_details": {"upstream_inference_cost": None}}, Decimal("0.001")),
        ({"cost": None}, None),
        ({"cost": -1}, None),
        ({"cost": float("inf")}, None),
        ({"cost": 10**400}, None),
        ({"cost": "0.1"}, None),
        ({"cost": True}, None),
        ({}, None),
        (None, None),
    ],
)
def test_a_cost_is_known_only_when_the_provider_says_it(usage: Any, cost: Decimal | None) -> None:
    assert read_cost(usage) == cost
    assert read_reply({"content": "x"}, usage=usage).cost_usd == cost


def test_state_holds_what_the_provider_wants_back_and_no_more() -> None:
    message = {"content": "x", "reasoning_content": "hm", "reasoning_details": [{"data": "d"}], "reasoning": None}
    assert json.loads(read_reply(message).state) == {"reasoning_content": "hm", "reasoning_details": [{"data": "d"}]}
    only = reply.read(body(message), keeps=("reasoning_details",))
    assert isinstance(only, ModelReply)
    assert json.loads(only.state) == {"reasoning_details": [{"data": "d"}]}
    nothing = reply.read(body(message), keeps=())
    assert isinstance(nothing, ModelReply)
    assert nothing.state == ""


def test_state_holds_signatures_of_calls_and_parts_of_content() -> None:
    signed = {"extra_content": {"google": {"thought_signature": "s"}}}
    result = read_reply({"content": [{"type": "text", "text": "x"}], "tool_calls": [tool_call(), tool_call(**signed)]})
    assert json.loads(result.state) == {"content": [{"type": "text", "text": "x"}], "tool_calls": [None, signed]}


def test_state_beyond_all_measure_is_dropped() -> None:
    assert read_reply({"content": "x", "reasoning": "r" * (reply.MAX_STATE_CHARS + 1)}).state == ""


def failed_generation_reply(generation: Any, message: str = "did not match schema") -> ModelReply:
    error = {"code": "tool_use_failed", "failed_generation": generation, "message": message}
    result = reply.read_error(400, {"error": error})
    assert isinstance(result, ModelReply)
    return result


@pytest.mark.parametrize(
    "generation",
    [
        '{"name": "decide", "arguments": {"a": 1}}',
        '[{"name": "decide", "parameters": {"a": 1}}]',
        '<tool_call>{"name": "decide", "arguments": {"a": 1}}</tool_call>',
        '<function=decide>{"a":1}</function>',
        '<function=decide{"a":1}</function>',
    ],
)
def test_a_call_that_the_provider_rejected_is_the_models_call_with_a_problem(generation: str) -> None:
    result = failed_generation_reply(generation)
    assert [(call.name, json.loads(call.arguments)) for call in result.calls] == [("decide", {"a": 1})]
    assert (result.finish_reason, result.problem) == ("tool_calls", "did not match schema")
    assert (result.usage, result.cost_usd) == (NO_USAGE, None)


@pytest.mark.parametrize(("generation", "text"), [("maybe", "maybe"), (None, ""), ({"x": 1}, '{"x":1}'), ("", "")])
def test_words_that_the_provider_rejected_are_text_with_a_problem(generation: Any, text: str) -> None:
    result = failed_generation_reply(generation, "")
    assert (result.text, result.calls, result.finish_reason) == (text, (), "stop")
    assert result.problem


@pytest.mark.parametrize(
    "error",
    [
        {"code": "content_filter", "message": "filtered"},
        {"code": None, "type": "content_policy_violation", "message": "filtered"},
        {"code": "x", "innererror": {"code": "ResponsibleAIPolicyViolation"}, "message": "filtered"},
    ],
)
def test_a_question_that_was_filtered_is_a_blocked_reply(error: dict[str, Any]) -> None:
    result = reply.read_error(400, {"error": error})
    assert isinstance(result, ModelReply)
    assert result.finish_reason == "error"
    assert "filtered" in result.problem


def test_other_errors_are_failures() -> None:
    result = reply.read_error(429, {}, {"retry-after": "3"}, "groq/x")
    assert isinstance(result, Failure)
    assert (result.wait_s, result.reaction) == (3, "retry")


def test_bytes_that_are_no_json_are_given_as_text() -> None:
    assert parse_body(b'{"a": 1}') == {"a": 1}
    assert parse_body(b"\xff<html>") == "\ufffd<html>"
    assert parse_body('{"a": "\\ud800"}') == {"a": "\ud800"}
    deep = "[" * 100_000
    assert parse_body(deep) == deep


@given(JSON)
def test_any_json_gives_a_reply_or_a_failure(value: object) -> None:
    for result in (
        reply.read(value),
        reply.read({"choices": [value], "usage": value}),
        reply.read(body(value)),
        reply.read_error(400, value),
        reply.read_error(400, {"error": {"code": "tool_use_failed", "failed_generation": value}}),
    ):
        assert isinstance(result, ModelReply | Failure)
        if isinstance(result, ModelReply):
            usage = result.usage
            assert usage.cached_tokens + usage.cache_write_tokens <= usage.input_tokens
            assert usage.reasoning_tokens <= usage.output_tokens
            assert len({call.id for call in result.calls}) == len(result.calls)
            f"{result}".encode()


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_any_bytes_give_a_reply_or_a_failure(raw: bytes | str) -> None:
    assert isinstance(reply.read(parse_body(raw)), ModelReply | Failure)


# Shapes from the wild -----------------------------------------------------------------------------------------------


def read_body(value: Any) -> ModelReply | Failure:
    return reply.read(parse_body(value) if isinstance(value, str | bytes) else value)


def test_a_mark_of_the_byte_order_before_a_body_is_passed_over() -> None:
    text = "\ufeff" + json.dumps(body({"content": "hi"}))
    for form in (text, text.encode()):
        answer = read_body(form)
        assert isinstance(answer, ModelReply)
        assert answer.text == "hi"


def test_of_several_choices_the_one_numbered_0_counts() -> None:
    choices = [{"index": 1, "message": {"content": "b"}}, None, {"index": 0, "message": {"content": "a"}}]
    answer = read_body({"choices": choices})
    assert isinstance(answer, ModelReply)
    assert answer.text == "a"


@pytest.mark.parametrize("old", [{}, {"name": None}, {"arguments": "{}"}, "look"])
def test_an_old_form_of_call_without_a_name_is_no_call(old: Any) -> None:
    answer = read_body(body({"content": "hi", "function_call": old}))
    assert isinstance(answer, ModelReply)
    assert (answer.text, answer.calls) == ("hi", ())


@pytest.mark.parametrize(
    ("value", "reaction", "code"),
    [
        ({"message": "slow down", "code": 429}, "retry", "busy"),
        ({"object": "error", "message": "maximum context length is 10", "code": 400}, "give_up", "too_long"),
        ({"detail": "Not Found"}, "retry", "server"),
        ({"choices": [], "message": "no such key", "code": "invalid_api_key"}, "user", "bad_key"),
        (body({"content": ""}, "error") | {"choices": [{"error": {"code": 429, "message": "x"}}]}, "retry", "busy"),
    ],
)
def test_an_error_with_a_good_status_is_that_error_in_any_envelope(value: Any, reaction: str, code: str) -> None:
    failure = read_body(value)
    assert isinstance(failure, Failure)
    assert (failure.reaction, failure.code) == (reaction, code)


@pytest.mark.parametrize(
    ("reason", "problem"),
    [
        ("content_filter: PROHIBITED_CONTENT", finish.BLOCKED),
        ("function_call_filter: MALFORMED_FUNCTION_CALL", finish.BROKE),
        ("insufficient_system_resource", finish.BROKE),
        ("abort", finish.BROKE),
        ("eos", ""),
    ],
)
def test_endings_of_single_servers_are_known(reason: str, problem: str) -> None:
    answer = read_body(body({"content": "half"}, reason))
    assert isinstance(answer, ModelReply)
    assert (answer.problem, answer.finish_reason) == (problem, "error" if problem else "stop")


def test_an_answer_that_the_provider_found_not_to_match_its_schema_is_reported_to_the_model() -> None:
    error = {"code": "json_validate_failed", "message": "Failed to generate JSON", "failed_generation": '{"name": "x"'}
    answer = reply.read_error(400, {"error": error})
    assert isinstance(answer, ModelReply)
    assert (answer.text, answer.calls, answer.cost_usd) == ('{"name": "x"', (), None)
    assert "Failed to generate JSON" in answer.problem


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (403, {"code": 403, "message": "flagged", "metadata": {"reasons": ["violence"], "flagged_input": "…"}}),
        (400, {"code": "invalid_prompt", "message": "flagged"}),
        (400, {"code": "data_inspection_failed", "message": "flagged"}),
    ],
)
def test_a_question_that_a_provider_will_not_pass_on_is_blocked_and_no_fault_of_the_key(
    status: int, error: dict[str, Any]
) -> None:
    answer = reply.read_error(status, {"error": error})
    assert isinstance(answer, ModelReply)
    assert answer.problem.startswith(finish.BLOCKED)


def test_arguments_nested_without_end_are_not_taken_for_none() -> None:
    deep = "[" * 990 + "]" * 990
    text = json.dumps({"choices": [{"message": {"tool_calls": [{"function": {"name": "look", "arguments": 0}}]}}]})
    answer = read_body(text.replace(": 0", f": {deep}"))
    assert isinstance(answer, ModelReply)
    assert answer.calls[0].arguments not in ("", "{}")


def test_tokens_counted_in_anthropics_way_are_counted_in_ours() -> None:
    usage = {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 5}
    assert read_usage(usage) == Usage(15, 4, 7, 0, 5)
    assert read_usage({"prompt_tokens": 10, "completion_tokens": 1, "cache_read_input_tokens": 7}) == Usage(10, 1, 7)


def test_thoughts_in_googles_own_tags_are_no_part_of_the_answer() -> None:
    assert without_thoughts("<thought>hm</thought>4") == "4"
    assert without_thoughts("a second thought") == "a second thought"
