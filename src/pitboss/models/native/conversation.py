"""The conversation of a request, grouped into turns as both providers want it: ours and the model's.

A turn of the model is sent back as it was received where its `state` holds it, else it is rebuilt from text and calls.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from pitboss.core.noun import noun
from pitboss.core.ports import Message, ModelRequest
from pitboss.models.json_body import as_text, parse_body

NOTHING = "(nothing)"
"""The text of an empty tool result; Anthropic accepts no empty ones."""
INVALID = "INVALID_JSON"
"""The field under which arguments are sent back that are not a JSON object."""


@noun
class ResultPart:
    """The result of a call, for the provider."""

    call_id: str
    name: str
    text: str


@noun
class UserTurn:
    """Neighbouring messages to the model: results of calls, and texts, in their order."""

    results: tuple[ResultPart, ...]
    texts: tuple[str, ...]


@noun
class ModelTurn:
    """A turn of the model. `content` is the provider's own content where it was kept."""

    message: Message
    content: tuple[dict[str, Any], ...] = ()


def turns(request: ModelRequest, provider: str, prompt: str = "") -> Iterator[UserTurn | ModelTurn]:
    """The turns of a request, with `prompt` as the last text."""
    results: list[ResultPart] = []
    texts: list[str] = []
    open_calls: dict[str, str] = {}
    for message in request.messages:
        if message.role == "assistant":
            if results or texts:
                yield UserTurn(tuple(results), tuple(texts))
            results, texts = [], []
            content = kept_content(message.state, provider)
            open_calls = _call_names(message, content)
            if content or message.text or message.calls:
                yield ModelTurn(message, content)
        elif message.role == "tool" and message.call_id in open_calls:
            name = message.name or open_calls[message.call_id]
            results.append(ResultPart(message.call_id, name, message.text or NOTHING))
        else:
            texts.append(message.text)
    texts += [prompt] if prompt else []
    if results or texts:
        yield UserTurn(tuple(results), tuple(texts))


def state_of(provider: str, content: list[dict[str, Any]]) -> str:
    """A turn of the model as it must be sent back, as text."""
    return as_text({"provider": provider, "content": content})


def kept_content(state: str, provider: str) -> tuple[dict[str, Any], ...]:
    """The content that `state_of` kept; empty where there is none or it is another provider's."""
    try:
        document = orjson.loads(state) if state else None
    except ValueError:
        return ()
    if not isinstance(document, dict) or document.get("provider") != provider:
        return ()
    content = document.get("content")
    return tuple(part for part in content if isinstance(part, dict)) if isinstance(content, list) else ()


def arguments_object(arguments: object) -> dict[str, Any]:
    """The arguments of a call as an object; under `INVALID_JSON` where they are not one."""
    value = parse_body(arguments or "{}") if isinstance(arguments, str) else arguments
    return value if isinstance(value, dict) else {INVALID: arguments if isinstance(arguments, str) else as_text(value)}


def call_place(part: Mapping[str, Any]) -> tuple[str, str] | None:
    """Where a part of kept content holds a call: the field with the call (empty: the part itself) and that of its id."""
    if "functionCall" in part:
        return "functionCall", "id"
    if "toolUse" in part:
        return "toolUse", "toolUseId"
    id_field = {"tool_use": "id", "function_call": "call_id"}.get(str(part.get("type")))
    return None if id_field is None else ("", id_field)


def _call_names(message: Message, content: tuple[dict[str, Any], ...]) -> dict[str, str]:
    """The calls of a turn by id. Kept content decides: a decision through a schema was text, not a call."""
    if not content:
        return {call.id: call.name for call in message.calls}
    calls = [(part, place) for part in content if (place := call_place(part)) is not None]
    fields = [(part[holder] if holder else part, id_field) for part, (holder, id_field) in calls]
    return {str(call.get(id_field)): str(call.get("name")) for call, id_field in fields if isinstance(call, dict)}
