"""The way to a first backtest in an empty workspace: the generated market, an example skill, and a run that needs no key."""

from dataclasses import dataclass
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.data.synthetic_marker import DEMO
from pitboss.models import standin
from pitboss.runs import documents
from pitboss.runs.skill_reference import FIRST_EXAMPLE
from pitboss.runs.venues import default_venue

SKILL = f"{FIRST_EXAMPLE}.yaml"
FROM, TO = "2025-01-20", "2025-02-12"


@dataclass(frozen=True, slots=True)
class FirstRun:
    """The skill that is saved, and the request of its first run."""

    skill: str
    version: int

    def request(self) -> dict[str, Any]:
        """The body of `POST /api/runs`."""
        return {"skill": self.skill, "from": FROM, "to": TO, "model": standin.NAME, "data_venue": DEMO}


def example_text() -> str:
    """The text of the example skill."""
    return default_venue().examples()[SKILL]


def prepare_first_run(workspace: Workspace) -> FirstRun:
    """Write the generated market into the lake and save the example skill. Doing it again changes nothing."""
    from pitboss.data.demo import write_demo

    write_demo(workspace.lake)
    text = example_text()
    result = documents.check(text, ".yaml", workspace.settings)
    if result.skill is None:
        raise UserError("the example skill is not valid", "see `pitboss skill check`")
    stored = documents.store(workspace, result.skill, text)
    return FirstRun(stored.name, stored.version)


def first_run(workspace: Workspace) -> FirstRun | None:
    """The prepared first run; None if the market or the skill is not there yet."""
    if DEMO not in workspace.lake.venues("bars"):
        return None
    line = next((line for line in workspace.skills.list() if line.name == FIRST_EXAMPLE), None)
    return None if line is None else FirstRun(line.name, line.latest_version)
