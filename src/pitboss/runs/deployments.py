"""Deploying a skill, and telling a deployment what to do: the use cases behind the commands, the API and the pages.

A deployment is stored here and worked on elsewhere, by a process that holds the lease of its run. A command to a deployment
that no process works on takes effect at once in the store; one that needs the account, such as `flatten`, waits for a process.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pitboss.bootstrap import decider_source
from pitboss.bootstrap.machine import stopwatch
from pitboss.bootstrap.trading_accounts import names_of_account
from pitboss.bootstrap.workspace import Workspace
from pitboss.build import build
from pitboss.core import codec
from pitboss.core.deployment import NEEDS_ACCOUNT, Command, OpenCommand
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, iso
from pitboss.core.money import text
from pitboss.core.suggestion import suggestion
from pitboss.models import catalog
from pitboss.runs.deployment_caps import caps_document
from pitboss.runs.live_deployment import DAILY_COST, DeployRequest
from pitboss.runs.live_run import create_run
from pitboss.runs.venues import venue_of
from pitboss.skill.digest import skill_digest
from pitboss.skill.document import to_plain
from pitboss.store.deployment_alarms import newest_alarm
from pitboss.store.deployment_builds import read_builds, write_builds
from pitboss.store.deployments import Deployment, SentCommand
from pitboss.store.lifecycle import ACTIVE
from pitboss.store.recent_records import newest_records
from pitboss.store.retry import Unreachable
from pitboss.store.runs import Run

STALE_MS = 20_000
"""A deployment whose process has sent no heartbeat for this long has none."""
ACK_WAIT_S = 10.0
"""How long a caller waits for a command to be acknowledged."""
POLL_S = 0.02


def require_confirmed(account: str, typed: str) -> None:
    """Refuse to send orders to an account whose name a person has not typed."""
    if not account:
        raise UserError("mode live needs an account", "`pitboss live accounts list` lists them")
    if typed != account:
        raise UserError("the account was not confirmed: nothing was done", f"type the name of the account, {account}")


def deploy(workspace: Workspace, request: DeployRequest) -> Deployment:
    """Store a deployment; a process that hosts deployments begins to work on it."""
    plain = to_plain(request.skill)
    venue = venue_of(plain)
    if request.mode not in venue.live_modes:
        modes = ", ".join(venue.live_modes)
        raise UserError(
            f"skills of venue {venue.name} cannot be deployed in mode {request.mode}",
            f"its modes: {modes}" if modes else "this venue has none",
        )
    now = workspace.now()
    stored = venue.live_request(request, now)
    kind, _, policy = stored.source.partition("/")
    if kind == catalog.POLICY and policy not in venue.policies():
        hint = suggestion(policy, venue.policies(), f"policies of {venue.name}:")
        raise UserError(f"there is no policy {policy!r}", hint)
    decider_source.check(workspace, stored)
    extra = venue.check_live(workspace, request)
    daily = request.max_cost_usd_per_day
    params = {
        "deployed": True,
        "mode": request.mode,
        "account": request.account,
        "every_ms": request.skill.every_ms,
        "skill_digest": skill_digest(request.skill),
        "equity": text(request.equity_usd),
        **({} if daily is None else {DAILY_COST: text(daily)}),
        **extra,
    }
    run_id, saved = create_run(workspace, venue, request.skill, stored, params)
    try:
        names = names_of_account(workspace.home, request.account) if request.mode == "live" else ()
        deployment = workspace.deployments.create(
            run_id, request.skill.name, saved.version, venue.name, request.mode, request.account, names
        )
    except UserError:  # another deployment has the account
        workspace.runs.delete(run_id)
        raise
    write_builds(workspace.database, deployment.id, {"deployed_by": build()})
    return deployment


def run_named(workspace: Workspace, prefix: str) -> Run:
    """The run with an id, or the run of the deployment with it; the start of an id is enough."""
    try:
        return workspace.runs.get(prefix)
    except Unreachable:
        raise
    except UserError as error:
        try:
            return workspace.runs.get(workspace.deployments.get(prefix).run_id)
        except Unreachable:
            raise
        except UserError:
            raise error from None


def is_attended(workspace: Workspace, run: Run) -> bool:
    """Whether a process works on the run of a deployment."""
    return run.status in ACTIVE and run.heartbeat_at is not None and workspace.now() - run.heartbeat_at <= STALE_MS


async def command(
    workspace: Workspace,
    deployment_id: str,
    name: Command,
    reason: str,
    user_name: str,
    wait_s: float = ACK_WAIT_S,
) -> SentCommand:
    """Send a command and wait until it is acknowledged. Without a process on the deployment it is applied here, if it can be.

    A command that was not acknowledged in time stays: the process carries it out when it can.
    """
    deployment = workspace.deployments.get(deployment_id)
    sent = workspace.deployments.send(deployment.id, name, reason, user_name)
    until_s = stopwatch() + wait_s
    while sent.acked_at is None:
        if not is_attended(workspace, workspace.runs.get(deployment.run_id)):
            if name in NEEDS_ACCOUNT:
                return sent
            opened = OpenCommand(sent.id, deployment.id, sent.number, name, sent.reason, user_name)
            sent = workspace.deployments.acknowledge(opened, "no process worked on the deployment")
            _end_stopped(workspace, deployment, sent)
            return sent
        if stopwatch() >= until_s:
            return sent
        await asyncio.sleep(POLL_S)
        sent = workspace.deployments.command(sent.id)
    return sent


def _end_stopped(workspace: Workspace, deployment: Deployment, acked: SentCommand) -> None:
    """End the run of a deployment that was stopped while no process worked on it."""
    if acked.state == "stopped":
        epoch = workspace.runs.claim(deployment.run_id, into="running")
        workspace.runs.set_status(deployment.run_id, "cancelled", epoch)


# Documents ------------------------------------------------------------------------------------------------------------


def deployment_document(workspace: Workspace, deployment: Deployment, run: Run | None = None) -> dict[str, Any]:
    """A deployment for lists: its state, and whether a process works on it."""
    run = run or workspace.runs.get_or_none(deployment.run_id)
    heartbeat = None if run is None else run.heartbeat_at
    attended = run is not None and is_attended(workspace, run)
    return {
        "deployment_id": deployment.id,
        "run_id": deployment.run_id,
        "skill": deployment.skill,
        "skill_version": deployment.skill_version,
        "venue": deployment.venue,
        "mode": deployment.mode,
        "account": deployment.account or None,
        "model": "" if run is None else run.model,
        "state": deployment.state,
        "code": deployment.code or None,
        "reason": deployment.reason or None,
        "attended": attended,
        "heartbeat_at": _iso(heartbeat),
        "created_at": iso(deployment.created_at),
        "changed_at": iso(deployment.changed_at),
        "error_text": None if run is None or attended else run.error_text,
    }


def deployment_details(workspace: Workspace, deployment: Deployment, commands: int = 20) -> dict[str, Any]:
    """A deployment with its caps and its newest commands."""
    run = workspace.runs.get_or_none(deployment.run_id)
    sent = workspace.deployments.commands(deployment.id, commands)
    return {
        **deployment_document(workspace, deployment, run),
        **caps_document(workspace, deployment),
        "every_s": None if run is None else run.params.get("every_ms", 0) / 1000,
        "builds": dict(read_builds(workspace.database, deployment.id)),
        "alarm": _alarm_document(workspace, deployment),
        "account_after": last_account(workspace, deployment),
        "commands": [command_document(each) for each in sent],
    }


def _alarm_document(workspace: Workspace, deployment: Deployment) -> dict[str, Any] | None:
    alarm = newest_alarm(workspace.database, deployment.id)
    if alarm is None:
        return None
    return {**asdict(alarm), "raised_at": iso(alarm.raised_at), "read_at": _iso(alarm.read_at)}


def command_document(sent: SentCommand) -> dict[str, Any]:
    """A command for display."""
    row = asdict(sent)
    return {
        "command_id": row.pop("id"),
        **{name: _iso(row.pop(name)) for name in ("sent_at", "acked_at")},
        "state": row.pop("state"),
        **row,
    }


def last_account(workspace: Workspace, deployment: Deployment) -> dict[str, Any] | None:
    """The account after the newest record that holds it."""
    for record in reversed(newest_records(workspace.database, deployment.run_id, -1, 20)):
        after = codec.loads(record.covered).get("after")
        if after is not None:
            return after
    return None


def deployment_documents(workspace: Workspace, limit: int = 200) -> Sequence[dict[str, Any]]:
    """All deployments, newest first."""
    return [deployment_document(workspace, each) for each in workspace.deployments.listing(limit)]


def _iso(at: Instant | None) -> str | None:
    return None if at is None else iso(at)
