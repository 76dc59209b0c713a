"""Writes a model request for Anthropic's messages, with cache marks on the system prompt and the last tool."""

from typing import Any

from pitboss.core import codec
from pitboss.core.ports import ModelRequest
from pitboss.models.native.answer_form import AnswerForm, NativeForm, answer_form, reasoning_level
from pitboss.models.native.capabilities import AnthropicCapabilities
from pitboss.models.native.conversation import ModelTurn, arguments_object, turns
from pitboss.models.native.schemas import anthropic_output_schema, anthropic_tool_schema
from pitboss.models.token_bounds import token_limit

PROVIDER = "anthropic"
CACHE_MARK = {"type": "ephemeral", "ttl": "5m"}
BUDGETS = {"minimal": 1_024, "low": 2_048, "medium": 10_000, "high": 16_384}
SMALLEST_BUDGET = 1_024
"""The smallest thinking budget that the provider accepts."""
EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high"}
MOST_TEMPERATURE = 1.0
"""The provider's scale ends at 1."""


def form_of(request: ModelRequest, model: AnthropicCapabilities, form: NativeForm) -> AnswerForm:
    """How the model is made to answer.

    With budgeted thinking a forced call is an error; with adaptive thinking it ends the thinking, which is still better
    than an answer in text, so it is used where the model has no schemas.
    """
    can_force = form.can_force and model.has_forced_tools
    if is_thinking(request, model):
        can_force = can_force and model.has_adaptive_thinking and not model.has_schemas
    return answer_form(request, can_force, model.has_schemas and form.has_schemas, has_tools_with_schema=True)


def body(
    request: ModelRequest, name: str, model: AnthropicCapabilities, form: AnswerForm, has_thinking: bool = True
) -> dict[str, Any]:
    """The request as plain JSON values.

    `name` is the model's name on the wire; without `has_thinking` its earlier thinking is not sent back.
    """
    document: dict[str, Any] = {"model": name, "max_tokens": token_limit(request.settings), "stream": False}
    document["messages"] = _messages(request, form.prompt, has_thinking)
    if request.system:
        document["system"] = [_text(request.system) | {"cache_control": CACHE_MARK}]
    if form.tools:
        document["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": anthropic_tool_schema(tool.schema)}
            for tool in form.tools
        ]
        document["tools"][-1]["cache_control"] = CACHE_MARK
        document["tool_choice"] = _tool_choice(request, form)
    output: dict[str, Any] = {}
    if form.output is not None:
        output["format"] = {"type": "json_schema", "schema": anthropic_output_schema(form.output.schema)}
    thinking = thinking_setting(request, model)
    if thinking is not None:
        document["thinking"] = thinking
        if thinking["type"] == "adaptive" and model.has_effort:
            output["effort"] = EFFORTS.get(reasoning_level(request), "low")
    if output:
        document["output_config"] = output
    temperature = request.settings.get("temperature")
    if temperature is not None and model.has_sampling and not is_thinking(request, model):
        document["temperature"] = min(MOST_TEMPERATURE, float(temperature))
    return document


def _tool_choice(request: ModelRequest, form: AnswerForm) -> dict[str, Any]:
    if form.kind == "forced":
        return {"type": "tool", "name": request.must_call} if len(form.tools) > 1 else {"type": "any"}
    return {"type": "none"} if form.kind in ("schema", "prompted") else {"type": "auto"}


def is_thinking(request: ModelRequest, model: AnthropicCapabilities) -> bool:
    """Whether the request asks for thinking and has room for it."""
    return reasoning_level(request) not in ("", "none") and thinking_setting(request, model) is not None


def thinking_setting(request: ModelRequest, model: AnthropicCapabilities) -> dict[str, Any] | None:
    """The setting for a level of reasoning; None where there is none, or the limit of tokens leaves no room."""
    level = reasoning_level(request)
    if level == "none":
        return {"type": model.off} if model.off else None
    if not level:
        return None
    if model.has_adaptive_thinking:
        return {"type": "adaptive"}
    # The budget is part of max_tokens and must leave room for the answer.
    budget = min(BUDGETS.get(level, SMALLEST_BUDGET), token_limit(request.settings) // 2)
    return None if budget < SMALLEST_BUDGET else {"type": "enabled", "budget_tokens": budget}


def _messages(request: ModelRequest, prompt: str, has_thinking: bool) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for turn in turns(request, PROVIDER, prompt):
        if isinstance(turn, ModelTurn):
            role, content = "assistant", _model_content(turn, has_thinking)
        else:
            role = "user"
            content = [
                {
                    "type": "tool_result",
                    "tool_use_id": result.call_id,
                    "content": [_text(result.text)],
                    "is_error": False,
                }
                for result in turn.results
            ]
            content += [_text(text) for text in turn.texts if text]
        if content:
            messages.append({"role": role, "content": content})
    return messages


def _model_content(turn: ModelTurn, has_thinking: bool) -> list[dict[str, Any]]:
    if turn.content:
        blocks = [block for block in turn.content if block.get("type") != "text" or block.get("text")]
        blocks = [block for block in blocks if has_thinking or "thinking" not in str(block.get("type"))]
        return [
            block | {"input": arguments_object(block.get("input"))} if block.get("type") == "tool_use" else block
            for block in blocks
        ]
    message = turn.message
    calls = [
        {
            "type": "tool_use",
            "id": call.id,
            "name": codec.printable(call.name),
            "input": arguments_object(call.arguments),
        }
        for call in message.calls
    ]
    return [*([_text(message.text)] if message.text else []), *calls]


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": codec.printable(text)}
