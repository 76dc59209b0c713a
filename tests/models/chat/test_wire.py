"""Our questions as each dialect of chat completions wants them."""

import asyncio
import json
from dataclasses import replace
from time import monotonic
from typing import Any

import pytest

from pitboss.core.errors import InvariantError
from pitboss.core.ports import Message, ModelRequest, ToolCall, ToolSpec
from pitboss.models import http_pool
from pitboss.models.chat import wire
from pitboss.models.chat.adaptation import simpler_dialect
from pitboss.models.chat.client import ChatModel
from pitboss.models.json_body import encode_json
from pitboss.models.providers import MAX_TOKENS, PROVIDERS, Dialect, entry
from pitboss.models.retried import Retried
from pitboss.testing import provider as fake
from pitboss.testing.provider import FakeProvider

CLOSED = {
    "type": "object",
    "properties": {"action": {"type": "string"}},
    "required": ["action"],
    "additionalProperties": False,
}
OPEN = {
    "type": "object",
    "properties": {"action": {"type": "string"}, "size": {"type": "number"}},
    "required": ["action"],
}
LOOK, DECIDE = ToolSpec("look", "Look.", OPEN), ToolSpec("decide", "Decide.", CLOSED)


def question(*messages: Message, **more: Any) -> ModelRequest:
    return ModelRequest("Rules.", messages or (Message("user", "Now?"),), (LOOK, DECIDE), **more)


def encoded_request(request: ModelRequest, dialect: Dialect | None = None) -> dict[str, Any]:
    return json.loads(encode_json(wire.body(request, "m", dialect or Dialect())))


def test_a_free_choice_offers_every_tool_and_says_nothing_about_choosing() -> None:
    body = encoded_request(question())
    assert body["model"] == "m"
    assert body["messages"] == [{"role": "system", "content": "Rules."}, {"role": "user", "content": "Now?"}]
    assert [tool["function"]["name"] for tool in body["tools"]] == ["look", "decide"]
    assert body["tools"][0] == {
        "type": "function",
        "function": {"name": "look", "description": "Look.", "parameters": OPEN},
    }
    assert "tool_choice" not in body
    assert "stream" not in body


@pytest.mark.parametrize(
    ("provider", "choice"),
    [
        ("openai", {"type": "function", "function": {"name": "decide"}}),
        ("groq", "required"),
        ("mistral", "any"),
        ("ollama", None),
    ],
)
def test_a_call_is_forced_in_the_dialects_own_form_with_only_that_tool(provider: str, choice: object) -> None:
    body = encoded_request(question(must_call="decide"), PROVIDERS[provider].dialect)
    assert body.get("tool_choice") == choice
    assert [tool["function"]["name"] for tool in body["tools"]] == ["decide"]


def test_a_schema_constrains_the_answer_and_no_tool_is_offered() -> None:
    body = encoded_request(question(must_call="decide", answer="schema"))
    assert "tools" not in body
    form = {"name": "decide", "schema": CLOSED, "strict": True}
    assert body["response_format"] == {"type": "json_schema", "json_schema": form}


def test_strict_is_said_only_of_schemas_that_are_closed() -> None:
    body = encoded_request(question(must_call="look", answer="schema"))
    assert "strict" not in body["response_format"]["json_schema"]
    assert wire.is_strict({"type": "array", "items": [CLOSED]})
    assert not wire.is_strict({"type": "array", "items": OPEN})
    assert not wire.is_strict({"type": "object"})


def test_where_nothing_can_be_constrained_the_schema_is_reported() -> None:
    body = encoded_request(question(must_call="decide", answer="schema"), Dialect(schema="none"))
    assert "response_format" not in body
    assert json.dumps(CLOSED, separators=(",", ":")) in body["messages"][-1]["content"]


def test_a_forced_tool_that_is_not_offered_is_our_own_mistake() -> None:
    with pytest.raises(InvariantError):
        wire.body(question(must_call="fly"), "m", Dialect())


def test_calls_and_their_results_go_back_as_they_came() -> None:
    call = ToolCall("id1", "look", '{"action":"x"}')
    body = encoded_request(
        question(Message("user", "Now?"), Message("assistant", "", (call,)), Message("tool", "42", call_id="id1"))
    )
    assert body["messages"][2] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "id1", "type": "function", "function": {"name": "look", "arguments": '{"action":"x"}'}}],
    }
    assert body["messages"][3] == {"role": "tool", "tool_call_id": "id1", "content": "42"}


def test_empty_turns_arguments_and_names_become_something_that_servers_take() -> None:
    body = encoded_request(question(Message("assistant", ""), Message("assistant", "", (ToolCall("c0", "", ""),))))
    assert body["messages"][1]["content"] == wire.NO_TEXT
    assert body["messages"][2]["tool_calls"][0]["function"] == {"name": "unknown", "arguments": "{}"}


def test_half_a_surrogate_pair_does_not_stop_a_question() -> None:
    assert encoded_request(question(Message("user", "a\ud800b")))["messages"][1]["content"] == "a?b"


