"""Writes a model request for Google's generateContent.

Google's models cache repeated beginnings of a prompt by themselves; the system prompt and the tools come first and stay
the same from tick to tick, so nothing has to be marked.
"""

from typing import Any

from pitboss.core import codec
from pitboss.core.ports import ModelRequest
from pitboss.models.native.answer_form import AnswerForm, NativeForm, answer_form, reasoning_level
from pitboss.models.native.capabilities import GoogleCapabilities
from pitboss.models.native.conversation import ModelTurn, arguments_object, turns
from pitboss.models.native.schemas import google_schema
from pitboss.models.token_bounds import token_limit

PROVIDER = "google"
BUDGETS = {"minimal": 128, "low": 2_048, "medium": 8_192, "high": 24_576}
"""Thinking budgets of the models that have no levels."""
NO_SIGNATURE = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="
"""Sent with a call that came without a signature, from another model: Google then does not check it."""


def form_of(request: ModelRequest, model: GoogleCapabilities, form: NativeForm) -> AnswerForm:
    """How the model is made to answer."""
    return answer_form(request, form.can_force, model.has_schemas and form.has_schemas, model.has_tools_with_schema)


def body(request: ModelRequest, model: GoogleCapabilities, form: AnswerForm) -> dict[str, Any]:
    """The request as plain JSON values."""
    document: dict[str, Any] = {"contents": _contents(request, form.prompt)}
    if request.system:
        document["systemInstruction"] = {"parts": [_text(request.system)], "role": "user"}
    if form.tools:
        declarations = [
            {"name": tool.name, "description": tool.description, "parametersJsonSchema": google_schema(tool.schema)}
            for tool in form.tools
        ]
        document["tools"] = [{"functionDeclarations": declarations}]
        document["toolConfig"] = {"functionCallingConfig": _calling(request, model, form)}
    config: dict[str, Any] = {"maxOutputTokens": token_limit(request.settings), "responseModalities": ["TEXT"]}
    for name in ("temperature", "seed"):
        if request.settings.get(name) is not None:
            config[name] = request.settings[name]
    if form.output is not None:
        spec = form.output
        config["responseMimeType"] = "application/json"
        about = {"title": spec.name} | ({"description": spec.description} if spec.description else {})
        config["responseJsonSchema"] = google_schema(spec.schema) | about
    thinking = _thinking(request, model)
    if thinking:
        config["thinkingConfig"] = thinking
    document["generationConfig"] = config
    return document


def _calling(request: ModelRequest, model: GoogleCapabilities, form: AnswerForm) -> dict[str, Any]:
    if form.kind == "forced":
        return {"mode": "ANY"} | ({"allowedFunctionNames": [request.must_call]} if len(form.tools) > 1 else {})
    if form.kind in ("schema", "prompted"):
        return {"mode": "NONE"}
    return {"mode": "VALIDATED" if model.has_validated_calls else "AUTO"}


def _thinking(request: ModelRequest, model: GoogleCapabilities) -> dict[str, Any]:
    level = reasoning_level(request)
    if not level or not model.has_thinking:
        return {}
    if model.levels:
        supported = _nearest("minimal" if level == "none" else level, model.levels)
        return ({} if level == "none" else {"includeThoughts": True}) | {"thinkingLevel": supported.upper()}
    if level == "none":
        return {"thinkingBudget": BUDGETS["minimal"] if model.is_always_thinking else 0}
    # Thinking counts against the limit of tokens: half of it is left for the answer.
    budget = max(BUDGETS["minimal"], min(BUDGETS.get(level, BUDGETS["high"]), token_limit(request.settings) // 2))
    return {"includeThoughts": True, "thinkingBudget": budget}


def _nearest(level: str, levels: tuple[str, ...]) -> str:
    """The supported level that is nearest to the requested one; of two, the lower."""
    scale = list(BUDGETS)
    position = scale.index(level) if level in scale else len(scale)
    return min(levels, key=lambda name: (abs(scale.index(name) - position), scale.index(name)))


def _contents(request: ModelRequest, prompt: str) -> list[dict[str, Any]]:
    contents: list[dict[str, Any]] = []
    for turn in turns(request, PROVIDER, prompt):
        if isinstance(turn, ModelTurn):
            contents.append({"role": "model", "parts": _model_parts(turn)})
            continue
        results = [
            {
                "functionResponse": {
                    "id": row.call_id,
                    "name": row.name,
                    "response": {"return_value": codec.printable(row.text)},
                }
            }
            for row in turn.results
        ]
        for parts in (results, [_text(text) for text in turn.texts]):
            if parts:
                contents.append({"role": "user", "parts": parts})
    return contents


def _model_parts(turn: ModelTurn) -> list[dict[str, Any]]:
    message = turn.message
    if turn.content:
        parts = [dict(part) for part in turn.content]
    else:
        parts = [_text(message.text)] if message.text else []
        parts += [
            {
                "functionCall": {
                    "id": call.id,
                    "name": codec.printable(call.name),
                    "args": arguments_object(call.arguments),
                }
            }
            for call in message.calls
        ]
    first = next((part for part in parts if "functionCall" in part), None)
    if first is not None and "thoughtSignature" not in first:
        first["thoughtSignature"] = NO_SIGNATURE
    return parts


def _text(text: str) -> dict[str, Any]:
    return {"text": codec.printable(text)}
