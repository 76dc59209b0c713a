"""A decision is forced out of every model that has one: by a call, by a schema, by one repair; else a flagged no-op."""

import json
from dataclasses import replace
from typing import Any

import pytest
from scripted_loop import ALLOWED, CLOSE, OPEN, REFUSED, ScriptedLoop, echo_tool

from pitboss.agent.loop import EMPTY_REPLY
from pitboss.agent.terminal import CUT, ask
from pitboss.core.errors import BudgetExceeded, TransientError
from pitboss.core.ports import ModelReply
from pitboss.models.scripted import Line, calls, calls_text, says, together
from pitboss.venues.perp.intents import DECISION, TERMINAL

ANSWER = json.dumps(OPEN)
WRONG = json.dumps({"action": "open_long", "symbol": "BTC", "reason": "no size"})
ASK = ask(DECISION)
BLOCKED = ModelReply(finish_reason="error", problem="the provider blocked the prompt: unsafe words.")
CUT_TEXT = ModelReply("I was about to sa", finish_reason="length")
CUT_CALL = replace(calls_text(TERMINAL, '{"action": "open_long", "sym'), finish_reason="length")

NO_ANSWERS: dict[str, tuple[Line, str]] = {
    "text": (says("Up, I think."), "the reply was text, not a call"),
    "empty": (says(" \n"), "the reply was empty"),
    "cut text": (CUT_TEXT, CUT),
    "cut to nothing": (ModelReply(finish_reason="length"), CUT),
    "cut call": (CUT_CALL, f"invalid proposal: the arguments are not valid JSON; {CUT}"),
    "refused": (BLOCKED, "the provider blocked the prompt: unsafe words"),
    "malformed": (calls_text(TERMINAL, "{"), "invalid proposal: the arguments are not valid JSON"),
    "invalid": (calls_text(TERMINAL, WRONG), "invalid proposal: open_long needs size_usd"),
    "other tool": (calls("look"), "the reply called look, which decides nothing"),
}


def request_forms(table: ScriptedLoop) -> list[tuple[str, str | None, int]]:
    return [(request.answer, request.must_call, len(request.tools)) for request in table.model.requests]


def messages_text(table: ScriptedLoop, step: int) -> str:
    return "\n".join(table.messages_after(step))


