"""A tool of another program as a simulation has it: it answers with what was recorded by then, and asks nobody.

The answer is the newest one to exactly the same arguments that was known at the tick. Where there is none it says so,
and how many answers to other arguments there are, so that nobody takes silence for an answer. It never connects.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from pitboss.core import codec
from pitboss.core.errors import ToolFailed
from pitboss.core.instant import Instant, iso
from pitboss.core.past import Recordings
from pitboss.core.ports import ToolSpec
from pitboss.tools.data_fence import LIMIT, fence

MAX_ARGUMENT_BYTES = 16_384


class Counted(Recordings, Protocol):
    """Recordings that can say how many there are."""

    def count(self, server: str, tool: str, by: Instant) -> int:
        """How many answers of a tool, to whatever arguments, were known by `by`."""
        ...


@dataclass(slots=True)
class RecordedTool:
    """One tool of a server at one tick."""

    spec: ToolSpec
    server: str
    tool: str
    recordings: Counted
    at: Instant

    async def call(self, arguments: Any) -> str:
        """The newest answer known now, fenced as data, with its time in front of it."""
        if not isinstance(arguments, dict):
            raise ToolFailed("the arguments must be a JSON object")
        try:
            asked = canonical(arguments)
        except (TypeError, ValueError, ArithmeticError, RecursionError):
            raise ToolFailed("the arguments are not JSON that can be sent") from None
        size = len(asked.encode("utf-8", "replace"))
        if size > MAX_ARGUMENT_BYTES:  # as it would be refused where a server is asked
            raise ToolFailed(f"the arguments are {size} bytes long; at most {MAX_ARGUMENT_BYTES}")
        found = self.recordings.latest(self.server, self.tool, asked, self.at)
        if found is None:
            others = self.recordings.count(self.server, self.tool, self.at)
            also = f"; {others} answers to other arguments were" if others else ""
            raise ToolFailed(f"no answer of {self.spec.name} to these arguments was recorded by {iso(self.at)}{also}")
        text = f"recorded at {iso(found.known_at)}\n{fence(self.spec.name, found.result, LIMIT)}"
        if found.failed:
            raise ToolFailed(text)
        return text


def canonical(arguments: Any) -> str:
    """The arguments of a call as recordings are found by them: canonical JSON with exact numbers."""
    written = codec.dumps(codec.number_fragments(arguments))
    # Read again, because a number that came as a float is written in another way than the same one that came as text.
    return codec.dumps(codec.number_fragments(codec.loads_exact(written))).decode()
