"""Verify a stored run and report damage as a finding, even where the run cannot be read because of it."""

from dataclasses import dataclass

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import InvariantError, UserError
from pitboss.runs.run import verify
from pitboss.store.verify import verify_run

FULL_ID = 12


@dataclass(frozen=True, slots=True)
class RunVerification:
    """The run's id, its digest (None if it has none yet or cannot be read), and every difference found."""

    run_id: str
    digest: str | None
    problems: list[str]


def verify_stored(workspace: Workspace, run: str) -> RunVerification:
    """Verify the run that `Runs.find` finds. Raises `UserError` if there is none."""
    try:
        run_id = workspace.runs.find(run)
    except UserError as error:
        if is_damage(error):
            return RunVerification(run, None, [error.message])
        # A workspace of one owner does not look further: the damaged row may be of another.
        problems = [] if workspace.only else [line for line in verify_run(workspace.database, run) if "damaged" in line]
        if problems and len(run) >= FULL_ID:  # the id itself may have been changed
            return RunVerification(run, None, problems)
        raise
    problems = verify(workspace, run_id)
    try:
        digest = workspace.runs.get(run_id).digest
    except (UserError, InvariantError):
        digest = None
    return RunVerification(run_id, digest, problems)


def is_damage(error: UserError) -> bool:
    """Whether an error says that stored data is damaged, rather than that a request is wrong."""
    return any(words in error.message for words in ("damaged", "cannot be used", "is not a database"))
