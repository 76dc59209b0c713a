"""`ReadContext`: everything that a tool of the chat can reach. There is no broker, no queue and no way to write in it.

The workspace is opened for reading, so its database refuses writes whatever is called on it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace, look_into
from pitboss.core.errors import ToolFailed, UserError
from pitboss.runs.indexed_runs import stored_index
from pitboss.runs.run_index import RunIndex
from pitboss.store.runs import Run
from pitboss.tools.define import ToolContext

MOST_CONTEXTS = 8


@dataclass(frozen=True, slots=True)
class ReadContext:
    """A workspace for reading, bounded to one owner, and the run that the conversation is about."""

    workspace: Workspace
    owner: str
    about: str = ""
    """The id of the run; empty for the whole workspace."""
    ticks: dict[tuple[str, int | None], ToolContext] = field(
        default_factory=dict[tuple[str, "int | None"], ToolContext]
    )
    """What the tools of a venue see at a tick of a run: rebuilding it replays the run up to there."""
    indexes: dict[str, RunIndex] = field(default_factory=dict[str, RunIndex])
    """The indexes of the runs that the question was about so far."""

    def run(self, prefix: str = "") -> Run:
        """A run by its id or the start of it; by default the one that the conversation is about."""
        name = prefix or self.about
        if not name:
            raise ToolFailed("this conversation is about no run in particular: give run; list_runs lists them")
        return self.workspace.runs.get(name)

    def index(self, run: Run) -> RunIndex:
        """The decisions of a run in columns: as its file holds them, or read from its records. Nothing is written."""
        if run.id not in self.indexes:
            index = stored_index(self.workspace, run)
            if len(self.indexes) >= MOST_CONTEXTS:
                self.indexes.pop(next(iter(self.indexes)))
            self.indexes[run.id] = index
        return self.indexes[run.id]

    def keep(self, key: tuple[str, int | None], context: ToolContext) -> ToolContext:
        """Keep what was rebuilt for the next calls, within limits."""
        if len(self.ticks) >= MOST_CONTEXTS:
            self.ticks.pop(next(iter(self.ticks)))
        self.ticks[key] = context
        return context


@contextmanager
def reading(settings: Settings, owner: str, about: str = "") -> Iterator[ReadContext]:
    """Open a workspace for the length of one question. An `about` that names no run is refused."""
    with look_into(settings) as workspace:
        own = workspace.owned_by(owner)
        yield ReadContext(own, owner, own.runs.get(about).id if about else "")


def failure(error: Exception) -> ToolFailed:
    """An error as the model is told it."""
    if isinstance(error, UserError):
        return ToolFailed(f"{error.message} ({error.hint})" if error.hint else error.message)
    return ToolFailed(str(error))
