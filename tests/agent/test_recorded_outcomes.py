"""The outcome of recorded replies of real providers: each is classified and reported to the model while a step is left."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from scripted_loop import OPEN, ScriptedLoop, echo_tool

from pitboss.agent.terminal import CUT, ask, objects, read_text
from pitboss.core import codec
from pitboss.core.ports import ModelReply
from pitboss.models.recordings import Exchange, kind, parse, read
from pitboss.models.scripted import calls
from pitboss.venues.perp.intents import DECISION

RECORDED = Path(__file__).parents[2].parent / "shared" / "data" / "wire" / "llm" / "sessions.jsonl.gz"
pytestmark = pytest.mark.skipif(not RECORDED.exists(), reason="no recorded sessions in ../shared/data/wire/llm")


@cache
def exchanges() -> tuple[Exchange, ...]:
    return tuple(read(RECORDED))


@cache
def chat_replies() -> tuple[tuple[Exchange, ModelReply], ...]:
    """Every reply on a chat-completions address, with its exchange."""
    found = ((exchange, parse(exchange)) for exchange in exchanges() if kind(exchange) == "chat")
    return tuple((exchange, reply) for exchange, reply in found if isinstance(reply, ModelReply))


def recorded_reply(place: str) -> ModelReply:
    """The reply of the one exchange whose id ends with `place`."""
    (exchange,) = [one for one in exchanges() if one.id.endswith(place)]
    reply = parse(exchange)
    assert isinstance(reply, ModelReply)
    return reply


def run_after_reply(reply: ModelReply, terminal: str = "decide", *looks: str) -> tuple[ScriptedLoop, str]:
    """A tick whose model first gives a recorded reply and then decides; and the messages that it got in between."""
    table = ScriptedLoop(
        [reply, calls(terminal, **OPEN)], [echo_tool(name, answer="seen") for name in looks], terminal=terminal
    )
    decision = table.run()
    assert (decision.intents, decision.flags, len(decision.steps)) == ((OPEN,), (), 2)
    return table, "\n".join(table.messages_after(1))


@pytest.mark.parametrize(
    "place",
    ["test_tool_use_failed_error.yaml#0", "test_tool_use_failed_error_streaming.yaml#0"],
    ids=["plain", "stream"],
)
def test_a_call_that_the_provider_rejected_is_read_by_us_and_answered_with_what_is_wrong(place: str) -> None:
    table, result = run_after_reply(recorded_reply(place), "get_something_by_name")
    assert result.startswith("invalid proposal: unknown key")
    (sent,) = [message for message in table.model.requests[1].messages if message.role == "assistant"]
    assert [call.name for call in sent.calls] == ["get_something_by_name"]


def test_text_under_a_forced_choice_is_reported_in_the_providers_words() -> None:
    _, result = run_after_reply(recorded_reply("test_tool_use_failed_error_with_text.yaml#0"))
    assert result.startswith("Tool choice is required, but model did not call a tool. Call decide")


def test_the_terminal_call_next_to_another_is_judged_and_the_other_is_run() -> None:
    both = [reply for _, reply in chat_replies() if {"final_result"} < {call.name for call in reply.calls}]
    assert both
    for reply in both:
        (other,) = {call.name for call in reply.calls} - {"final_result"}
        table, _ = run_after_reply(reply, "final_result", other)
        result = dict(zip([call.name for call in reply.calls], table.messages_after(1), strict=True))
        assert result[other] == "seen"
        assert result["final_result"].startswith("invalid proposal: ")


@pytest.mark.parametrize(
    "place",
    ["test_google_model_max_tokens_thinking_model_empty_response.yaml#0", "test_openrouter_stream_error.yaml#0"],
    ids=["google", "openrouter"],
)
def test_a_reply_cut_off_before_its_first_word_is_answered_with_a_request_to_be_shorter_and_keeps_its_tokens(
    place: str,
) -> None:
    reply = recorded_reply(place)
    assert (reply.text, reply.calls, reply.finish_reason) == ("", (), "length")
    _, result = run_after_reply(reply)
    assert result.lower().startswith(CUT)
    decision = ScriptedLoop([reply] * 3, max_steps=1, repairs="beyond").run()
    assert (decision.flags, decision.finish_reason, decision.text) == (
        ("no_decision",),
        "length",
        f"No decision: {CUT}.",
    )
    assert decision.usage == reply.usage + reply.usage + reply.usage


def test_a_blocked_question_is_reported_and_ends_in_a_no_op_that_names_the_block() -> None:
    reply = recorded_reply("test_google_model_armor_prompt_template_text_gets_blocked.yaml#1")
    _, result = run_after_reply(reply)
    assert result.startswith("The provider blocked the question")
    table = ScriptedLoop([reply] * 3, max_steps=1, repairs="beyond")
    decision = table.run()
    assert (decision.intents, decision.flags, len(decision.steps)) == ((), ("no_decision",), 3)
    assert decision.text.startswith("No decision: the provider blocked the question")


def test_answers_to_a_schema_hold_one_object_which_is_the_answer() -> None:
    asked = [
        (exchange, reply)
        for exchange, reply in chat_replies()
        if isinstance(exchange.request, dict)
        and (exchange.request.get("response_format") or {}).get("type") in ("json_schema", "json_object")
        and not reply.calls
        and reply.finish_reason == "stop"
    ]
    assert asked
    for exchange, reply in asked:
        assert objects(reply.text) == [reply.text.strip()], exchange.id


def test_thoughts_written_into_an_answer_are_not_the_answer() -> None:
    bodies = [exchange.body for exchange in exchanges() if kind(exchange) == "chat" and exchange.status == 200]
    said = [body["choices"][0]["message"].get("content") for body in bodies if isinstance(body, dict)]
    aloud = [text for text in said if isinstance(text, str) and "</think>" in text]
    assert aloud
    for text in aloud:
        hidden = text.replace("</think>", '{"action": "no_op", "reason": "a thought"}</think>', 1)
        assert objects(hidden) == objects(text)
        assert read_text(ModelReply(hidden), replace(DECISION, tool="decide")).proposal is None


def test_no_recorded_reply_decides_for_us_and_every_one_is_reported_and_can_be_kept() -> None:
    for exchange, reply in chat_replies():
        table = ScriptedLoop([reply] * 3, max_steps=1, repairs="beyond")
        decision = table.run()
        assert (decision.intents, decision.flags) == ((), ("no_decision",)), exchange.id
        assert [request.answer for request in table.model.requests] == ["call", "schema", "schema"]
        assert all(table.messages_after(step)[-1].endswith(ask(table.format)) for step in (1, 2)), exchange.id
        assert codec.loads(codec.dumps([decision.steps, decision.text]))
