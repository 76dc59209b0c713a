"""Actions of agents: the field contract of the protocol, read strictly."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.venues.community.intents import (
    ACTION_FIELDS,
    DECISION,
    MAX_ACTIONS,
    CommunityAction,
    read_action,
    read_decision,
)

EXAMPLES: dict[str, dict[str, Any]] = {
    "create_thread": {"title": "t", "body": "b"},
    "comment": {"threadId": "t1", "body": "b"},
    "tx": {"threadId": "t1", "contractAddress": "0x" + "a" * 40, "functionName": "withdraw", "args": ["1"]},
    "set_request_status": {"threadId": "t1", "status": "resolved"},
    "request_contract_source": {"contractId": "c1"},
    "request_thread_comments": {"threadId": "t1"},
}


def example(name: str, **changes: Any) -> dict[str, Any]:
    return {"action": name, "communitySlug": "vault", **EXAMPLES[name], **changes}


@pytest.mark.parametrize("name", ACTION_FIELDS)
def test_every_action_is_read_and_needs_each_of_its_fields(name: str) -> None:
    action, problems = read_action(example(name))
    assert action is not None
    assert (action.action, action.community_slug, problems) == (name, "vault", [])
    for field in ("communitySlug", *ACTION_FIELDS[name][0]):  # pyright: ignore[reportArgumentType]
        raw = example(name)
        del raw[field]
        assert read_action(raw) == (None, [f"{name} needs {field}"])
        assert read_action({**raw, field: None}) == (None, [f"{name} needs {field}"])


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (example("comment", value="1"), "comment has no field 'value'"),
        (example("comment", body=5), "body must be text"),
        (example("create_thread", threadType="SYSTEM"), "threadType must be one of"),
        (example("comment", commentKind="POEM"), "commentKind must be one of"),
        (example("set_request_status", status="rejected"), "status must be one of pending, resolved"),
        (example("tx", value="-1"), "value must be wei"),
        (example("tx", value="0x10"), "value must be wei"),
        (example("tx", value=1.5), "value must be wei"),
        (example("tx", value=True), "value must be wei"),
        (example("tx", value=str(2**256)), "value must be wei"),
        (example("tx", args={"amount": 1}), "args must be a list"),
        (example("tx", args=[1] * 65), "args must be a list"),
        (example("request_contract_source", contractAddress="0x1"), "exactly one of"),
        (example("request_contract_source", contractId=None), "exactly one of"),
        (example("request_thread_comments", commentLimit=-1), "commentLimit must be"),
        (example("request_thread_comments", commentLimit=True), "commentLimit must be"),
        (example("comment", action="selfdestruct"), "action must be one of"),
        (example("comment", action=["comment"]), "action must be one of"),
        (example("comment", communitySlug=" "), "communitySlug is empty"),
        ([], "an action is a JSON object"),
    ],
)
def test_a_malformed_action_is_refused_with_its_problem(raw: Any, problem: str) -> None:
    action, problems = read_action(raw)
    assert action is None
    assert any(problem in line for line in problems)


def test_wei_are_exact() -> None:
    action, _ = read_action(example("tx", value=str(10**30 + 1)))
    assert action is not None
    assert action.value_wei == 10**30 + 1


def test_one_bad_action_does_not_discard_the_others() -> None:
    raw = {"actions": [example("comment"), {"action": "comment"}, 5]}
    assert read_decision(raw) == (raw["actions"], [])
    assert DECISION.intents(raw) == tuple(raw["actions"])


@pytest.mark.parametrize(
    "raw",
    [[5], {"actions": [{"action": "comment"}]}, {"actions": "none"}, {"reason": "x"}, 5, "text", [example("comment")] * (MAX_ACTIONS + 1)],
)  # fmt: skip
def test_a_decision_without_a_readable_action_is_malformed(raw: Any) -> None:
    assert read_decision(raw)[0] is None


@pytest.mark.parametrize("raw", [[], {"actions": []}])
def test_an_empty_decision_does_nothing(raw: Any) -> None:
    assert read_decision(raw) == ([], [])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["action", "communitySlug", "actions", "threadId", "body", "args", "value", "commentLimit"]
            ),
            inner | st.sampled_from(list(ACTION_FIELDS)),
            max_size=6,
        )
    ),
    max_leaves=15,
)


@given(JSON)
def test_no_value_raises_and_each_is_an_action_or_has_problems(raw: Any) -> None:
    action, problems = read_action(raw)
    assert isinstance(action, CommunityAction) != bool(problems)
    decision, problems = read_decision(raw)
    assert (decision is None) == bool(problems)


@pytest.mark.parametrize("name", ACTION_FIELDS)
def test_an_action_is_read_alike_from_text_and_from_a_call(name: str) -> None:
    assert DECISION.read_text is not None
    decision = DECISION.read_text(json.dumps(example(name)))
    assert DECISION.intents(decision.raw) == DECISION.intents({"actions": [example(name)]})
