"""`runs verify`: reports damage as findings, even if the database cannot be read because of it."""

from pitboss.core.errors import InvariantError, UserError
from pitboss.runs.run import verify
from pitboss.store.verify import verify_run
from pitboss.terminal.workspace_options import WorkspaceOptions

FULL_ID = 12


def verify_stored(location: WorkspaceOptions, run: str) -> tuple[str, str | None, list[str]]:
    """The run's id, its digest, and every difference found."""
    try:
        workspace = location.existing_workspace()
    except UserError as error:
        if _damaged(error):
            return run, None, [error.message]
        raise
    with workspace:
        try:
            run_id = workspace.runs.find(run)
        except UserError as error:
            if _damaged(error):
                return run, None, [error.message]
            problems = [line for line in verify_run(workspace.database, run) if "damaged" in line]
            if problems and len(run) >= FULL_ID:  # the id itself may have been changed
                return run, None, problems
            raise
        problems = verify(workspace, run_id)
        try:
            digest = workspace.runs.get(run_id).digest
        except (UserError, InvariantError):
            digest = None
        return run_id, digest, problems


def _damaged(error: UserError) -> bool:
    return any(word in error.message for word in ("damaged", "cannot be used", "is not a database"))
