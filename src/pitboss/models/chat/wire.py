"""Our question → the body of a chat completion. One server's dialect differs from another's only by `Dialect`.

Pure; `reply` reads what comes back and `client` carries both. Nothing is added to the words of a prompt, with one
exception: where a server cannot hold an answer to a schema, the schema is told in words.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson

from pitboss.core import codec
from pitboss.core.errors import InvariantError
from pitboss.core.ports import Message, ModelRequest, ToolSpec
from pitboss.models.providers import MAX_TOKENS, Dialect

NO_TEXT = "(no text)"
"""Stands for an empty turn of the model's; several servers refuse a turn with nothing in it."""
SCHEMA_WORDS = "Answer with one JSON object and nothing else. It must match this JSON Schema: "
BUDGETS = {"minimal": 1_024, "low": 1_024, "medium": 4_096, "high": 16_384}
SMALLEST_BUDGET = 1_024
_NO_SYSTEM = re.compile(r"system (role|message|instruction|prompt)|role\b.{0,80}\b(system|developer)")
"""Complaints about a turn of the system's: reasoning models at first, and small models whose templates know none."""


def body(request: ModelRequest, model: str, dialect: Dialect) -> dict[str, Any]:
    """The request as plain JSON values."""
    written: dict[str, Any] = {"model": model, "messages": _messages(request, dialect)}
    if request.answer == "schema":
        _ask_for_schema(written, request, dialect)
    elif request.tools:
        _offer(written, request, dialect)
    _set(written, request.settings, dialect)
    return written


def content(request: ModelRequest, model: str, dialect: Dialect) -> bytes:
    """The request as it is sent."""
    return orjson.dumps(body(request, model, dialect), default=_plain)


def limit(settings: Mapping[str, Any]) -> int:
    """The most tokens that an answer may have."""
    return settings.get("max_tokens") or MAX_TOKENS


def adapted(dialect: Dialect, request: ModelRequest, complaint: str) -> Dialect | None:
    """A plainer dialect for a server that complained about ours; None where there is none.

    What one server takes differs from model to model, and nobody lists it.
    """
    words = complaint.lower().replace("_", " ")
    if (
        request.answer == "schema"
        and dialect.schema != "none"
        and ("response format" in words or "json schema" in words)
    ):
        return replace(dialect, schema="none")
    if request.must_call is not None and dialect.force != "none" and ("tool choice" in words or "toolchoice" in words):
        return replace(dialect, force={"function": "required"}.get(dialect.force, "none"))
    if request.system and dialect.system != "user" and _NO_SYSTEM.search(words):
        return replace(dialect, system="user")
    if dialect.max_tokens == "max_tokens" and "max completion tokens" in words:
        return replace(dialect, max_tokens="max_completion_tokens")
    if dialect.max_tokens == "max_completion_tokens" and "max completion tokens" in words:
        return replace(dialect, max_tokens="max_tokens")
    return None


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    return codec.plain(value)


def _messages(request: ModelRequest, dialect: Dialect) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = []
    before = codec.printable(request.system)
    if before and dialect.system == "system":
        written.append({"role": "system", "content": before})
        before = ""
    for message in request.messages:
        text = codec.printable(message.text)
        if before and message.role == "user":
            # In the same turn: those templates also want turns to alternate.
            text, before = f"{before}\n\n{text}" if text else before, ""
        if message.role == "tool":
            written.append({"role": "tool", "tool_call_id": message.call_id, "content": text})
        elif message.role == "assistant":
            written.append(_assistant(message, text, dialect))
        else:
            written.append({"role": "user", "content": text})
    if before:
        written.insert(0, {"role": "user", "content": before})
    return written