@pytest.mark.parametrize(
    ("provider", "settings", "expected"),
    [
        ("groq", {}, {"max_tokens": MAX_TOKENS}),
        ("openai", {"max_tokens": 7}, {"max_completion_tokens": 7}),
        ("groq", {"temperature": 0.0, "seed": 0}, {"max_tokens": MAX_TOKENS, "temperature": 0.0, "seed": 0}),
        ("mistral", {"seed": 3}, {"max_tokens": MAX_TOKENS, "random_seed": 3}),
        ("anthropic-chat", {"seed": 3}, {"max_tokens": MAX_TOKENS}),
        ("openai", {"reasoning": "high"}, {"max_completion_tokens": MAX_TOKENS, "reasoning_effort": "high"}),
        ("openrouter", {"reasoning": "low"}, {"max_tokens": MAX_TOKENS, "reasoning": {"effort": "low"}}),
        ("openrouter", {"reasoning": "none"}, {"max_tokens": MAX_TOKENS, "reasoning": {"enabled": False}}),
        ("deepseek", {"reasoning": "none"}, {"max_tokens": MAX_TOKENS, "thinking": {"type": "disabled"}}),
        (
            "anthropic-chat",
            {"reasoning": "high", "temperature": 0.5},
            {"max_tokens": MAX_TOKENS, "thinking": {"type": "enabled", "budget_tokens": 2_048}},
        ),
        ("anthropic-chat", {"reasoning": "high", "max_tokens": 100}, {"max_tokens": 100}),
        ("anthropic-chat", {"reasoning": "none"}, {"max_tokens": MAX_TOKENS}),
    ],
)
def test_settings_reach_each_provider_under_its_own_names(
    provider: str, settings: dict[str, Any], expected: dict[str, Any]
) -> None:
    body = encoded_request(question(settings=settings), PROVIDERS[provider].dialect)
    assert {name: value for name, value in body.items() if name not in ("model", "messages", "tools")} == expected


def test_nothing_thinks_while_a_call_is_forced() -> None:
    body = encoded_request(
        question(must_call="decide", settings={"reasoning": "high"}), PROVIDERS["anthropic-chat"].dialect
    )
    assert "thinking" not in body
    assert "tool_choice" in body


def test_state_goes_back_only_to_a_dialect_that_keeps_it() -> None:
    call = ToolCall("c0", "look", "{}")
    state = json.dumps({"reasoning_content": "hm", "reasoning_details": [{"data": "x"}], "unasked": 1})
    turn = Message("assistant", "", (call,), state=state)
    deepseek = encoded_request(question(turn), PROVIDERS["deepseek"].dialect)["messages"][1]
    assert deepseek["reasoning_content"] == "hm"
    assert "reasoning_details" not in deepseek
    assert encoded_request(question(turn), PROVIDERS["openrouter"].dialect)["messages"][1]["reasoning_details"] == [
        {"data": "x"}
    ]
    assert set(encoded_request(question(turn), PROVIDERS["groq"].dialect)["messages"][1]) == {
        "role",
        "content",
        "tool_calls",
    }


def test_signatures_of_calls_go_back_with_their_calls() -> None:
    extra = {"extra_content": {"google": {"thought_signature": "s"}}}
    turn = Message("assistant", "", (ToolCall("c0", "look", "{}"),), state=json.dumps({"tool_calls": [extra]}))
    body = encoded_request(question(turn), PROVIDERS["google-chat"].dialect)
    assert body["messages"][1]["tool_calls"][0]["extra_content"] == extra["extra_content"]


@pytest.mark.parametrize("state", ["not json", "[]", "1", '{"reasoning_content": null}'])
def test_state_that_means_nothing_is_left_out_or_harmless(state: str) -> None:
    turn = Message("assistant", "hi", state=state)
    assert encoded_request(question(turn), PROVIDERS["deepseek"].dialect)["messages"][1] == {
        "role": "assistant",
        "content": "hi",
    }


NO_SYSTEM = [
    "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
    "Unsupported value: 'messages[0].role' does not support 'developer' with this model.",
    "System role not supported",
    "fake/m: a setting is not accepted: Developer instruction is not enabled; system_instruction is unknown",
]


@pytest.mark.parametrize("complaint", NO_SYSTEM)
def test_a_model_without_a_turn_of_the_systems_is_asked_with_it_at_the_head_of_ours(complaint: str) -> None:
    request = question(Message("user", "Now?"), Message("assistant", "hm"), Message("user", "Well?"))
    learnt = simpler_dialect(PROVIDERS["openai"].dialect, request, complaint)
    assert learnt is not None
    assert [(turn["role"], turn["content"]) for turn in encoded_request(request, learnt)["messages"]] == [
        ("user", "Rules.\n\nNow?"), ("assistant", "hm"), ("user", "Well?"),
    ]  # fmt: skip
    assert simpler_dialect(learnt, request, complaint) is None


def test_a_question_without_a_system_prompt_has_nothing_to_move() -> None:
    request = ModelRequest("", (Message("user", "Well?"),), ())
    assert simpler_dialect(PROVIDERS["openai"].dialect, request, NO_SYSTEM[0]) is None


def test_a_system_prompt_with_no_turn_of_ours_becomes_one() -> None:
    learnt = replace(PROVIDERS["openai"].dialect, system="user")
    request = ModelRequest("Rules.", (Message("assistant", "hm"),), ())
    assert [turn["role"] for turn in encoded_request(request, learnt)["messages"]] == ["user", "assistant"]


def test_a_server_that_refuses_the_systems_turn_is_asked_again_at_once_and_so_from_then_on() -> None:
    error = {"code": "unsupported_value", "param": "messages[0].role", "message": NO_SYSTEM[0]}
    refused = fake.body({"error": error}, 400)

    async def talk() -> list[Any]:
        async with FakeProvider([refused, fake.say("fine"), fake.say("again")]) as server, http_pool.opened():
            model = Retried(ChatModel("fake/m", entry("fake", server.url), clock=monotonic), random=lambda: 0.0)
            request = ModelRequest("Rules.", (Message("user", "Now?"),), ())
            assert (await model.complete(request)).text == "fine"
            assert (await model.complete(request)).text == "again"
            return [body["messages"] for body in server.questions]

    first, second, third = asyncio.run(talk())
    assert first[0]["role"] == "system"
    assert second == third == [{"role": "user", "content": "Rules.\n\nNow?"}]
