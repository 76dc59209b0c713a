"""Amazon Bedrock's Converse protocol: writes requests and reads replies. Streams are never requested and are not read.

One protocol for the models of many makers, which differ in what they accept. What is known about a family is written down
here; the rest is learnt from a refusal (`NativeForm`).
"""

from collections.abc import Mapping
from typing import Any

from pitboss.core import codec
from pitboss.core.intent import Usage
from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.models.chat.finish import BLOCKED, REFUSED
from pitboss.models.failures import Failure, malformed
from pitboss.models.json_body import as_dict, as_str, token_count
from pitboss.models.native.answer_form import AnswerForm, NativeForm, answer_form, reasoning_level
from pitboss.models.native.anthropic_request import MOST_TEMPERATURE, is_thinking, thinking_setting
from pitboss.models.native.capabilities import AnthropicCapabilities, anthropic_capabilities
from pitboss.models.native.conversation import ModelTurn, arguments_object, turns
from pitboss.models.native.reply import ReplyContext, ReplyEnding, ReplyPart, build_reply, read_call, reply_document
from pitboss.models.native.schemas import anthropic_output_schema, anthropic_tool_schema
from pitboss.models.token_bounds import token_limit

PROVIDER = "bedrock"
CACHE_POINT = {"cachePoint": {"type": "default"}}
REQUEST_ID = "x-amzn-RequestId"

_CLAUDE, _NOVA, _OPENAI = "anthropic.", "amazon.nova", "openai."
_CUT = frozenset({"max_tokens", "model_context_window_exceeded"})
_FILTERED = frozenset({"guardrail_intervened", "content_filtered"})
_FAILED = frozenset({"malformed_model_output", "malformed_tool_use"})


def form_of(request: ModelRequest, model: str, form: NativeForm) -> AnswerForm:
    """How the model is made to answer. A schema is used only where the request wants one: tools cannot be forbidden."""
    claude = _claude(model)
    can_force = form.can_force
    if claude is not None:
        can_force = can_force and claude.has_forced_tools and not is_thinking(request, claude)
    has_schemas = form.has_schemas and request.answer == "schema" and (claude is None or claude.has_schemas)
    return answer_form(request, can_force, has_schemas, has_tools_with_schema=True)


def body(request: ModelRequest, model: str, form: NativeForm) -> dict[str, Any]:
    """The request as plain JSON values. `model` is its identifier, with or without the prefix of a region."""
    answer, claude = form_of(request, model, form), _claude(model)
    limits: dict[str, Any] = {"maxTokens": token_limit(request.settings)}
    temperature = request.settings.get("temperature")
    if temperature is not None and (claude is None or (claude.has_sampling and not is_thinking(request, claude))):
        limits["temperature"] = min(MOST_TEMPERATURE, float(temperature))
    document: dict[str, Any] = {"messages": _messages(request, answer.prompt, form), "inferenceConfig": limits}
    has_marks = form.has_cache_marks and (claude is not None or _NOVA in model)
    if request.system:
        document["system"] = [_text(request.system), *([CACHE_POINT] if has_marks else [])]
    if answer.tools:
        tools = [
            {
                "toolSpec": {
                    "name": tool.name,
                    "description": tool.description,
                    "inputSchema": {"json": anthropic_tool_schema(tool.schema)},
                }
            }
            for tool in answer.tools
        ]
        choice = {"toolChoice": {"tool": {"name": request.must_call}}} if answer.kind == "forced" else {}
        marks = [CACHE_POINT] if has_marks and claude is not None else []
        document["toolConfig"] = {"tools": [*tools, *marks], **choice}
    if answer.output is not None:
        schema = codec.dumps(anthropic_output_schema(answer.output.schema)).decode()
        structure = {"jsonSchema": {"name": answer.output.name, "schema": schema}}
        document["outputConfig"] = {"textFormat": {"type": "json_schema", "structure": structure}}
    reasoning = _reasoning(request, model, claude)
    if reasoning:
        document["additionalModelRequestFields"] = reasoning
    return document


def _claude(model: str) -> AnthropicCapabilities | None:
    """What a model of Anthropic accepts; None for the models of others."""
    _, is_claude, name = model.rpartition(_CLAUDE)
    return anthropic_capabilities(name) if is_claude else None