def _assistant(message: Message, text: str, dialect: Dialect) -> dict[str, Any]:
    state = _state(message.state, dialect)
    turn: dict[str, Any] = {"role": "assistant", "content": text or (None if message.calls else NO_TEXT)}
    kept = state.pop("tool_calls", None)
    if message.calls or "reasoning_content" not in state:
        turn |= state
    if message.calls:
        extras = kept if isinstance(kept, list) and len(kept) == len(message.calls) else [None] * len(message.calls)
        turn["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": codec.printable(call.name) or "unknown",
                    "arguments": codec.printable(call.arguments) or "{}",
                },
            }
            | (extra if isinstance(extra, dict) else {})
            for call, extra in zip(message.calls, extras, strict=True)
        ]
    return turn


def _state(text: str, dialect: Dialect) -> dict[str, Any]:
    """What the provider wants back. Only fields that this dialect keeps: another provider's state is left out."""
    if not text or not dialect.keeps:
        return {}
    try:
        state = orjson.loads(text)
    except ValueError:
        return {}
    return {name: state[name] for name in dialect.keeps if name in state} if isinstance(state, dict) else {}


def _offer(written: dict[str, Any], request: ModelRequest, dialect: Dialect) -> None:
    forced = request.must_call
    tools = request.tools
    if forced is not None:
        tools = (_tool(request),)
    written["tools"] = [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
        }
        for tool in tools
    ]
    if forced is None or dialect.force == "none":
        return  # "auto" is what all of them do unless told; some do not know the word
    if dialect.force == "function":
        written["tool_choice"] = {"type": "function", "function": {"name": forced}}
    else:
        written["tool_choice"] = dialect.force


def _ask_for_schema(written: dict[str, Any], request: ModelRequest, dialect: Dialect) -> None:
    tool = _tool(request)
    if dialect.schema == "none":
        words = SCHEMA_WORDS + orjson.dumps(tool.schema, default=_plain).decode()
        written["messages"].append({"role": "user", "content": words})
        return
    form: dict[str, Any] = {"name": tool.name, "schema": tool.schema}
    if is_strict(tool.schema):
        form["strict"] = True
    written["response_format"] = {"type": "json_schema", "json_schema": form}


def _tool(request: ModelRequest) -> ToolSpec:
    for tool in request.tools:
        if tool.name == request.must_call:
            return tool
    raise InvariantError(f"{request.must_call!r} must be called and is not among the tools offered")


def is_strict(schema: object) -> bool:
    """Whether OpenAI's strict mode takes a schema: every object closed, every property required."""
    if isinstance(schema, Mapping):
        if "properties" in schema:
            closed = schema.get("additionalProperties") is False
            if not closed or set(schema.get("required", ())) != set(schema["properties"]):
                return False
        elif schema.get("type") == "object":
            return False
        return all(is_strict(part) for part in schema.values())
    if isinstance(schema, list | tuple):
        return all(is_strict(part) for part in schema)
    return True


def _set(written: dict[str, Any], settings: Mapping[str, Any], dialect: Dialect) -> None:
    most = limit(settings)
    written[dialect.max_tokens] = most
    if settings.get("temperature") is not None:
        written["temperature"] = settings["temperature"]
    if dialect.seed and settings.get("seed") is not None:
        written[dialect.seed] = settings["seed"]
    effort = settings.get("reasoning")
    if effort is None or dialect.reasoning == "none":
        return
    if dialect.reasoning in ("thinking", "switch") and "tool_choice" in written:
        return  # no call can be forced while these think
    if dialect.reasoning == "effort":
        written["reasoning_effort"] = effort
    elif dialect.reasoning == "openrouter":
        written["reasoning"] = {"enabled": False} if effort == "none" else {"effort": effort}
    elif dialect.reasoning == "switch":
        written["thinking"] = {"type": "disabled" if effort == "none" else "enabled"}
    elif effort in BUDGETS:
        # Thoughts count against the limit, so that the most a call can cost stays what was promised.
        budget = min(BUDGETS[effort], most // 2)
        if budget >= SMALLEST_BUDGET:
            written["thinking"] = {"type": "enabled", "budget_tokens": budget}
            written.pop("temperature", None)  # not taken together with thinking
