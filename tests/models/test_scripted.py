"""The model for tests."""

import json
from decimal import Decimal

import pytest

from pitboss.core.errors import InvariantError, TransientError
from pitboss.core.ports import Message, ModelRequest
from pitboss.models.scripted import ScriptedModel, calls, calls_text, says, together
from venues.perp.scene import run_sync

ASK = ModelRequest("system", (Message("user", "hello"),), ())


def test_a_script_is_played_line_by_line_and_remembers_what_it_was_asked() -> None:
    model = ScriptedModel([says("one"), calls("get_portfolio")])
    assert run_sync(model.complete(ASK)).text == "one"
    assert run_sync(model.complete(ASK)).calls[0].name == "get_portfolio"
    assert model.requests == [ASK, ASK]


def test_a_script_that_is_too_short_says_so() -> None:
    with pytest.raises(InvariantError, match="has 0 replies and was asked for number 1"):
        run_sync(ScriptedModel([]).complete(ASK))


def test_a_failure_in_the_script_is_raised_in_its_turn() -> None:
    model = ScriptedModel([TransientError("overloaded"), says("back")])
    with pytest.raises(TransientError, match="overloaded"):
        run_sync(model.complete(ASK))
    assert run_sync(model.complete(ASK)).text == "back"


def test_a_function_can_answer_what_it_is_asked() -> None:
    model = ScriptedModel(lambda request: says(request.messages[-1].text.upper()))
    assert run_sync(model.complete(ASK)).text == "HELLO"


def test_arguments_are_exact_json_numbers() -> None:
    (call,) = calls("propose_order", size_usd=Decimal("0.10"), leverage=2, name="x").calls
    assert call.arguments == '{"leverage":2,"name":"x","size_usd":0.1}'
    assert json.loads(call.arguments)["size_usd"] == 0.1


def test_replies_put_together_make_all_their_calls_under_different_ids() -> None:
    reply = together(says("both"), calls("a"), calls_text("b", "{not json"))
    assert [(call.id, call.name) for call in reply.calls] == [("call-1", "a"), ("call-2", "b")]
    assert (reply.text, reply.calls[1].arguments, reply.finish_reason) == ("both", "{not json", "tool_calls")
