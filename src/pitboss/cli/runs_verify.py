"""`runs verify`: reports damage as findings, even if the database cannot be opened because of it."""

from pitboss.core.errors import UserError
from pitboss.runs.verification import RunVerification, is_damage, verify_stored
from pitboss.terminal.workspace_options import WorkspaceOptions


def verify_here(location: WorkspaceOptions, run: str) -> RunVerification:
    """Verify a run of the workspace that the options name."""
    try:
        workspace = location.existing_workspace()
    except UserError as error:
        if is_damage(error):
            return RunVerification(run, None, [error.message])
        raise
    with workspace:
        return verify_stored(workspace, run)
