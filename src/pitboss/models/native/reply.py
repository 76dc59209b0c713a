"""Builds a `ModelReply` from the parts of a native reply, with a defined outcome for every ending.

Calls without an id get one that is the same in every run, and a turn with signed reasoning is kept in `state`, because the
provider must get it back. The readers of each protocol read the parts; nothing here knows a wire format. The texts of
problems are shown to the model and stored with replies: they must not change.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from pitboss.core import codec
from pitboss.core.intent import FinishReason, Usage
from pitboss.core.noun import noun
from pitboss.core.ports import ModelReply, ToolCall
from pitboss.models.failures import NO_HEADERS, Failure, classify, malformed
from pitboss.models.json_body import as_dict, as_str, parse_body
from pitboss.models.native.conversation import call_place, state_of
from pitboss.models.server_events import events, is_stream, json_events

NO_NAME = "unknown"
"""The name of a call that came without one. There is no such tool, which the model is told."""

_ORDINARY = ("", "STOP", "end_turn")
_STATUS = {
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
    "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "api_error": 500, "timeout_error": 504,
    "overloaded_error": 529,
}  # fmt: skip
"""The status of Anthropic's errors when they arrive inside a response that began well."""


@noun
class ReplyPart:
    """One part of a reply. `wire` is what is sent back with the turn; a call's id is put in where it is missing."""

    kind: Literal["text", "thought", "call"]
    wire: Mapping[str, Any]
    text: str = ""
    call: ToolCall | None = None
    is_signed: bool = False


@noun
class ReplyEnding:
    """How a reply ended. `reason` is the provider's word, `problem` the text for a refused or failed reply."""

    kind: Literal["stop", "length", "failed"]
    reason: str = ""
    problem: str = ""


@noun
class ReplyContext:
    """What a reply belongs to.

    `name` begins the message of a failure, `turn` counts the model's earlier turns, `call` names the tool that JSON text
    stands for, and `model` is used where the reply does not name its model.
    """

    name: str
    turn: int = 0
    call: str = ""
    model: str = ""


def build_reply(
    provider: str,
    parts: Sequence[ReplyPart],
    ending: ReplyEnding,
    usage: Usage,
    context: ReplyContext,
    provider_id: str,
    model: str,
) -> ModelReply:
    """The reply that the parts make."""
    parts = _with_ids(_finished(parts, ending), context.turn)
    text = codec.printable("".join(part.text for part in parts if part.kind == "text"))
    calls = tuple(part.call for part in parts if part.call is not None)
    finish, problem = _finish(ending, text, calls)
    if context.call and not calls and text and not problem:
        calls, finish = (ToolCall(f"call_{context.turn}_0", context.call, text),), "tool_calls"
    has_state = any(part.kind == "thought" or part.is_signed for part in parts)
    return ModelReply(
        text=text,
        calls=calls,
        usage=usage,
        finish_reason=finish,
        provider_id=codec.printable(provider_id),
        model=codec.printable(model or context.model),
        state=state_of(provider, [dict(part.wire) for part in parts]) if has_state else "",
        problem=problem,
        cost_usd=None,
    )


def reply_document(
    content: object,
    status: int,
    headers: Mapping[str, str],
    name: str,
    join_stream: Callable[[list[dict[str, Any]], str], dict[str, Any] | Failure] | None = None,
) -> dict[str, Any] | Failure:
    """The document of a reply: the JSON object of a body, or what the events of a stream make; a failure for all else.

    A list stands for the events of a stream, as Google sends them without `alt=sse`.
    """
    body = parse_body(content) if isinstance(content, bytes | str) else content
    if status >= 300:
        if isinstance(body, str) and is_stream(body):
            body = next((parse_body(data) for _, data in events(body)), body)
        return classify(status, body, headers, name)
    if isinstance(body, dict):
        return body
    if isinstance(body, str) and (join_stream is None or not is_stream(body)):
        return malformed(name, "the reply is not JSON")
    pieces = json_events(body) if isinstance(body, str) else body
    if pieces is None:
        return malformed(name, "a piece of the stream is not JSON")
    if join_stream is None or not isinstance(pieces, list):
        return malformed(name, "the reply is not a JSON object")
    return join_stream([as_dict(piece) for piece in pieces], name)


def embedded_error(body: Mapping[str, Any], reply_field: str, name: str) -> Failure | None:
    """The error that arrived in place of a reply; `reply_field` is a field that only a reply has."""
    error = body.get("error")
    if not error or reply_field in body:
        return None
    kind = error.get("type") if isinstance(error, dict) else None
    return classify(_STATUS.get(kind, 200) if isinstance(kind, str) else 200, body, NO_HEADERS, name)


def read_call(call_id: object, name: object, arguments: object) -> ToolCall:
    """A call of a tool. Arguments that came as a value are canonical text, those that came as text stay as they are."""
    if isinstance(arguments, str):
        text = codec.printable(arguments)
    else:
        text = "" if arguments is None else codec.dumps(codec.number_fragments(arguments)).decode()
    return ToolCall(as_str(call_id), as_str(name) or NO_NAME, text or "{}")


def _finished(parts: Sequence[ReplyPart], ending: ReplyEnding) -> list[ReplyPart]:
    """The complete parts: not the call in which a reply was cut off, and no call of a refused or failed one."""
    if ending.kind == "failed":
        return [part for part in parts if part.call is None]
    if ending.kind == "length" and parts and parts[-1].call is not None:
        return list(parts[:-1])
    return list(parts)


def _with_ids(parts: list[ReplyPart], turn: int) -> list[ReplyPart]:
    """The parts with an id on every call: one that follows from its place where the provider gave none."""
    ids: set[str] = set()
    for index, part in enumerate(parts):
        call = part.call
        if call is None:
            continue
        if not call.id or call.id in ids:
            call = replace(call, id=f"call_{turn}_{len(ids)}")
            holder, id_field = call_place(part.wire) or ("", "id")
            named = {id_field: call.id}
            wire = {**part.wire, **({holder: {**part.wire[holder], **named}} if holder else named)}
            parts[index] = replace(part, call=call, wire=wire)
        ids.add(call.id)
    return parts


def _finish(ending: ReplyEnding, text: str, calls: tuple[ToolCall, ...]) -> tuple[FinishReason, str]:
    if ending.kind == "failed":
        return "error", ending.problem
    if ending.kind == "length":
        return "length", "the reply was cut off at its limit of tokens"
    if calls:
        return "tool_calls", ""
    if not text.strip():
        return "stop", "the reply was empty" + ("" if ending.reason in _ORDINARY else f" ({ending.reason})")
    return "stop", ""
