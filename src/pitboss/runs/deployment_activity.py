"""What deployments did last, for lists and pages: the newest record of each, its account, and its newest entries.

Everything is read from records: a bounded number of them, whatever the age of a deployment.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.deployment import DeploymentState
from pitboss.core.instant import iso
from pitboss.live.board import Board, Entry
from pitboss.runs.deployments import deployment_details, deployment_document
from pitboss.runs.listing import live_runs, short
from pitboss.store.deployments import Deployment
from pitboss.store.recent_records import newest_of, newest_records
from pitboss.store.runs import Run

LISTED = 200
ENTRIES = 20
EQUITY = ("equity_usd", "equity")
"""What venues call the value of an account in their records."""
UNKNOWN = ("tick", "costUsd")
"""What a board that was given only the newest records cannot tell: the number of a tick, and costs, which are not read."""
OF_RUN = ("status", "started_at", "finished_at", "silent_s", "cost_usd")
NOT_DEPLOYED = dict.fromkeys(
    ("skill_version", "account", "state", "code", "reason", "attended", "heartbeat_at", "changed_at", "error_text")
)
"""What only deployments have."""
ATTENTION: tuple[DeploymentState, ...] = ("halted", "running", "paused")
"""The states of deployments that have not ended: those that wait for a person first."""


def deployment_rows(workspace: Workspace, deployments: Sequence[Deployment]) -> list[dict[str, Any]]:
    """Deployments with what their newest records say, in the given order."""
    newest = newest_of(workspace.database, [each.run_id for each in deployments])
    rows: list[dict[str, Any]] = []
    for deployment in deployments:
        run, record = workspace.runs.get_or_none(deployment.run_id), newest.get(deployment.run_id)
        after = None if record is None else codec.loads(record.covered).get("after")
        rows.append(
            {
                **deployment_document(workspace, deployment, run),
                **_of_run(workspace, run),
                "foreground": False,
                "equity": equity_of(after),
                "last_record_at": None if record is None else iso(record.tick_at),
            }
        )
    return rows


def listed_rows(workspace: Workspace, limit: int = LISTED) -> list[dict[str, Any]]:
    """All deployments, newest first."""
    return deployment_rows(workspace, workspace.deployments.listing(limit))


def open_rows(workspace: Workspace, limit: int) -> list[dict[str, Any]]:
    """Deployments that have not ended: halted ones first, then running and paused ones, each newest first."""
    not_ended = [each for state in ATTENTION for each in workspace.deployments.listing(limit, state)]
    return deployment_rows(workspace, not_ended[:limit])


def foreground_rows(workspace: Workspace) -> list[dict[str, Any]]:
    """Live runs that a command works on in the foreground, in the form of deployments. They take no commands."""
    own = {**NOT_DEPLOYED, "foreground": True, "equity": None, "last_record_at": None}
    return [{**own, **row} for row in live_runs(workspace)]


def activity_details(workspace: Workspace, deployment: Deployment, commands: int = 20) -> dict[str, Any]:
    """A deployment with its caps, its account, its newest commands and its newest entries."""
    run = workspace.runs.get_or_none(deployment.run_id)
    document = deployment_details(workspace, deployment, commands)
    entries = newest_entries(workspace, deployment)
    return {
        **document,
        **_of_run(workspace, run),
        "foreground": False,
        "equity": equity_of(document["account_after"]),
        "last_record_at": entries[0]["at"] if entries else None,
        "entries": entries,
    }


def newest_entries(workspace: Workspace, deployment: Deployment, limit: int = ENTRIES) -> list[Entry]:
    """The newest entries of a deployment, newest first: ticks with their verdicts, what happened between, missed ticks."""
    board = Board(limit)
    board.restore(newest_records(workspace.database, deployment.run_id, -1, limit))
    return [{name: value for name, value in entry.items() if name not in UNKNOWN} for entry in board.newest(limit)]


def equity_of(account: Mapping[str, Any] | None) -> str | None:
    """The value of an account of a record, as exact text."""
    return next((str(account[name]) for name in EQUITY if name in account), None) if account else None


def _of_run(workspace: Workspace, run: Run | None) -> dict[str, Any]:
    if run is None:
        return dict.fromkeys(OF_RUN)
    row = short(run, workspace.now())
    return {name: row[name] for name in OF_RUN}
