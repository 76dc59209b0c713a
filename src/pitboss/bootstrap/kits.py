"""What a run needs of its venue, from its request to its metrics. A venue is chosen by its skill's `venue`, here only.

A kit is a module: `venues/perp/kit.py`, `venues/predict/kit.py`. Everything else in `bootstrap` that begins, goes on
with, verifies or shows a run asks for the kit and knows no venue. What is enough to list runs is a module of its own, the
form: loading a whole kit takes longer than listing.
"""

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from pitboss.bootstrap.mcp_tools import Offered
    from pitboss.bootstrap.settings import Settings
    from pitboss.bootstrap.workspace import Workspace
    from pitboss.core.instant import Instant
    from pitboss.core.receipt import Receipt
    from pitboss.core.snapshot import Record
    from pitboss.core.state import State
    from pitboss.data.lake import Lake
    from pitboss.sim.outcome import Ledger
    from pitboss.sim.request import PreparedRun
    from pitboss.store.runs import Run
    from pitboss.venues.perp.preview import Preview

MODULES = {"perp": "pitboss.venues.perp.kit", "predict": "pitboss.venues.predict.kit"}
FORMS = {"perp": "pitboss.venues.perp.form", "predict": "pitboss.venues.predict.form"}


class Form(Protocol):
    """The part of a kit that is enough to show a stored run: it loads no market, no engine and no agent."""

    def request_of(self, params: Mapping[str, Any]) -> Any:
        """The request that was stored with a run."""
        ...

    def realism(self, request: Any) -> dict[str, dict[str, str]]:
        """What makes the fills of a run more or less real."""
        ...


class Kit(Form, Protocol):
    """One venue's side of a run."""

    def new_request(self, **fields: Any) -> Any:
        """A request with the venue's own defaults where nothing is said."""
        ...

    def read_skill(self, plain: Mapping[str, Any]) -> Any:
        """A skill from its plain document. Raises `UserError`."""
        ...

    def assemble(self, request: Any, lake: "Lake", settings: "Settings") -> "PreparedRun":
        """Check a request against the data and build what the replay needs. Raises `UserError` before any work."""
        ...

    def preview(
        self,
        request: Any,
        lake: "Lake",
        settings: "Settings",
        at: "Instant | None" = None,
        outside: "Offered | None" = None,
    ) -> "Preview":
        """What a model would be given at a tick, the first of its run; at the newest that has data unless `at` says.

        `outside` is what the skill's MCP servers offer.
        """
        ...

    def params(self, assembly: Any) -> dict[str, Any]:
        """What is stored with a run besides its skill."""
        ...

    def notes(self, assembly: Any) -> list[str]:
        """What a person is told when the run begins."""
        ...

    def first_state(self, script: Any) -> "State": ...

    def read_state(self, plain: object) -> "State": ...

    def read_ledger(self, records: "Iterable[Record]") -> "Ledger":
        """What stored records say; of none, an empty ledger to be filled."""
        ...

    def measure(self, assembly: Any, ledger: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Metrics of a run and of its baselines."""
        ...

    def measure_again(self, params: Mapping[str, Any], ledger: Any) -> dict[str, Any]:
        """The metrics from what is stored alone, without the data."""
        ...

    def span(self, params: Mapping[str, Any]) -> "tuple[Instant, Instant, int]":
        """The first tick, the end, and the time between two points of equity."""
        ...

    def changed_course(self, one: Any, other: Any) -> str:
        """What two scripts over the same ticks do not share, if they are no one course; empty if they are."""
        ...

    def fills(self, receipts: "Iterable[Receipt]") -> Iterator[dict[str, Any]]:
        """Fills in the public export form."""
        ...

    def page(self, workspace: "Workspace", run: "Run") -> str:
        """The report."""
        ...


def kit_of(skill: Mapping[str, Any]) -> Kit:
    """The kit of a skill's venue. A document that names none is one of the perp venue."""
    return cast("Kit", _chosen(MODULES, skill))


def form_of(skill: Mapping[str, Any]) -> Form:
    """The form of a skill's venue, chosen in the same way."""
    return cast("Form", _chosen(FORMS, skill))


def _chosen(modules: Mapping[str, str], skill: Mapping[str, Any]) -> object:
    return import_module(modules.get(str(skill.get("venue") or "perp"), modules["perp"]))
