"""A venue may read decisions out of text replies, and a decision may hold several intents."""

import asyncio
from typing import Any

import pytest

from pitboss.agent.loop import PROSE, ToolLoop
from pitboss.agent.prompt import Prompt
from pitboss.core.decision_format import DecisionFormat, TextDecision
from pitboss.core.intent import Decision
from pitboss.core.ports import ModelReply, ToolCall
from pitboss.core.verdict import Verdict
from pitboss.models.scripted import ScriptedModel

SCHEMA = {"type": "object", "properties": {"actions": {"type": "array"}}}


def read_actions(raw: Any) -> tuple[Any, list[str]]:
    return (raw, []) if isinstance(raw, dict) and isinstance(raw.get("actions"), list) else (None, ["no actions"])


def read_text(text: str) -> TextDecision:
    if text.startswith("do "):
        return TextDecision({"actions": text.split()[1:]})
    return TextDecision(problems=("unreadable",)) if "{" in text else TextDecision(is_prose=True)


FORMAT = DecisionFormat(
    "act", "Act.", SCHEMA, read_actions, "none", read_text=read_text, split=lambda raw: tuple(raw["actions"])
)


class FixedContext:
    anonymiser = None

    def prompt(self, observation: Any) -> Prompt:
        return Prompt("system", "user")

    def shown(self, observation: Any) -> Any:
        return observation


def decide(*replies: ModelReply, retries: int = 0, refused: tuple[str, ...] = ()) -> tuple[Decision, ScriptedModel]:
    model = ScriptedModel(replies)
    loop = ToolLoop("m", model, FixedContext(), lambda observation, judge: {}, FORMAT, 4, retries)

    def judge(intent: Any) -> Verdict:
        return Verdict("refused" if intent in refused else "allowed", "C1" if intent in refused else None, "no")

    return asyncio.run(loop.decide(None, judge)), model


def text(content: str, **fields: Any) -> ModelReply:
    return ModelReply(content, **fields)


def call(arguments: str) -> ModelReply:
    return ModelReply("", (ToolCall("c1", "act", arguments),), finish_reason="tool_calls")


@pytest.mark.parametrize("reply", [text("do a b"), call('{"actions": ["a", "b"]}')])
def test_a_decision_in_text_or_in_a_call_gives_all_its_intents(reply: ModelReply) -> None:
    decision, model = decide(reply)
    assert (decision.intents, decision.flags, len(model.requests)) == (("a", "b"), (), 1)


def test_prose_ends_the_tick_without_a_second_question() -> None:
    decision, model = decide(text("nothing new"))
    assert (decision.intents, decision.flags, len(model.requests)) == ((), (PROSE,), 1)


def test_an_empty_list_is_a_decision_to_do_nothing() -> None:
    assert decide(call('{"actions": []}'))[0].flags == ()


def test_an_unreadable_text_is_asked_again_and_the_reason_is_said() -> None:
    decision, model = decide(text("{"), text("do a"))
    assert decision.intents == ("a",)
    assert "unreadable" in model.requests[1].messages[-1].text


def test_a_reply_that_was_cut_off_is_not_read() -> None:
    decision, model = decide(text("do a", finish_reason="length"), text("do b"))
    assert (decision.intents, len(model.requests)) == (("b",), 2)


def test_a_refusal_of_any_intent_lets_the_model_try_again() -> None:
    decision, model = decide(text("do a b"), text("do a"), retries=1, refused=("b",))
    assert (decision.intents, len(model.requests)) == (("a",), 2)
    assert "refused by C1" in model.requests[1].messages[-1].text


def test_prose_after_a_refusal_does_nothing() -> None:
    assert decide(text("do b"), text("then not"), retries=1, refused=("b",))[0].intents == ()
