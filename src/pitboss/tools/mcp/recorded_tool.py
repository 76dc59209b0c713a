"""A server's tool in a simulation: it answers from recordings and never connects.

The result is the newest recorded answer to exactly the same arguments that was known at the tick. If there is none, the
failure says so, and how many answers to other arguments exist.
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


class CountedRecordings(Recordings, Protocol):
    """Recordings that can be counted."""

    def count(self, server: str, tool: str, by: Instant) -> int:
        """How many answers of a tool, to any arguments, were known by `by`."""
        ...


@dataclass(slots=True)
class RecordedTool:
    """One tool of a server at one tick."""

    spec: ToolSpec
    server: str
    tool: str
    recordings: CountedRecordings
    at: Instant

    async def call(self, arguments: Any) -> str:
        """The newest answer known at the tick, fenced as data, after a line with its time."""
        if not isinstance(arguments, dict):
            raise ToolFailed("the arguments must be a JSON object")
        try:
            key = canonical(arguments)
        except (TypeError, ValueError, ArithmeticError, RecursionError):
            raise ToolFailed("the arguments are not JSON that can be sent") from None
        size = len(key.encode("utf-8", "replace"))
        if size > MAX_ARGUMENT_BYTES:  # the same limit as for a call to a server
            raise ToolFailed(f"the arguments are {size} bytes long; at most {MAX_ARGUMENT_BYTES}")
        recording = self.recordings.latest(self.server, self.tool, key, self.at)
        if recording is None:
            other_count = self.recordings.count(self.server, self.tool, self.at)
            also = f"; {other_count} answers to other arguments were" if other_count else ""
            raise ToolFailed(f"no answer of {self.spec.name} to these arguments was recorded by {iso(self.at)}{also}")
        text = f"recorded at {iso(recording.known_at)}\n{fence(self.spec.name, recording.result, LIMIT)}"
        if recording.failed:
            raise ToolFailed(text)
        return text


def canonical(arguments: Any) -> str:
    """The key of a recording: the arguments as canonical JSON with exact numbers."""
    data = codec.dumps(codec.number_fragments(arguments))
    # Read and written again, because a float is written differently from the same number read from text.
    return codec.dumps(codec.number_fragments(codec.loads_exact(data))).decode()
