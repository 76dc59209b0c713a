"""Writes a model request as the body of a chat completion. Servers differ only by their `Dialect`.

Pure; `reply` reads what comes back. Nothing is added to the text of a prompt, with one exception: where a server cannot
hold a reply to a schema, the schema is described in a message.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from pitboss.core import codec
from pitboss.core.errors import InvariantError
from pitboss.core.ports import Message, ModelRequest, ToolSpec
from pitboss.models.chat.settings import add_settings
from pitboss.models.json_body import encode_json
from pitboss.models.providers import Dialect

NO_TEXT = "(no text)"
"""Stands for an empty turn of the model, which several servers refuse."""
SCHEMA_PROMPT = "Answer with one JSON object and nothing else. It must match this JSON Schema: "


def body(request: ModelRequest, model: str, dialect: Dialect) -> dict[str, Any]:
    """The request as plain JSON values."""
    document: dict[str, Any] = {"model": model, "messages": _messages(request, dialect)}
    if request.answer == "schema":
        _add_schema(document, request, dialect)
    elif request.tools:
        _add_tools(document, request, dialect)
    add_settings(document, request.settings, dialect)
    return document


def _messages(request: ModelRequest, dialect: Dialect) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = []
    system = codec.printable(request.system)
    if system and dialect.system == "system":
        turns.append({"role": "system", "content": system})
        system = ""
    for message in request.messages:
        text = codec.printable(message.text)
        if system and message.role == "user":
            # In the same turn, because those templates also require alternating turns.
            text, system = f"{system}\n\n{text}" if text else system, ""
        if message.role == "tool":
            turns.append({"role": "tool", "tool_call_id": message.call_id, "content": text})
        elif message.role == "assistant":
            turns.append(_assistant(message, text, dialect))
        else:
            turns.append({"role": "user", "content": text})
    if system:
        turns.insert(0, {"role": "user", "content": system})
    return turns


def _assistant(message: Message, text: str, dialect: Dialect) -> dict[str, Any]:
    state = _state(message.state, dialect)
    turn: dict[str, Any] = {"role": "assistant", "content": text or (None if message.calls else NO_TEXT)}
    call_state = state.pop("tool_calls", None)
    if message.calls or "reasoning_content" not in state:
        turn |= state
    if message.calls:
        extras = (
            call_state
            if isinstance(call_state, list) and len(call_state) == len(message.calls)
            else [None] * len(message.calls)
        )
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
    """The fields that the provider wants back. The state of another provider is left out."""
    if not text or not dialect.keeps:
        return {}
    try:
        state = orjson.loads(text)
    except ValueError:
        return {}
    return {name: state[name] for name in dialect.keeps if name in state} if isinstance(state, dict) else {}


def _add_tools(document: dict[str, Any], request: ModelRequest, dialect: Dialect) -> None:
    forced = request.must_call
    tools = request.tools
    if forced is not None:
        tools = (_tool(request),)
    document["tools"] = [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
        }
        for tool in tools
    ]
    if forced is None or dialect.force == "none":
        return  # "auto" is the default everywhere, and some servers do not know the word
    if dialect.force == "function":
        document["tool_choice"] = {"type": "function", "function": {"name": forced}}
    else:
        document["tool_choice"] = dialect.force


def _add_schema(document: dict[str, Any], request: ModelRequest, dialect: Dialect) -> None:
    tool = _tool(request)
    if dialect.schema == "none":
        text = SCHEMA_PROMPT + encode_json(dict(tool.schema)).decode()
        document["messages"].append({"role": "user", "content": text})
        return
    form: dict[str, Any] = {"name": tool.name, "schema": tool.schema}
    if is_strict(tool.schema):
        form["strict"] = True
    document["response_format"] = {"type": "json_schema", "json_schema": form}


def _tool(request: ModelRequest) -> ToolSpec:
    for tool in request.tools:
        if tool.name == request.must_call:
            return tool
    raise InvariantError(f"{request.must_call!r} must be called and is not among the tools offered")


def is_strict(schema: object) -> bool:
    """Whether OpenAI's strict mode accepts a schema: every object closed, every property required."""
    if isinstance(schema, Mapping):
        if "properties" in schema:
            is_closed = schema.get("additionalProperties") is False
            if not is_closed or set(schema.get("required", ())) != set(schema["properties"]):
                return False
        elif schema.get("type") == "object":
            return False
        return all(is_strict(part) for part in schema.values())
    if isinstance(schema, list | tuple):
        return all(is_strict(part) for part in schema)
    return True