@pytest.mark.parametrize(("reply", "why"), NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_a_reply_without_a_decision_is_answered_with_the_reason_while_a_step_is_left(reply: Line, why: str) -> None:
    table = ScriptedLoop([reply, calls(TERMINAL, **OPEN)], [echo_tool(answer="seen")])
    decision = table.run()
    assert decision.intents == (OPEN,)
    result = {"the reply was text, not a call": "You did not call a tool"}.get(why, why)
    assert result.lower() in messages_text(table, 1).lower() or table.messages_after(1) == ["seen"]
    assert [message.role for message in table.model.requests[1].messages[:2]] == ["user", "assistant"]


@pytest.mark.parametrize(("reply", "why"), NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_a_last_step_without_a_decision_is_followed_by_the_schema_form_which_states_the_reason(
    reply: Line, why: str
) -> None:
    table = ScriptedLoop([reply, says(ANSWER)], [echo_tool()], max_steps=1, repairs="beyond")
    decision = table.run()
    assert (decision.intents, decision.flags, len(decision.steps)) == ((OPEN,), (), 2)
    assert request_forms(table) == [("call", TERMINAL, 1), ("schema", TERMINAL, 1)]
    assert messages_text(table, 1).endswith(ASK)
    if why == "the reply called look, which decides nothing":
        why = "there is no tool 'look'; only the decision is left at this step"
    assert why.lower() in messages_text(table, 1).lower()


@pytest.mark.parametrize(("reply", "why"), NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_without_rescue_the_last_step_is_the_last_request(reply: Line, why: str) -> None:
    table = ScriptedLoop([reply], max_steps=1)
    decision = table.run()
    assert (decision.intents, decision.flags, len(table.model.requests)) == ((), ("no_decision",), 1)


def test_the_repair_question_says_what_was_wrong_and_is_the_last() -> None:
    table = ScriptedLoop([says("hm"), says(WRONG), says(ANSWER)], max_steps=1, repairs="beyond")
    assert table.run().intents == (OPEN,)
    assert table.messages_after(2) == [f"Invalid proposal: open_long needs size_usd. {ASK}"]
    assert [answer for answer, _, _ in request_forms(table)] == ["call", "schema", "schema"]


@pytest.mark.parametrize("forcing", ["call", "schema"])
def test_a_model_that_never_decides_is_asked_so_often_and_no_more_and_the_no_op_says_why(forcing: Any) -> None:
    table = ScriptedLoop([says("never")] * 9, [echo_tool()], max_steps=2, forcing=forcing, repairs="beyond")
    decision = table.run()
    assert (decision.intents, decision.flags) == ((), ("no_decision",))
    assert len(decision.steps) == len(table.model.requests) == (4 if forcing == "call" else 3)
    assert decision.text == "never\nNo decision: the reply was text, not a JSON object."


def test_the_last_step_of_a_model_that_cannot_be_forced_asks_for_the_schema() -> None:
    table = ScriptedLoop([calls("look"), says(ANSWER)], [echo_tool(answer="seen")], max_steps=2, forcing="schema")
    decision = table.run()
    assert decision.intents == (OPEN,)
    assert request_forms(table) == [("call", None, 2), ("schema", TERMINAL, 1)]
    assert table.messages_after(1) == [f"seen\n{ASK}"]


def test_a_model_that_cannot_be_forced_and_has_no_tools_is_asked_for_the_schema_at_once() -> None:
    table = ScriptedLoop([says(WRONG), says(ANSWER)], max_steps=5, forcing="schema")
    assert table.run().intents == (OPEN,)
    assert request_forms(table) == [("schema", TERMINAL, 1)] * 2


def test_a_model_that_cannot_be_forced_and_only_talks_is_asked_for_the_schema_at_the_next_step() -> None:
    table = ScriptedLoop([says("Let me think."), says(ANSWER)], [echo_tool()], max_steps=5, forcing="schema")
    assert table.run().intents == (OPEN,)
    assert request_forms(table) == [("call", None, 2), ("schema", TERMINAL, 1)]
    assert table.messages_after(1) == [f"The reply was text, not a call. {ASK}"]


def test_a_refused_answer_in_schema_form_is_reported_and_may_be_mended() -> None:
    small = {**OPEN, "size_usd": 100}
    table = ScriptedLoop(
        [says(ANSWER), says(json.dumps(small))], forcing="schema", retry_refused=1, verdicts=[REFUSED, ALLOWED]
    )
    assert table.run().intents == (small,)
    assert "R3_POSITION_CAP" in messages_text(table, 1)
    assert messages_text(table, 1).endswith(ASK)


def test_a_refused_proposal_that_still_counts_needs_no_rescue() -> None:
    table = ScriptedLoop(
        [calls(TERMINAL, **CLOSE), says("hm")], max_steps=2, retry_refused=1, verdicts=[REFUSED], repairs="beyond"
    )
    decision = table.run()
    assert (decision.intents, len(table.model.requests)) == ((CLOSE,), 2)


def test_a_call_where_text_was_asked_for_is_a_decision_too() -> None:
    table = ScriptedLoop([calls(TERMINAL, **OPEN)], max_steps=1, forcing="schema")
    assert table.run().intents == (OPEN,)


def test_text_that_was_not_asked_for_is_never_read_as_a_decision() -> None:
    decision = ScriptedLoop([says(ANSWER)], max_steps=1).run()
    assert (decision.intents, decision.flags) == ((), ("no_decision",))


def test_different_proposals_end_the_tick_in_a_rescue_too() -> None:
    both = together(calls(TERMINAL, **OPEN), calls(TERMINAL, **CLOSE))
    decision = ScriptedLoop([says("hm"), both], max_steps=1, repairs="beyond").run()
    assert (decision.intents, decision.flags) == ((), ("multiple_proposals",))


def test_a_provider_that_fails_in_a_rescue_is_a_failure_of_the_model() -> None:
    decision = ScriptedLoop([says("hm"), TransientError("503")], max_steps=1, repairs="beyond").run()
    assert (decision.intents, decision.flags, len(decision.steps)) == ((), ("model_error",), 1)


def test_a_spent_budget_ends_a_rescue_too() -> None:
    with pytest.raises(BudgetExceeded):
        ScriptedLoop([says("hm"), BudgetExceeded("no more")], max_steps=1, repairs="beyond").run()


def test_what_the_provider_wants_back_goes_back_with_its_turn() -> None:
    table = ScriptedLoop([replace(calls("look"), state="signed"), calls(TERMINAL, **OPEN)], [echo_tool()])
    table.run()
    assert table.model.requests[1].messages[1].state == "signed"


@pytest.mark.parametrize(("text", "sent"), [("", EMPTY_REPLY), ("  ", EMPTY_REPLY), ("hm", "hm"), ("\ud800", "?")])
def test_a_turn_without_words_is_sent_back_with_some_and_words_as_they_can_be_sent(text: str, sent: str) -> None:
    table = ScriptedLoop([says(text), calls(TERMINAL, **OPEN)])
    decision = table.run()
    assert table.model.requests[1].messages[1].text == sent
    assert decision.steps[0].text == text.replace("\ud800", "?")
