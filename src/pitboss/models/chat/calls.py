"""Tool calls in the message of a chat completion, in any of the forms that servers use."""

import re
from collections.abc import Mapping
from typing import Any

from pitboss.core import codec
from pitboss.core.ports import ToolCall
from pitboss.models.json_body import as_str, as_text, parse_body

_TAGGED = re.compile(r"<function[=(]([\w.-]+)[)>]?\s*>?\s*(\{.*\})\s*(?:</function>)?", re.DOTALL)
_WRAPPED = re.compile(r"</?tool_call>")


def read_calls(message: Mapping[str, Any], first_call: int) -> tuple[ToolCall, ...]:
    """The tool calls of a message. A call without a usable id gets one that is the same in every run."""
    entries = message.get("tool_calls")
    if isinstance(entries, dict) and entries:
        entries = [entries]
    legacy = message.get("function_call")
    if not entries and isinstance(legacy, dict) and legacy.get("name"):
        entries = [legacy]
    if not isinstance(entries, list):
        return ()
    calls: list[ToolCall] = []
    ids: set[str] = set()
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        function = entry.get("function") or entry.get("custom")
        function = function if isinstance(function, dict) else entry
        id_ = short_text(entry.get("id"), 8_192)  # some gateways put signatures into the id
        if not id_ or id_ in ids:
            id_ = _new_id(first_call + len(calls), ids)
        ids.add(id_)
        name = function.get("name")
        arguments = function.get("arguments", function.get("input"))
        calls.append(
            ToolCall(
                id_,
                as_str(name),
                codec.printable(arguments) if isinstance(arguments, str) else as_text(arguments),
            )
        )
    return tuple(calls)


def _new_id(number: int, used: set[str]) -> str:
    while (own_id := f"c{number}") in used:
        number += 1
    return own_id


def rejected_calls(text: str, first_call: int) -> tuple[ToolCall, ...]:
    """The calls in the text of a generation that the provider rejected."""
    value = parse_body(_WRAPPED.sub("", text).strip())
    entries = value if isinstance(value, list) else [value]
    calls = [
        {"function": {"name": entry["name"], "arguments": entry.get("arguments", entry.get("parameters"))}}
        for entry in entries
        if isinstance(entry, dict) and isinstance(entry.get("name"), str)
    ]
    if not calls:
        tagged = _TAGGED.search(text)
        calls = [{"function": {"name": tagged[1], "arguments": tagged[2]}}] if tagged else []
    return read_calls({"tool_calls": calls}, first_call)


def call_extras(entries: object) -> list[Any] | None:
    """What belongs to single calls and has to be sent back with them: Google's signatures."""
    if not isinstance(entries, list):
        return None
    extras = [
        {"extra_content": entry["extra_content"]} if entry.get("extra_content") else None
        for entry in entries
        if isinstance(entry, dict)
    ]
    return extras if any(extras) else None


def short_text(value: object, most: int = 200) -> str:
    """A text of bounded length; empty for anything else."""
    return as_str(value)[:most]
