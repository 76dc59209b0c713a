"""Our nouns → what pydantic-ai's model classes take: messages, tools, settings and the kind of answer.

Nothing is added to the system prompt. The model classes are called below pydantic-ai's agent, which is the layer that
would add a sentence of its own. Reading replies is `hear`'s business.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from pitboss.core import codec, ports

MAX_TOKENS = 4_096
"""Sent where the skill names no bound: the worst case of every call must be known."""
NOTHING = "(nothing)"
"""A result without text; Anthropic takes no empty ones."""

Form = Literal["free", "forced", "only", "schema", "asked"]
"""How the answer is shaped.

    free     any offered tool, or text
    forced   the provider makes the model call the named tool
    only     the named tool is all there is to call, but it may still be text (nothing better is to be had)
    schema   the provider makes the text JSON of the named tool's arguments
    asked    the model is asked for such JSON in words, for models whose provider cannot hold them to it
"""


@dataclass(frozen=True, slots=True)
class Ability:
    """What the chosen model can be made to do."""

    forces: bool
    """A named tool can be forced in this request, with this much reasoning."""
    schemas: bool
    tools_beside_schema: bool


@dataclass(frozen=True, slots=True)
class EncodedRequest:
    """One request in pydantic-ai's words. `call` names the tool that JSON text stands for, empty for none."""

    messages: list[ModelMessage]
    parameters: ModelRequestParameters
    settings: dict[str, Any]
    call: str = ""


def plan(request: ports.ModelRequest, ability: Ability, settings: Mapping[str, Any]) -> EncodedRequest:
    """A request as it is sent. `settings` are the provider's own; the choice of tools is added here."""
    form = form_of(request, ability)
    chosen = dict(settings)
    tools = [_tool(spec) for spec in request.tools]
    spec = _asked_for(request)
    output: OutputObjectDefinition | None = None
    if form == "forced" and request.must_call:
        chosen["tool_choice"] = [request.must_call]
    elif form == "only":
        tools = [tool for tool in tools if tool.name == request.must_call]
    elif form in ("schema", "asked"):
        # The tools stay where they may: a history with calls in it is only read beside them, and so does the cache.
        tools = tools if form == "asked" or ability.tools_beside_schema else []
        if tools:
            chosen["tool_choice"] = "none"
        if form == "schema" and spec is not None:
            output = OutputObjectDefinition(json_schema=dict(spec.schema), name=spec.name, description=spec.description)
    words = _ask_in_words(spec) if form == "asked" and spec is not None else ""
    return EncodedRequest(
        messages=messages_of(request, words),
        parameters=ModelRequestParameters(
            function_tools=tools,
            output_mode="native" if output is not None else "text",
            output_object=output,
            allow_text_output=True,
        ),
        settings=chosen,
        call=request.must_call or "" if request.answer == "call" and form == "schema" else "",
    )


def form_of(request: ports.ModelRequest, ability: Ability) -> Form:
    """The strongest form the model can be held to."""
    if request.answer == "schema" and _asked_for(request) is not None:
        return "schema" if ability.schemas else "asked"
    if not request.must_call:
        return "free"
    if ability.forces:
        return "forced"
    return "schema" if ability.schemas else "only"


def _asked_for(request: ports.ModelRequest) -> ports.ToolSpec | None:
    """The tool whose arguments are wanted; without a name, the last one, which is where the terminal tool stands."""
    named = [spec for spec in request.tools if spec.name == request.must_call]
    return named[0] if named else request.tools[-1] if request.tools else None


def _ask_in_words(spec: ports.ToolSpec) -> str:
    schema = codec.dumps(dict(spec.schema)).decode()
    return f"Answer with one JSON object and nothing else: the arguments of {spec.name}, by this JSON Schema.\n{schema}"


def _tool(spec: ports.ToolSpec) -> ToolDefinition:
    return ToolDefinition(name=spec.name, parameters_json_schema=dict(spec.schema), description=spec.description)


# The conversation ---------------------------------------------------------------------------------------------------


def messages_of(request: ports.ModelRequest, last_words: str = "") -> list[ModelMessage]:
    """The conversation so far; neighbouring turns of ours become one, as the providers want it."""
    said: list[ModelMessage] = []
    ours: list[ModelRequestPart] = [SystemPromptPart(request.system)] if request.system else []
    open_calls: Mapping[str, str] = {}
    for message in request.messages:
        if message.role == "assistant":
            if ours:
                said.append(ModelRequest(ours))
                ours = []
            turn = _turn(message)
            open_calls = {part.tool_call_id: part.tool_name for part in turn.parts if isinstance(part, ToolCallPart)}
            if turn.parts:
                said.append(turn)
        elif message.role == "tool" and message.call_id in open_calls:
            name = message.name or open_calls[message.call_id]
            ours.append(ToolReturnPart(name, message.text or NOTHING, message.call_id))
        else:
            ours.append(UserPromptPart(message.text))
    if last_words:
        ours.append(UserPromptPart(last_words))
    if ours:
        said.append(ModelRequest(ours))
    return said


def _turn(message: ports.Message) -> ModelResponse:
    """The model's own turn: as it gave it, where it did, else rebuilt from its text and calls."""
    if message.state:
        try:
            kept = ModelMessagesTypeAdapter.validate_json(message.state)
        except ValidationError:
            kept = []  # another provider's: what it means is in the text and the calls
        if len(kept) == 1 and isinstance(kept[0], ModelResponse):
            return kept[0]
    parts: Sequence[TextPart | ToolCallPart] = (
        *([TextPart(message.text)] if message.text else []),
        *(ToolCallPart(call.name, call.arguments or "{}", call.id) for call in message.calls),
    )
    return ModelResponse(parts=list(parts))
