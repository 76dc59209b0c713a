"""Import a checked bundle into a workspace. The format is defined in `bundle.py`, the checks are in `check_bundle.py`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path

from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.runs.bundle import MONEY, SKILL, STATE, AnswerLine, Bundle, BundleRun
from pitboss.runs.check_bundle import check_contents
from pitboss.runs.stored import journal_of
from pitboss.store.answers import StoredReply, read_reply
from pitboss.store.import_run import insert_run
from pitboss.store.runs import Run


@dataclass(frozen=True, slots=True)
class ImportedBundle:
    """The result of importing a bundle."""

    run_id: str
    new: bool
    answers: int


@contextmanager
def open_checked(path: Path) -> Iterator[Bundle]:
    """Open a bundle that passes every check; otherwise raise a one-line `UserError`."""
    with Bundle(path) as bundle:
        problems = check_contents(bundle).problems
        if problems:
            raise UserError(
                f"{path} fails its checks: {problems[0]}",
                "`pitboss runs verify FILE` lists every problem; ask for the file again",
            )
        yield bundle


def import_bundle(workspace: Workspace, bundle: Bundle, with_answers: bool = True) -> ImportedBundle:
    """Import the run of a bundle from `open_checked` into a workspace."""
    run = bundle.manifest.run
    existing = workspace.runs.get_or_none(run.id)
    if existing is not None:
        if _is_same(workspace, existing, bundle):
            return ImportedBundle(run.id, new=False, answers=0)
        raise UserError(f"the workspace has another run {run.id}", "delete that one, or use another --home")
    skill = bundle.manifest.skill
    saved = workspace.skills.save(skill.name, skill.digest, bundle.read(SKILL))
    row = _run(run, saved.id, saved.version, workspace.owner)
    count = 0

    def replies() -> Iterator[StoredReply]:
        nonlocal count
        for line in bundle.answers() if with_answers else ():
            count += 1
            yield _stored_reply(line)

    insert_run(workspace.database, row, bundle.records(), codec.loads(bundle.read(STATE)), replies())
    return ImportedBundle(run.id, new=True, answers=count)


def _is_same(workspace: Workspace, existing: Run, bundle: Bundle) -> bool:
    run = bundle.manifest.run
    if (existing.status, existing.digest, existing.metrics) != (run.status, run.digest, run.metrics):
        return False
    stored = (record.digest for record in journal_of(workspace, existing).records())
    return all(first == second for first, second in zip_longest(stored, (record.digest for record in bundle.records())))


def _run(row: BundleRun, skill_id: str, skill_version: int, owner: str) -> Run:
    values = row.model_dump()
    values.update({name: Decimal(values[name]) for name in MONEY})
    return Run(
        **values,
        skill_id=skill_id,
        skill_version=skill_version,
        report=None,
        heartbeat_at=None,
        lease_epoch=1,
        cancel_requested=False,
        owner=owner,
    )


def _stored_reply(line: AnswerLine) -> StoredReply:
    cost = None if line.cost_usd is None else Decimal(line.cost_usd)
    return StoredReply(line.key, line.model, line.run_id, cost, line.created_at, read_reply(line.reply.encode()))
