"""The tool loop with a scripted model: bounded steps, all results passed to the model, and a defined outcome for every reply."""

from decimal import Decimal
from typing import Any

import pytest
from scripted_loop import ALLOWED, CLOSE, OPEN, REFUSED, ScriptedLoop, echo_tool

from pitboss.agent.loop import MAX_CALLS, MAX_RESULT_CHARS
from pitboss.agent.terminal import MAX_ARGUMENT_CHARS
from pitboss.core import codec
from pitboss.core.errors import BudgetExceeded, ToolFailed, TransientError
from pitboss.core.intent import Usage
from pitboss.core.ports import ModelReply
from pitboss.models.scripted import calls, calls_text, says, together
from pitboss.venues.perp.intents import TERMINAL


def test_a_proposal_at_once_is_the_decision() -> None:
    table = ScriptedLoop([calls(TERMINAL, **OPEN)])
    decision = table.run()
    assert decision.intents == (OPEN,)
    assert decision.flags == ()
    assert len(table.model.requests) == 1
    assert decision.prompt == (table.model.requests[0].system, table.model.requests[0].messages[0].text)


def test_tools_are_run_and_answered_until_the_model_decides() -> None:
    look = echo_tool()
    table = ScriptedLoop([calls("look", symbol="BTC", lookback=Decimal("3.50")), calls(TERMINAL, **CLOSE)], [look])
    decision = table.run()
    assert look.arguments == [{"symbol": "BTC", "lookback": Decimal("3.50")}]
    assert table.messages_after(1) == ['{"lookback":3.5,"symbol":"BTC"}']
    assert decision.intents == (CLOSE,)
    assert [[call.name for call in step.calls] for step in decision.steps] == [["look"], [TERMINAL]]


@pytest.mark.parametrize("max_steps", [1, 2, 5])
def test_the_model_is_asked_at_most_max_steps_times_and_then_there_is_no_decision(max_steps: int) -> None:
    table = ScriptedLoop([calls("look", n=number) for number in range(20)], [echo_tool()], max_steps)
    decision = table.run()
    assert len(table.model.requests) == max_steps
    assert (decision.intents, decision.flags) == ((), ("no_decision",))
    assert len(decision.steps) == max_steps


def test_the_last_step_offers_the_decision_only_and_says_that_it_must_be_taken() -> None:
    table = ScriptedLoop([calls("look"), calls("look"), calls(TERMINAL, **OPEN)], [echo_tool(), echo_tool("see")], 3)
    table.run()
    offers = [[spec.name for spec in request.tools] for request in table.model.requests]
    assert offers == [["look", "see", TERMINAL], ["look", "see", TERMINAL], [TERMINAL]]
    assert [request.must_call for request in table.model.requests] == [None, None, TERMINAL]


def test_another_tool_called_on_the_last_step_is_not_run() -> None:
    look = echo_tool()
    decision = ScriptedLoop([calls("look")], [look], 1).run()
    assert look.arguments == []
    assert decision.flags == ("no_decision",)
    assert decision.steps[0].calls[0].failed


def test_the_terminal_tool_is_never_run_even_if_it_is_among_the_tools() -> None:
    trap = echo_tool(TERMINAL)
    table = ScriptedLoop([calls(TERMINAL, **OPEN)], [trap])
    table.run()
    assert trap.arguments == []
    assert [spec.name for spec in table.model.requests[0].tools] == [TERMINAL]


def test_a_malformed_proposal_is_answered_with_what_is_wrong_and_costs_a_step() -> None:
    table = ScriptedLoop([calls(TERMINAL, action="open_long", symbol="BTC", reason="x"), calls(TERMINAL, **OPEN)])
    decision = table.run()
    assert table.messages_after(1) == ["invalid proposal: open_long needs size_usd"]
    assert len(decision.steps) == 2
    assert decision.steps[0].calls[0].failed
    assert decision.intents == (OPEN,)


def test_identical_proposals_in_one_reply_count_once() -> None:
    decision = ScriptedLoop([together(calls(TERMINAL, **OPEN), calls(TERMINAL, **OPEN))]).run()
    assert (decision.intents, decision.flags) == ((OPEN,), ())


@pytest.mark.parametrize("other", [CLOSE, {"action": "fly"}])
def test_different_proposals_in_one_reply_make_the_tick_a_no_op(other: dict[str, Any]) -> None:
    decision = ScriptedLoop([together(calls(TERMINAL, **OPEN), calls(TERMINAL, **other))]).run()
    assert (decision.intents, decision.flags) == ((), ("multiple_proposals",))
    assert len(decision.steps[0].calls) == 2


