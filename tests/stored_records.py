"""Reads the records of stored runs."""

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.snapshot import Record
from pitboss.runs.stored import journal_of
from pitboss.store.runs import Run


def records_of(workspace: Workspace, run: Run) -> list[Record]:
    return list(journal_of(workspace, run).records())