def _reasoning(request: ModelRequest, model: str, claude: AnthropicCapabilities | None) -> dict[str, Any]:
    """The model's own fields for a level of reasoning. Models without such a field here reason as they do by default."""
    level = reasoning_level(request)
    if claude is not None:
        thinking = thinking_setting(request, claude)
        return {"thinking": thinking} if thinking is not None else {}
    return {"reasoning_effort": level} if level not in ("", "none") and _OPENAI in model else {}


def _messages(request: ModelRequest, prompt: str, form: NativeForm) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for turn in turns(request, PROVIDER, prompt):
        if isinstance(turn, ModelTurn):
            role, content = "assistant", _model_content(turn, form.has_thinking)
        else:
            role = "user"
            content = [
                {"toolResult": {"toolUseId": result.call_id, "content": [_text(result.text)], "status": "success"}}
                for result in turn.results
            ]
            content += [_text(text) for text in turn.texts if text]
        if content:
            messages.append({"role": role, "content": content})
    return messages


def _model_content(turn: ModelTurn, has_thinking: bool) -> list[dict[str, Any]]:
    if turn.content:
        return [block for block in turn.content if has_thinking or "reasoningContent" not in block]
    message = turn.message
    calls = [_tool_use(call.id, codec.printable(call.name), arguments_object(call.arguments)) for call in message.calls]
    return [*([_text(message.text)] if message.text else []), *calls]


def _text(text: str) -> dict[str, Any]:
    return {"text": codec.printable(text)}


def _tool_use(call_id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": call_id, "name": name, "input": arguments}}


# Replies --------------------------------------------------------------------------------------------------------------


def read(content: object, status: int, headers: Mapping[str, str], context: ReplyContext) -> ModelReply | Failure:
    """What a response means. Any content gives a reply or a failure, never an exception."""
    document = reply_document(content, status, headers, context.name)
    if isinstance(document, Failure):
        return document
    blocks = as_dict(as_dict(document.get("output")).get("message")).get("content")
    if not isinstance(blocks, list):
        return malformed(context.name, "the reply holds no message")
    parts = [part for block in blocks if (part := _part(as_dict(block))) is not None]
    ending, usage = _ending(as_str(document.get("stopReason"))), _usage(document.get("usage"))
    return build_reply(PROVIDER, parts, ending, usage, context, headers.get(REQUEST_ID, ""), "")


def _part(block: dict[str, Any]) -> ReplyPart | None:
    if isinstance(block.get("text"), str):
        text = codec.printable(block["text"])
        return ReplyPart("text", _text(text), text)
    use = block.get("toolUse")
    if isinstance(use, dict):
        value = use.get("input")
        call = read_call(use.get("toolUseId"), use.get("name"), value)
        return ReplyPart("call", _tool_use(call.id, call.name, arguments_object(value)), call=call)
    reasoning = as_dict(block.get("reasoningContent"))
    text, redacted = as_dict(reasoning.get("reasoningText")), as_str(reasoning.get("redactedContent"))
    signature = as_str(text.get("signature"))
    if signature:
        kept = {"reasoningText": {"text": as_str(text.get("text")), "signature": signature}}
        return ReplyPart("thought", {"reasoningContent": kept})
    # Reasoning without a signature is not sent back: the models that write it refuse to read it.
    return ReplyPart("thought", {"reasoningContent": {"redactedContent": redacted}}) if redacted else None


def _ending(reason: str) -> ReplyEnding:
    if reason in _CUT:
        return ReplyEnding("length", reason)
    if reason in _FILTERED:
        return ReplyEnding("failed", reason, f"{BLOCKED} ({reason})")
    if reason == "refusal":
        return ReplyEnding("failed", reason, REFUSED)
    if reason in _FAILED:
        return ReplyEnding("failed", reason, f"the provider could not take the reply ({reason})")
    return ReplyEnding("stop", reason)


def _usage(value: object) -> Usage:
    """The tokens of a reply; the provider's count of input leaves out what its cache read or wrote."""
    usage = as_dict(value)
    cached, cache_writes = (token_count(usage.get(f"cache{kind}InputTokens")) for kind in ("Read", "Write"))
    total = token_count(usage.get("inputTokens")) + cached + cache_writes
    return Usage(total, token_count(usage.get("outputTokens")), cached, 0, cache_writes)
