"""What a reply decides: valid, malformed, repeated, contradictory or nothing."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.agent.terminal import CUT, MAX_ARGUMENT_CHARS, RECORDED, objects, read_calls, read_text, stored_arguments
from pitboss.core import codec
from pitboss.core.ports import ModelReply, ToolCall
from pitboss.models.json_body import as_text, parse_body
from pitboss.venues.perp.intents import DECISION

OPEN = '{"action": "open_long", "symbol": "BTC", "size_usd": 100, "reason": "up"}'
TURNED = '{"reason": "up", "size_usd": 100, "symbol": "BTC", "action": "open_long"}'
CLOSE = '{"action": "close", "symbol": "BTC", "reason": "out"}'
WAIT = '{"action": "no_op", "reason": "wait"}'


def reply(*arguments: str, name: str = "propose_order") -> ModelReply:
    return ModelReply(calls=tuple(ToolCall(f"call-{place}", name, text) for place, text in enumerate(arguments)))


def test_one_valid_call_is_the_decision_with_its_numbers_exact() -> None:
    answer = read_calls(reply(OPEN.replace("100", "100.10")), DECISION)
    assert answer.proposal["size_usd"] == Decimal("100.10")
    assert answer.results == {0: RECORDED}
    assert not answer.conflict


def test_identical_calls_count_once_whatever_the_order_of_their_keys() -> None:
    answer = read_calls(reply(OPEN, TURNED, OPEN), DECISION)
    assert not answer.conflict
    assert answer.proposal == codec.loads_exact(OPEN)


@pytest.mark.parametrize(
    "other", [CLOSE, WAIT, OPEN.replace("100", "101"), OPEN.replace("100", '"100"'), "{", '{"action": "fly"}']
)
def test_a_different_call_next_to_a_valid_one_is_a_conflict_in_either_order(other: str) -> None:
    for pair in ((OPEN, other), (other, OPEN)):
        answer = read_calls(reply(*pair), DECISION)
        assert answer.conflict
        assert answer.proposal is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("{", "not valid JSON"),
        ("", "action must be one of"),
        ("[1, 2]", "a proposal is a JSON object"),
        ("null", "a proposal is a JSON object"),
        ("NaN", "not valid JSON"),
        ('{"action": "open_long", "symbol": "BTC", "size_usd": Infinity, "reason": "x"}', "not valid JSON"),
        ('{"action": "open_long", "symbol": "BTC", "size_usd": 1e400, "reason": "x"}', "finite JSON number"),
        (
            '{"action": "open_long", "symbol": "BTC", "size_usd": 1e99999999999999999999, "reason": "x"}',
            "not valid JSON",
        ),
        ("[" * 10_000 + "]" * 10_000, "over"),
        ("[" * 5_000 + "]" * 5_000, "not valid JSON"),
        ("[" * 300 + "]" * 300, "a proposal is a JSON object"),
        (OPEN.replace("up", "x" * MAX_ARGUMENT_CHARS), "over"),
    ],
    ids=["cut", "empty", "list", "null", "nan", "infinity", "huge", "exponent", "deep long", "deep", "nested", "long"],
)
def test_a_malformed_call_is_answered_with_what_is_wrong(arguments: str, words: str) -> None:
    answer = read_calls(reply(arguments), DECISION)
    assert answer.proposal is None
    assert not answer.conflict
    assert answer.malformed == {0}
    assert words in answer.results[0]


def test_calls_of_other_tools_are_not_read_as_decisions() -> None:
    answer = read_calls(reply(OPEN, name="get_portfolio"), DECISION)
    assert (answer.proposal, answer.results, answer.conflict) == (None, {}, False)


def test_text_alone_is_no_decision_and_the_model_hears_how_to_make_one() -> None:
    answer = read_calls(ModelReply("I would buy BTC."), DECISION)
    assert answer.proposal is None
    assert "propose_order" in answer.problem


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=8,
)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(st.text(), JSON.map(json.dumps), st.just(OPEN)), max_size=3))
def test_e3_any_calls_give_a_proposal_a_conflict_or_an_explanation(arguments: Any) -> None:
    """E3: nothing that a model writes makes reading it fail, and only a single meaning becomes a proposal."""
    answer = read_calls(reply(*arguments), DECISION)
    assert set(answer.results) == set(range(len(arguments)))
    valid = [place for place in answer.results if place not in answer.malformed]
    assert (answer.proposal is not None) == (bool(valid) and not answer.conflict)
    if answer.proposal is not None:
        assert not answer.malformed


# Answers as text ----------------------------------------------------------------------------------------------------

AROUND = {
    "bare": OPEN,
    "fence": f"```json\n{OPEN}\n```",
    "words": f"I will go long.\n\n{OPEN}\nGood luck!",
    "thought": f'<think>\nmaybe {{"action": "close"}} or {{\n</think>\n\n{OPEN}',
    "thinking": f"  <thinking>{{</thinking>{OPEN}",
    "two thoughts": f"<think>a {{</think> <think>b {{</think>{OPEN}",
    "opened by the template": f"so {{ it is\n</think>\n{OPEN}",
    "said twice": f"{OPEN}\n```json\n{TURNED}\n```",
    "nested": OPEN[:-1] + ', "leverage": null}',
    "thought inside": OPEN.replace("up", "</think> {x}"),
    "padded until the limit": OPEN + "\n" * 500,
}


@pytest.mark.parametrize("text", AROUND.values(), ids=AROUND)
def test_the_one_object_of_a_text_is_the_decision(text: str) -> None:
    answer = read_text(ModelReply(text), DECISION)
    assert answer.proposal is not None, answer.problem
    assert answer.proposal["size_usd"] == 100


TWICE = '{"action": "open_long", "symbol": "BTC", "size_usd": 5, "reason": "up", "size_usd": 100}'
NESTED_TWICE = OPEN.replace('"up"', '{"a": [{"b": 1, "b": 1}]}')


@pytest.mark.parametrize("arguments", [TWICE, NESTED_TWICE, TWICE.replace('"size_usd": 5', '"size\\u005fusd": 5')])
def test_a_proposal_that_gives_a_key_twice_is_malformed_and_kept_as_it_was_written(arguments: str) -> None:
    answer = read_calls(reply(arguments), DECISION)
    assert answer.proposal is None
    assert answer.malformed == {0}
    assert "invalid proposal: the key" in answer.results[0]
    assert "is given twice" in answer.results[0]
    assert stored_arguments(ToolCall("c", "propose_order", arguments)) == arguments
    assert read_calls(reply(OPEN, arguments), DECISION).conflict
    assert read_text(ModelReply(arguments), DECISION).proposal is None
    assert read_text(ModelReply(f"{OPEN} {TWICE}"), DECISION).proposal is None


@pytest.mark.parametrize("read", [parse_body, lambda body: parse_body(body.encode())])
def test_a_key_given_twice_in_a_body_that_holds_the_proposal_as_a_value_is_seen_in_the_proposal(
    read: Callable[[str], Any],
) -> None:
    body = read(f'{{"id": "m", "content": [{{"type": "tool_use", "input": {TWICE}}}]}}')
    arguments = as_text(body["content"][0]["input"])
    assert body["id"] == "m"
    assert read_calls(reply(arguments), DECISION).malformed == {0}


NO_OBJECT = {
    "two": (f"{OPEN} or {CLOSE}", "several different JSON objects"),
    "two that differ beyond a double": (
        OPEN.replace("100", "0.1") + OPEN.replace("100", "0.10000000000000000001"),
        "several different JSON objects",
    ),
    "one and half of another": (f'{OPEN} {{"action": "clo', "no JSON object that can be read"),
    "one inside something broken": (f"{{maybe {OPEN}}}", "no JSON object that can be read"),
    "a list of two": (f"[{OPEN}, {CLOSE}]", "several different JSON objects"),
    "invalid": ('{"action": "fly"}', "invalid proposal: action must be one of"),
    "wrapped": (f'{{"name": "propose_order", "arguments": {OPEN}}}', "invalid proposal: unknown key"),
    "not a number": (OPEN.replace("100", "NaN"), "invalid proposal: the arguments are not valid JSON"),
    "exponent": (OPEN.replace("100", "1e99999999999999999999"), "no JSON object that can be read"),
    "deep": ('{"a":' * 100_000, "no JSON object that can be read"),
    "long": (OPEN.replace("up", "x" * MAX_ARGUMENT_CHARS), "over"),
    "endless thought": (f"<think>{OPEN}", "the reply was text, not a JSON object"),
    "words": ("I would buy BTC.", "the reply was text, not a JSON object"),
    "empty": ("  ", "the reply was empty"),
}


@pytest.mark.parametrize(("text", "words"), NO_OBJECT.values(), ids=NO_OBJECT)
def test_a_text_without_exactly_one_object_is_reported_and_never_guessed_at(text: str, words: str) -> None:
    answer = read_text(ModelReply(text), DECISION)
    assert (answer.proposal, answer.conflict) == (None, False)
    assert words in answer.why
    assert "one JSON object" in answer.problem
    assert len(answer.problem) < 1_000


@pytest.mark.parametrize(
    "reply", [ModelReply("", finish_reason="length"), ModelReply('{"action": "no_', finish_reason="length")]
)
def test_a_text_that_was_cut_off_is_answered_with_a_request_to_be_shorter(reply: ModelReply) -> None:
    assert CUT in read_text(reply, DECISION).why


def test_what_the_provider_says_about_a_reply_is_reported_in_bounded_words() -> None:
    answer = read_text(ModelReply(problem="blocked: " + "x" * 10_000), DECISION)
    assert answer.why.startswith("blocked: xxx")
    assert len(answer.problem) < 1_000


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.text(max_size=20),
            JSON.map(json.dumps),
            st.sampled_from([OPEN, CLOSE, "<think>", "</think>", "{", "```"]),
        ),
        max_size=5,
    ).map(" ".join)
)
def test_any_text_gives_a_proposal_that_stands_in_it_or_an_explanation(text: str) -> None:
    answer = read_text(ModelReply(text), DECISION)
    if answer.proposal is None:
        assert answer.why
        assert "propose_order" in answer.problem
    else:
        (found,) = objects(text) or []
        assert found in text
        assert codec.loads_exact(found) == answer.proposal
