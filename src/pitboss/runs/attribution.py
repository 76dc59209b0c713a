"""Simulation against live: the difference between a deployment and the paper world with the same decisions, explained by trade.

A venue replays the decisions of a span and matches the trades (`Venue.attribution`); this module finds the deployment, checks the
span, and writes the document for commands, pages and reports. It is kept in the cache of the workspace: a span whose records and data are
the same as the last time is not replayed again.
"""

from collections.abc import Callable
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.core.instant import BeforeEnd, Instant, resolved
from pitboss.runs import run_files
from pitboss.runs.attribution_result import Attribution, document_of
from pitboss.runs.venues import venue_named
from pitboss.store.deployments import Deployment
from pitboss.store.recent_records import newest, newest_records
from pitboss.store.retry import Unreachable


def attribute(
    workspace: Workspace, deployment: Deployment, from_at: Instant, to_at: Instant, data_venue: str = ""
) -> Attribution:
    """Replay the decisions of `[from_at, to_at)` on paper and explain the difference."""
    if to_at <= from_at:
        raise UserError("the span is empty: --to is not after --from", "swap them, or choose a later --to")
    run = workspace.runs.get(deployment.run_id)
    return venue_named(deployment.venue).attribution(workspace, run, (from_at, to_at), data_venue)


def attribution_document(
    workspace: Workspace,
    deployment: str | Deployment,
    from_: Instant | BeforeEnd | None = None,
    to: Instant | BeforeEnd | None = None,
    data_venue: str = "",
) -> dict[str, Any]:
    """Return the difference of a span as a plain document; without limits, that of everything recorded.

    A time such as `-7d` is counted back from the last record.
    """
    stored = workspace.deployments.get(deployment) if isinstance(deployment, str) else deployment
    first, end = whole_span(workspace, stored)
    begins = first if from_ is None else resolved(from_, lambda: end)
    ends = end if to is None else resolved(to, lambda: end)
    name = f"attribution-{codec.digest([str(from_), str(to), data_venue])[:16]}"
    return _kept(
        workspace, stored, (begins, ends), name, lambda: _computed(workspace, stored, begins, ends, data_venue)
    )


def _computed(
    workspace: Workspace, deployment: Deployment, begins: Instant, ends: Instant, data_venue: str
) -> dict[str, Any]:
    """The document of a span, or why there is none."""
    try:
        result = attribute(workspace, deployment, begins, ends, data_venue)
    except Unreachable:
        raise
    except UserError as error:
        return {"error": [error.message, error.hint]}
    return {"document": document_of(deployment, begins, ends, result)}


def _kept(
    workspace: Workspace,
    deployment: Deployment,
    span: tuple[Instant, Instant],
    name: str,
    compute: Callable[[], dict[str, Any]],
) -> dict[str, Any]:
    """What was computed the last time, if neither the records of the span nor the data have changed since."""
    run = workspace.runs.get(deployment.run_id)
    last = next(newest(workspace.database, run.id, span[1] - 1), None)
    key = codec.digest([span, None if last is None else last.digest, workspace.lake_of(run.params).revision()])
    stored = run_files.read(workspace, run, name)
    content: dict[str, Any] = {} if stored is None else codec.loads(stored)
    if content.get("key") != key:
        content = compute()
        run_files.write(workspace, run, name, codec.dumps({**content, "key": key}))
    if "error" in content:
        raise UserError(*content["error"])
    return content["document"]


def whole_span(workspace: Workspace, deployment: Deployment) -> tuple[Instant, Instant]:
    """Return the span that contains all records of a deployment."""
    newest = newest_records(workspace.database, deployment.run_id, -1, 1)
    if not newest:
        raise UserError(f"deployment {deployment.id} has no records yet", "wait for its first tick")
    return 0, max(record.tick_at for record in newest) + 1
