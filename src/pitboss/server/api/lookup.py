"""Find what the path of a request names, or answer 404."""

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.server.problem import Problem
from pitboss.store.runs import Run


def named_run(workspace: Workspace, run_id: str) -> Run:
    """The run with an id, or the only one whose id starts with it."""
    try:
        return workspace.runs.get(run_id)
    except UserError as error:
        raise Problem(404, "not_found", error.message, error.hint) from None


def named_study(workspace: Workspace, study_id: str) -> str:
    """The full id of a study, given all of it or its start."""
    try:
        return workspace.studies.find(study_id)
    except UserError as error:
        raise Problem(404, "not_found", error.message, error.hint) from None