def test_a_refusal_is_reported_with_code_and_margins_in_the_same_tick_and_the_next_proposal_counts() -> None:
    small = {**OPEN, "size_usd": 100}
    table = ScriptedLoop(
        [calls(TERMINAL, **OPEN), calls(TERMINAL, **small)], retry_refused=1, verdicts=[REFUSED, ALLOWED]
    )
    decision = table.run()
    (heard,) = table.messages_after(1)
    assert "R3_POSITION_CAP" in heard
    assert "2500" in heard
    assert "5000" in heard
    assert decision.intents == (small,)


def test_the_most_recent_valid_proposal_counts_if_the_model_says_nothing_better() -> None:
    table = ScriptedLoop(
        [calls(TERMINAL, **OPEN), calls(TERMINAL, **CLOSE), says("hm"), calls_text(TERMINAL, "{")],
        retry_refused=3,
        verdicts=[REFUSED, REFUSED],
    )
    decision = table.run()
    assert decision.intents == (CLOSE,)
    assert decision.flags == ()


def test_only_so_many_refusals_are_reported() -> None:
    table = ScriptedLoop(
        [calls(TERMINAL, **OPEN), calls(TERMINAL, **CLOSE)], retry_refused=1, verdicts=[REFUSED, REFUSED]
    )
    decision = table.run()
    assert table.judged == [OPEN]
    assert decision.intents == (CLOSE,)


def test_without_retries_the_engine_is_not_asked_beforehand() -> None:
    table = ScriptedLoop([calls(TERMINAL, **OPEN)], verdicts=[REFUSED])
    assert table.run().intents == (OPEN,)
    assert table.judged == []


def test_a_refusal_on_the_last_step_is_left_to_the_engine() -> None:
    table = ScriptedLoop([calls(TERMINAL, **OPEN)], max_steps=1, retry_refused=3, verdicts=[REFUSED])
    assert table.run().intents == (OPEN,)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (calls("look_ahead"), "there is no tool 'look_ahead'; tools here: look"),
        (calls_text("look", "{not json"), "the arguments are not valid JSON"),
        (calls_text("look", "[" * 5_000 + "]" * 5_000), "the arguments are not valid JSON"),
        (calls_text("look", '{"n": 1e99999999999999999999}'), "the arguments are not valid JSON"),
        (calls_text("look", '"' + "x" * MAX_ARGUMENT_CHARS + '"'), f"arguments over {MAX_ARGUMENT_CHARS} characters"),
    ],
    ids=["unknown", "cut", "deep", "exponent", "long"],
)
def test_a_call_that_cannot_be_run_is_reported_and_the_tick_goes_on(reply: ModelReply, words: str) -> None:
    look = echo_tool()
    table = ScriptedLoop([reply, calls(TERMINAL, **OPEN)], [look])
    decision = table.run()
    assert table.messages_after(1) == [words]
    assert look.arguments == []
    assert decision.intents == (OPEN,)
    assert decision.steps[0].calls[0].failed
    assert len(codec.dumps(decision.steps)) < 3 * MAX_ARGUMENT_CHARS


def test_a_tool_that_fails_is_reported_in_its_own_words() -> None:
    table = ScriptedLoop(
        [calls("look"), calls(TERMINAL, **OPEN)], [echo_tool(failure=ToolFailed("no bars of XMR here"))]
    )
    decision = table.run()
    assert table.messages_after(1) == ["no bars of XMR here"]
    assert decision.steps[0].calls[0].failed


def test_the_words_of_a_failure_are_cut_and_can_be_stored_like_any_result() -> None:
    failure = ToolFailed("\ud800 lone" + "x" * 40_000)
    table = ScriptedLoop([calls("look"), calls(TERMINAL, **OPEN)], [echo_tool(failure=failure)])
    (result,) = table.run().steps[0].calls
    assert result.failed
    assert result.result.endswith("\n[cut]")
    assert len(result.result) < 32_100
    assert codec.loads(codec.dumps(result.result)) == result.result


def test_an_oversized_result_is_cut_and_says_so() -> None:
    table = ScriptedLoop([calls("look"), calls(TERMINAL, **OPEN)], [echo_tool(answer="x" * (MAX_RESULT_CHARS + 1))])
    table.run()
    (heard,) = table.messages_after(1)
    assert heard == "x" * MAX_RESULT_CHARS + "\n[cut]"


def test_text_instead_of_a_call_is_answered_with_how_to_decide() -> None:
    table = ScriptedLoop([says("I think BTC goes up."), calls(TERMINAL, **OPEN)])
    decision = table.run()
    assert "propose_order" in table.messages_after(1)[0]
    assert decision.steps[0].text == "I think BTC goes up."


