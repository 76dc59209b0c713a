"""What a worker elsewhere is lent: the variables that the models of queued runs are asked with, and no others."""

from collections.abc import Iterable, Iterator, Mapping

from pitboss.bootstrap.keys import Values, open_secrets
from pitboss.bootstrap.machine import environment
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.models import catalog
from pitboss.models.routes import route


class _Read(Mapping[str, str]):
    """Values that remember which of them were asked for and found."""

    def __init__(self, inner: Mapping[str, str]) -> None:
        self._inner = inner
        self.seen: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        self.seen[name] = value = self._inner[name]
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._inner)

    def __len__(self) -> int:
        return len(self._inner)


def loan(workspace: Workspace, models: Iterable[str]) -> dict[str, str]:
    """The keys and addresses that these models need. Programs and models of one machine need none."""
    found: dict[str, str] = {}
    for name in sorted(set(models)):
        read = _Read(Values(environment, open_secrets(workspace.home)))
        try:
            entry = catalog.describe(name)
            if entry.is_model and name.partition("/")[0] not in (catalog.LOCAL, catalog.REPLAY):
                route(name, read)
        except UserError:
            continue  # the run itself will say what is missing
        found.update(read.seen)
    return found


def models_in_queue(workspace: Workspace) -> set[str]:
    """The models of runs that wait for a worker or have one."""
    statuses = ("queued", "loading", "running")
    return {run.model for status in statuses for run in workspace.runs.look(10_000, status).runs}
