"""Credentials passed to workers on other machines: the variables that the models of queued runs need, and no others."""

from collections.abc import Iterable, Iterator, Mapping

from pitboss.bootstrap.keys import Values, open_secrets
from pitboss.bootstrap.machine import environment
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.models import catalog
from pitboss.models.endpoint import ENDPOINT
from pitboss.models.routes import route


class _TrackedValues(Mapping[str, str]):
    """A mapping that records which of its values were accessed."""

    def __init__(self, inner: Mapping[str, str]) -> None:
        self._inner = inner
        self.accessed: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        self.accessed[name] = value = self._inner[name]
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._inner)

    def __len__(self) -> int:
        return len(self._inner)


def model_variables(workspace: Workspace, models: Iterable[str]) -> dict[str, str]:
    """The keys and addresses that these models need. Programs and local models need none."""
    variables: dict[str, str] = {}
    for name in sorted(set(models)):
        secrets = open_secrets(workspace.home)
        values = _TrackedValues(Values(environment, secrets, http_hosts=workspace.settings.http_hosts))
        try:
            entry = catalog.describe(name)
            if entry.is_model and name.partition("/")[0] not in (catalog.LOCAL, catalog.REPLAY):
                route(name, values)
        except UserError:
            continue  # the run itself reports what is missing
        variables.update(values.accessed)
    return variables


def models_in_queue(workspace: Workspace) -> set[str]:
    """The models of runs that are queued or being worked on, by the names that were requested."""
    statuses = ("queued", "loading", "running")
    queued = [run for status in statuses for run in workspace.runs.listing(10_000, status).runs]
    return {(run.params.get(ENDPOINT) or {}).get("requested", run.model) for run in queued}