def test_empty_replies_end_in_no_decision() -> None:
    decision = ScriptedLoop([says("")] * 4).run()
    assert (decision.intents, decision.flags) == ((), ("no_decision",))


def test_every_call_of_a_reply_is_answered_by_its_id() -> None:
    table = ScriptedLoop(
        [together(calls("look", n=1), calls("nowhere"), calls("look", n=2)), calls(TERMINAL, **OPEN)], [echo_tool()]
    )
    table.run()
    asked = table.model.requests[1].messages[1]
    answers = table.model.requests[1].messages[2:]
    assert [message.call_id for message in answers] == [call.id for call in asked.calls]
    assert [message.role for message in answers] == ["tool"] * 3


def test_a_provider_that_fails_makes_the_tick_a_no_op_and_keeps_what_was_paid_for() -> None:
    paid = Usage(100, 10)
    table = ScriptedLoop([ModelReply("first", usage=paid, cost_usd=Decimal(100)), TransientError("503 overloaded")])
    decision = table.run()
    assert (decision.intents, decision.flags, decision.finish_reason) == ((), ("model_error",), "error")
    assert decision.text == "503 overloaded"
    assert (decision.usage, decision.cost_usd, len(decision.steps)) == (paid, Decimal(100), 1)


def test_a_failure_after_a_refused_proposal_does_not_bring_it_back() -> None:
    table = ScriptedLoop([calls(TERMINAL, **OPEN), TransientError("gone")], retry_refused=1, verdicts=[REFUSED])
    decision = table.run()
    assert (decision.intents, decision.flags) == ((), ("model_error",))


def test_a_spent_budget_is_not_swallowed() -> None:
    with pytest.raises(BudgetExceeded):
        ScriptedLoop([BudgetExceeded("no more")]).run()


def test_usage_and_cost_are_summed_over_the_steps() -> None:
    replies = [
        ModelReply("a", usage=Usage(10, 1, 5, 2), cost_usd=Decimal("0.01"), saved_usd=Decimal("0.5")),
        ModelReply(
            "b",
            calls(TERMINAL, **OPEN).calls,
            Usage(20, 2, 6, 3),
            cost_usd=Decimal("0.02"),
            saved_usd=Decimal("0.25"),
        ),
    ]
    decision = ScriptedLoop(replies).run()
    assert decision.usage == Usage(30, 3, 11, 5)
    assert decision.cost_usd == Decimal("0.03")
    assert decision.saved_usd == Decimal("0.75")
    assert [step.cost_usd for step in decision.steps] == [Decimal("0.01"), Decimal("0.02")]


def test_an_unknown_cost_stays_unknown_however_many_steps_are_known() -> None:
    known = ModelReply("b", calls(TERMINAL, **OPEN).calls, cost_usd=Decimal(1))
    decision = ScriptedLoop([ModelReply("a", cost_usd=None), known]).run()
    assert decision.cost_usd is None


@pytest.mark.parametrize(
    "reply",
    [
        ModelReply("half a pair: \ud800"),
        calls_text("look\ud800", "{}"),
        calls_text("look", '{"text": "\\ud800"}'),
        calls_text("look", '{"n": 123456789012345678901234567890, "m": 1e400}'),
        calls_text("look", "\ud800"),
        calls_text("look", "[" * 300 + "]" * 300),
        calls_text(TERMINAL, '{"action": "no_op", "reason": "\\ud800"}'),
    ],
    ids=["text", "name", "escape", "huge", "raw", "nested", "reason"],
)
def test_whatever_a_model_writes_can_be_stored_and_read_back(reply: ModelReply) -> None:
    decision = ScriptedLoop([reply, calls(TERMINAL, **OPEN)], [echo_tool(answer="seen")]).run()
    stored = codec.dumps([decision.steps, decision.text, codec.number_fragments(list(decision.intents))])
    assert codec.loads(stored)


def test_calls_beyond_the_bound_of_one_reply_are_not_run() -> None:
    look = echo_tool()
    table = ScriptedLoop(
        [together(*[calls("look", number=number) for number in range(40)]), calls(TERMINAL, **OPEN)], [look]
    )
    assert table.run().intents == (OPEN,)
    assert len(look.arguments) == MAX_CALLS
    assert table.messages_after(1)[MAX_CALLS] == f"at most {MAX_CALLS} calls in one reply"


def test_a_fault_inside_a_tool_is_not_blamed_on_its_arguments() -> None:
    with pytest.raises(ValueError, match="a bug of ours"):
        ScriptedLoop(
            [calls("look", a=1), calls(TERMINAL, **OPEN)], [echo_tool(failure=ValueError("a bug of ours"))]
        ).run()
