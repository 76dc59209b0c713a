"""Finds the decision in a text reply: the protocol's strict JSON, with a lenient reading where strict JSON fails.

A decision is an action object, a list of them, or `{"actions": [...]}`. Fenced blocks and the whole text come before
JSON inside prose, so that what a model quotes does not count if it also answers properly. Values that hold no action,
such as a `[1]` in prose, never hide one that does. A text without JSON is prose: the agent did nothing.
"""

import re
from typing import Any

from pitboss.core import codec
from pitboss.core.decision_format import TextDecision
from pitboss.venues.community.lenient_json import LenientReader

MAX_TEXT_CHARS = 200_000
MAX_OPENERS = 300
"""Most places in a prose text at which a value is looked for; bounds the time for a hostile reply."""

NO_ACTION = "the reply holds JSON, but no action: each needs `action` and `communitySlug`"
UNREADABLE = "the reply looks like JSON but cannot be read"
TOO_LONG = f"the reply is over {MAX_TEXT_CHARS} characters"

_FENCE = re.compile(r"```[A-Za-z0-9_-]*+[ \t]*+\r?\n?(.*?)```", re.DOTALL)
"""Possessive (`*+`): the characters of a language name are not tried again as content, which would take quadratic time."""
_OPEN_FENCE = re.compile(r"\A```[A-Za-z0-9_-]*[ \t]*\r?\n?")
_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_OPENER = re.compile(r"[{\[]")
_BEGINS_JSON = re.compile(r"\A\s*(?:\{\s*[\"'“”‘’}A-Za-z_]|\[\s*[{\[\"'“”\]])")
_ACTION_WORD = re.compile(r"[\"'“”‘’](?:action|communitySlug|actions)[\"'“”‘’]\s*:")


def read_decision_text(text: str) -> TextDecision:
    """The decision in a reply without tool calls."""
    if len(text) > MAX_TEXT_CHARS:
        return TextDecision(problems=(TOO_LONG,))
    text = _THOUGHT.sub("", text).strip()
    blocks = [match.group(1).strip() for match in _FENCE.finditer(text)]
    whole = _OPEN_FENCE.sub("", text).removesuffix("```").strip()
    values = [value for block in (*blocks, whole) if (value := _whole_value(block)) is not _NOTHING]
    decisions = [value for value in values if _is_decision(value)]
    if not decisions:
        values.extend(_embedded_values(text))
        decisions = [value for value in values if _is_decision(value)]
    if decisions:
        return TextDecision(_actions(decisions))
    if any(value == [] for value in values):
        return TextDecision([])
    if values:
        return TextDecision(problems=(NO_ACTION,))
    if _BEGINS_JSON.match(whole) or _ACTION_WORD.search(text):
        return TextDecision(problems=(UNREADABLE,))
    return TextDecision(is_prose=True)


_NOTHING = object()


def _whole_value(text: str) -> Any:
    """The value that a text is, strict or lenient; `_NOTHING` if it is none."""
    try:
        return codec.loads_exact(text)
    except (ValueError, RecursionError):
        pass
    if text[:1] not in ("{", "["):
        return _NOTHING
    try:
        value, end = LenientReader(text).value(0)
    except (ValueError, ArithmeticError):
        return _NOTHING
    return value if not text[end:].strip(" \t\r\n;.") else _NOTHING


def _embedded_values(text: str) -> list[Any]:
    """The objects and arrays in a text, outermost ones, in order."""
    values: list[Any] = []
    reader, at, attempts = LenientReader(text), 0, 0
    while (opener := _OPENER.search(text, at)) is not None and attempts < MAX_OPENERS:
        attempts += 1
        try:
            value, at = reader.value(opener.start())
        except (ValueError, ArithmeticError):
            at = opener.end()
            continue
        if _holds_object(value):
            values.append(value)
    return values


def _holds_object(value: Any) -> bool:
    """Whether a value in prose is meant as data; `[1]` is a footnote."""
    return bool(value) if isinstance(value, dict) else any(isinstance(item, dict | list) for item in value)


def _is_decision(value: Any) -> bool:
    """Whether a value holds at least one object that means to be an action."""
    if isinstance(value, dict):
        if isinstance(value.get("actions"), list) and "action" not in value:
            return True
        return "action" in value
    return isinstance(value, list) and any(isinstance(item, dict) and "action" in item for item in value)


def _actions(decisions: list[Any]) -> list[Any]:
    """All actions in order. A decision that a reply repeats word for word counts once."""
    contents: set[bytes] = set()
    actions: list[Any] = []
    for decision in decisions:
        content = codec.dumps(codec.number_fragments(decision))
        if content not in contents:
            contents.add(content)
            actions.extend(actions_of(decision))
    return actions


def actions_of(decision: Any) -> list[Any]:
    """The actions of a decision in any of its three forms, unread."""
    if isinstance(decision, dict) and isinstance(decision.get("actions"), list) and "action" not in decision:
        return decision["actions"]
    return decision if isinstance(decision, list) else [decision]
