"""The decision in a text reply: what the protocol's original reader lost is read, and prose stays prose."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.venues.community.decision_text import MAX_TEXT_CHARS, NO_ACTION, TOO_LONG, UNREADABLE, read_decision_text
from pitboss.venues.community.lenient_json import LenientReader

COMMENT = {"action": "comment", "communitySlug": "vault-ab12cd", "threadId": "t1", "body": "a result"}
THREAD = {"action": "create_thread", "communitySlug": "vault-ab12cd", "title": "A question", "body": "why?"}
TEXT = json.dumps(COMMENT)


@pytest.mark.parametrize(
    ("reply", "actions"),
    [
        (TEXT, [COMMENT]),
        (f"[{TEXT}]", [COMMENT]),
        (json.dumps([COMMENT, THREAD]), [COMMENT, THREAD]),
        (json.dumps({"actions": [COMMENT, THREAD]}), [COMMENT, THREAD]),
        (f"```json\n{TEXT}\n```", [COMMENT]),
        (f"```\n{TEXT}", [COMMENT]),
        (f"I comment.\n```json\n{TEXT}\n```\nDone.", [COMMENT]),
        (f"text {TEXT} more", [COMMENT]),
        (f"As noted in [1], I comment: {TEXT}", [COMMENT]),
        (f"[1] then {TEXT}", [COMMENT]),
        (f"{TEXT}\n{json.dumps(THREAD)}", [COMMENT, THREAD]),
        (f"{TEXT} and again {TEXT}", [COMMENT]),
        (f"<think>maybe {json.dumps(THREAD)}</think>{TEXT}", [COMMENT]),
        (f"The post says {json.dumps(THREAD)}, which I do not do.\n```json\n{TEXT}\n```", [COMMENT]),
        (f"{TEXT};", [COMMENT]),
        (TEXT[:-1] + ",}", [COMMENT]),
        (f"[{TEXT},]", [COMMENT]),
        (f"// my decision\n{TEXT} /* done */", [COMMENT]),
        ("[]", []),
        ("```json\n[]\n```", []),
    ],
)
def test_a_decision_is_read_in_every_form(reply: str, actions: list[Any]) -> None:
    decision = read_decision_text(reply)
    assert (decision.raw, decision.problems, decision.is_prose) == (actions, (), False)


@pytest.mark.parametrize("quotes", ["“”", "””", "''", "‘’"])
def test_a_decision_in_other_quotes_is_read(quotes: str) -> None:
    left, right = quotes
    members = ", ".join(f"{left}{name}{right}: {left}{value}{right}" for name, value in COMMENT.items())
    assert read_decision_text(f"{{{members}}}").raw == [COMMENT]


@pytest.mark.parametrize(
    "body",
    [
        "see https://example.com // not a comment",
        "a /* kept */ b",
        "commas, ] and } stay,]",
        "“curly” ‘quotes’ and it's",
        "line one\nline two",
        "ends with a backslash \\",
        '{"action": "tx"}',
        "```json\n[]\n```",
    ],
)
def test_text_inside_strings_is_kept_though_the_rest_needs_repair(body: str) -> None:
    action = {**COMMENT, "body": body}
    for reply in (json.dumps(action), json.dumps(action)[:-1] + ",}", f"/* repaired */ [{json.dumps(action)},]"):
        assert read_decision_text(reply).raw == [action]


def test_raw_line_breaks_inside_strings_are_line_breaks() -> None:
    reply = '{"action": "comment", "communitySlug": "s", "threadId": "t", "body": "one\r\ntwo"}'
    assert read_decision_text(reply).raw[0]["body"] == "one\ntwo"


def test_an_apostrophe_does_not_end_a_string_in_single_quotes() -> None:
    reply = "{'action': 'comment', 'communitySlug': 's', 'threadId': 't', 'body': 'it's the owner's call'}"
    assert read_decision_text(reply).raw[0]["body"] == "it's the owner's call"


@pytest.mark.parametrize(
    "reply", ["Nothing to add today.", "See [1] and [2].", "The set {a, b} is closed.", "x[0] = y", "I return []."]
)
def test_prose_does_nothing(reply: str) -> None:
    decision = read_decision_text(reply)
    assert not decision.problems
    assert decision.is_prose or decision.raw == []


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("5", NO_ACTION),
        ('"x"', NO_ACTION),
        ('{"answer": 1}', NO_ACTION),
        ('The result: {"answer": 1}', NO_ACTION),
        ("[1]", NO_ACTION),
        (TEXT[:-10], UNREADABLE),
        ('{"action": "comment", "action": "tx", "communitySlug": "s"}', UNREADABLE),
        ("x" * (MAX_TEXT_CHARS + 1), TOO_LONG),
    ],
)
def test_json_without_a_readable_action_is_a_problem(reply: str, problem: str) -> None:
    decision = read_decision_text(reply)
    assert (decision.raw, decision.problems, decision.is_prose) == (None, (problem,), False)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_the_lenient_reader_reads_what_strict_json_is(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        assert LenientReader(text).value(0) == (value, len(text))


@given(
    st.lists(st.fixed_dictionaries({"action": st.text(), "communitySlug": st.text(), "body": st.text()}), min_size=1)
)
def test_every_list_of_actions_is_read_back(actions: list[Any]) -> None:
    distinct = json.dumps(actions)
    assert read_decision_text(distinct).raw == actions
    assert read_decision_text(f"Here it is:\n```json\n{distinct}\n```").raw == actions or "```" in distinct


@given(st.text(alphabet="{}[]\"'“”‘’:,\\ab1/*\n `-", max_size=300))
def test_no_text_raises(reply: str) -> None:
    decision = read_decision_text(reply)
    assert decision.is_prose + bool(decision.problems) + (decision.raw is not None) == 1


@pytest.mark.parametrize("unit", ["{'", '{"', "[", "{“", '{"a":', "[{", "{'a': '", "/*", "```"])
def test_hostile_repetition_ends_within_a_bounded_number_of_attempts(unit: str) -> None:
    assert read_decision_text(unit * (MAX_TEXT_CHARS // len(unit))).raw is None


@pytest.mark.parametrize(
    "reply",
    [
        "```" + "a" * 190_000,
        "{'a': 'b'" + "/**/" * 40 + "x'}",
        "[" * 60 + "1," * 90_000,
        "{'" * 300 + "\\n" * 90_000,
        "[" * 60 + "/**/" * 45_000,
        "{a:'" * 300 + "'/*" * 600 + "y" * 190_000,
        "{a:'" * 300 + "'/*" * 600 + "*" * 190_000 + "*/ z",
    ],
)
def test_hostile_text_is_read_in_a_bounded_number_of_steps(reply: str) -> None:
    assert read_decision_text(reply).raw is None


def test_a_reply_of_the_largest_length_is_read() -> None:
    body = '"' + "\\n" * 45_000 + '"'
    reply = f"[{TEXT[:-1]}, extra: {body}, list: [{'1,' * 45_000}]}}]"
    decision = read_decision_text(f"I comment: {reply}")
    assert decision.raw is not None
    assert len(decision.raw[0]["list"]) == 45_000
