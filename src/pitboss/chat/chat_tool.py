"""`ChatTool`: one tool of the chat, its result fenced as data, with what the answer may cite beside it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pitboss.chat.context import ReadContext, failure
from pitboss.core import codec
from pitboss.core.errors import InvariantError, UserError
from pitboss.core.ports import ToolSpec
from pitboss.tools import arguments as shape
from pitboss.tools.data_fence import fence

MOST_CHARS = 10_000
"""The longest result that is given to the model."""
MOST_CITATIONS = 30

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolFinding:
    """What a tool found, and the citations of it."""

    text: str
    cites: Sequence[str] = ()


Find = Callable[[ReadContext, Mapping[str, Any]], ToolFinding | Awaitable[ToolFinding]]


@dataclass(slots=True)
class ChatTool:
    """A tool bound to what one question may read."""

    spec: ToolSpec
    context: ReadContext
    find: Find

    async def call(self, arguments: Any) -> str:
        """Check the arguments, look, and fence what was found. The citations stand outside of the fence: they are ours."""
        checked = shape.check(self.spec.schema, arguments)
        try:
            result = self.find(self.context, checked)
            finding = result if isinstance(result, ToolFinding) else await result
        except (UserError, InvariantError) as error:
            raise failure(error) from None
        return fenced(self.spec.name, finding)


def fenced(name: str, finding: ToolFinding) -> str:
    """A finding as the model is given it."""
    cites = list(dict.fromkeys(finding.cites))
    lines = [fence(name, codec.printable(finding.text), MOST_CHARS)]
    if cites:
        more = f" (and {len(cites) - MOST_CITATIONS} more)" if len(cites) > MOST_CITATIONS else ""
        lines.append(f"cite as {' '.join(cites[:MOST_CITATIONS])}{more}")
    return "\n".join(lines)


def text(about: str, most: int, least: int = 0) -> Schema:
    """The schema of a text argument."""
    return {"type": "string", "minLength": least, "maxLength": most, "description": about}


def schema(required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    """The schema of the arguments of a tool. A trailing underscore of a name is left out."""
    return {
        "type": "object",
        "properties": {name.rstrip("_"): part for name, part in properties.items()},
        "required": list(required),
        "additionalProperties": False,
    }


RUN = text("A run's id, the start of it, or `last`; left out: the run that the conversation is about.", 64)
TICK = text("A tick's time (UTC), such as 2025-01-21T04:00:00Z, or -2d before the end of the run.", 40)
