"""Prints a list of checks, as a table or as JSON."""

from collections.abc import Sequence

from pitboss.runs.checklist import Check, checklist_document
from pitboss.terminal import screen


def put_checklist(checks: Sequence[Check], json: bool) -> int:
    """Print the checks; returns the exit code, 1 if one of them failed."""
    document = checklist_document(checks)
    if json:
        screen.put_json(document)
    else:
        cells = [(check.name, "yes" if check.ok else "no", check.detail) for check in checks]
        screen.put_table(("check", "ok", "detail"), cells, folds=(2,))
    return 0 if document["ok"] else 1
