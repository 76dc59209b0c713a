"""Writes a model request for OpenAI's Responses protocol.

Nothing is stored at the provider: the model's reasoning comes back encrypted with each reply and is sent again with the
next request of the tick, as the provider asks for models that reason between calls.
"""

import hashlib
from typing import Any

from pitboss.core import codec
from pitboss.core.ports import ModelRequest, ToolSpec
from pitboss.models.chat.wire import is_strict
from pitboss.models.native.answer_form import AnswerForm, NativeForm, answer_form, reasoning_level
from pitboss.models.native.conversation import ModelTurn, turns
from pitboss.models.token_bounds import token_limit

PROVIDER = "responses"
ENCRYPTED_REASONING = "reasoning.encrypted_content"


def form_of(request: ModelRequest, form: NativeForm) -> AnswerForm:
    """How the model is made to answer a request."""
    return answer_form(request, form.can_force, form.has_schemas, has_tools_with_schema=True)


def body(request: ModelRequest, model: str, form: NativeForm) -> dict[str, Any]:
    """The request as plain JSON values."""
    answer = form_of(request, form)
    document: dict[str, Any] = {
        "model": model,
        "input": _input(request, answer.prompt, form.has_thinking),
        "max_output_tokens": token_limit(request.settings),
        "store": False,
        "stream": False,
    }
    system = codec.printable(request.system)
    if system:
        document["instructions"] = system
        # Requests with the same beginning reach the same server, whose cache holds it.
        document["prompt_cache_key"] = hashlib.sha256(system.encode()).hexdigest()[:32]
    if form.has_thinking:
        document["include"] = [ENCRYPTED_REASONING]
    if answer.tools:
        document["tools"] = [_tool(tool) for tool in answer.tools]
        document["tool_choice"] = _tool_choice(request, answer)
    if answer.output is not None:
        document["text"] = {
            "format": {
                "type": "json_schema",
                "name": answer.output.name,
                "schema": answer.output.schema,
                "strict": is_strict(answer.output.schema),
            }
        }
    if reasoning_level(request):
        document["reasoning"] = {"effort": reasoning_level(request)}
    if request.settings.get("temperature") is not None:
        document["temperature"] = request.settings["temperature"]
    return document


def _tool(tool: ToolSpec) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.schema,
        "strict": is_strict(tool.schema),
    }


def _tool_choice(request: ModelRequest, answer: AnswerForm) -> object:
    if answer.kind == "forced":
        return {"type": "function", "name": request.must_call}
    return "none" if answer.kind in ("schema", "prompted") else "auto"


def _input(request: ModelRequest, prompt: str, has_reasoning: bool) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for turn in turns(request, PROVIDER, prompt):
        if isinstance(turn, ModelTurn):
            items += _model_items(turn, has_reasoning)
            continue
        items += [
            {"type": "function_call_output", "call_id": result.call_id, "output": codec.printable(result.text)}
            for result in turn.results
        ]
        items += [{"role": "user", "content": codec.printable(text)} for text in turn.texts if text]
    return items


def _model_items(turn: ModelTurn, has_reasoning: bool) -> list[dict[str, Any]]:
    if turn.content:
        kept = [item for item in turn.content if has_reasoning or item.get("type") != "reasoning"]
        while kept and kept[-1].get("type") == "reasoning":
            kept.pop()  # refused by the provider without the item that followed it
        return kept
    message = turn.message
    items: list[dict[str, Any]] = []
    if message.text:
        items.append({"role": "assistant", "content": codec.printable(message.text)})
    return items + [
        {
            "type": "function_call",
            "call_id": call.id,
            "name": codec.printable(call.name),
            "arguments": codec.printable(call.arguments) or "{}",
        }
        for call in message.calls
    ]
