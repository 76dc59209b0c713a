"""How a model is made to answer: the strongest of the forms that the request needs and the model accepts."""

from typing import Literal

from pitboss.core import codec
from pitboss.core.noun import noun
from pitboss.core.ports import ModelRequest, ToolSpec

Kind = Literal["free", "forced", "only", "schema", "prompted"]
"""The kinds of forms.

    free      any offered tool, or text
    forced    the provider makes the model call the named tool
    only      the named tool is the only one offered, but the model may still reply with text
    schema    the provider makes the text JSON of the named tool's arguments
    prompted  the model is asked for such JSON in a message, where the provider cannot enforce it
"""


@noun
class NativeForm:
    """What requests may contain. It becomes less for the whole life of a client where the provider rejects something.

    Without forcing, the model is offered only the tool that it has to call. Without schemas it gets the schema described
    in a message. Without thinking the model's own thinking is not sent back: some models bind it to the tools of the
    request, which change with the last step of a tick. Without cache marks nothing is marked for the provider's cache.
    """

    can_force: bool = True
    has_schemas: bool = True
    has_thinking: bool = True
    has_cache_marks: bool = True


@noun
class AnswerForm:
    """The form of one request. `call` names the tool that JSON text stands for; `prompt` is a message added at the end."""

    kind: Kind
    tools: tuple[ToolSpec, ...]
    output: ToolSpec | None = None
    call: str = ""
    prompt: str = ""


def answer_form(request: ModelRequest, can_force: bool, has_schemas: bool, has_tools_with_schema: bool) -> AnswerForm:
    """The form for a request, given what the model accepts with these settings."""
    spec = _target(request)
    kind = _kind(request, spec, can_force, has_schemas)
    if kind == "only":
        return AnswerForm(kind, tuple(tool for tool in request.tools if tool.name == request.must_call))
    if kind not in ("schema", "prompted") or spec is None:
        return AnswerForm(kind, request.tools)
    # The tools stay where they may: a history with calls is only read together with them, and the cache covers them.
    tools = request.tools if kind == "prompted" or has_tools_with_schema else ()
    if kind == "prompted":
        return AnswerForm(kind, tools, prompt=_prompt(spec))
    call = request.must_call or "" if request.answer == "call" else ""
    return AnswerForm(kind, tools, spec, call)


def _kind(request: ModelRequest, spec: ToolSpec | None, can_force: bool, has_schemas: bool) -> Kind:
    if request.answer == "schema" and spec is not None:
        return "schema" if has_schemas else "prompted"
    if not request.must_call:
        return "free"
    if can_force:
        return "forced"
    return "schema" if has_schemas else "only"


def _target(request: ModelRequest) -> ToolSpec | None:
    """The tool whose arguments are wanted; without a name the last one, which is the terminal tool."""
    matches = [spec for spec in request.tools if spec.name == request.must_call]
    return matches[0] if matches else request.tools[-1] if request.tools else None


def _prompt(spec: ToolSpec) -> str:
    schema = codec.dumps(dict(spec.schema)).decode()
    return f"Answer with one JSON object and nothing else: the arguments of {spec.name}, by this JSON Schema.\n{schema}"


def reasoning_level(request: ModelRequest) -> str:
    """The requested reasoning: `none`, a level, or empty for the provider's default."""
    return str(request.settings.get("reasoning") or "")
