"""`/api/deployments`: run skills live, list and show deployments, and tell them what to do."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from pitboss.core.deployment import DeploymentState
from pitboss.core.instant import iso
from pitboss.jobs.executors.live import attend, check_host
from pitboss.runs import deployment_caps
from pitboss.runs.deployment_activity import activity_details, deployment_rows, foreground_rows
from pitboss.runs.deployments import command as send
from pitboss.runs.deployments import command_document, deploy, require_confirmed
from pitboss.server.access.caller import Operator, OwnWorkspace, Viewer
from pitboss.server.access.reauthentication import require_password
from pitboss.server.api.deployment_body import (
    CapsDocument,
    CommandDocument,
    CommandResult,
    DeploymentDetails,
    DeploymentDocument,
    NewCaps,
    NewCommand,
    NewDeployment,
    NewDeploymentState,
)
from pitboss.server.api.lookup import named_deployment
from pitboss.server.problem import Problem, refused_as, responses
from pitboss.store.deployments import Deployment

router = APIRouter(prefix="/deployments", tags=["deployments"], responses=responses())
WAIT_S = 3.0
"""How long a request waits for a command to be carried out; it takes a thread of the server meanwhile."""
Most = Annotated[int, Query(ge=1, le=500, description="Most entries of the list.")]


@router.get("", operation_id="list_deployments", summary="List deployments")
def list_deployments(
    caller: Viewer, workspace: OwnWorkspace, limit: Most = 200, state: DeploymentState | None = None
) -> list[DeploymentDocument]:
    """Deployments, newest first, then the live runs that a command works on in the foreground (`foreground` is true). With
    `state` only the deployments in that state.
    """
    del caller
    rows = deployment_rows(workspace, workspace.deployments.listing(limit, state))
    if state is None:
        rows += foreground_rows(workspace)
    return [DeploymentDocument(**row) for row in rows]


@router.post("", status_code=201, operation_id="create_deployment", summary="Deploy a skill", responses=responses(409))
def create_deployment(
    request: Request, body: NewDeployment, caller: Operator, workspace: OwnWorkspace
) -> NewDeploymentState:
    """Store a deployment, and start a process that works on it.

    Mode live sends real orders: it needs the name of the account once more as `confirm`, and the password of a caller who has
    one. Without them the response is 409. Caps can only be tightened; a looser one is refused with 422.
    """
    deploy_request = body.request(workspace)
    request.state.audit = (
        f"{deploy_request.skill.name[:60]} {deploy_request.mode} {deploy_request.account[:40]}".strip()
    )
    if deploy_request.mode == "live":
        with refused_as(409, "confirmation_required"):
            require_confirmed(deploy_request.account, body.confirm)
        require_password(request, caller, body.password, "deploying in mode live")
    check_host(workspace)
    deployment = deploy(workspace, deploy_request)
    request.state.audit += f" {deployment.id}"
    attend(workspace, deployment.id)
    return NewDeploymentState(deployment_id=deployment.id, state=deployment.state, run_id=deployment.run_id)


@router.get("/{deployment_id}", operation_id="show_deployment", summary="Show a deployment", responses=responses(404))
def show_deployment(deployment_id: str, caller: Viewer, workspace: OwnWorkspace) -> DeploymentDetails:
    """A deployment with its caps, its account after the newest record, its newest commands and entries."""
    del caller
    return DeploymentDetails(**activity_details(workspace, named_deployment(workspace, deployment_id)))


@router.post(
    "/{deployment_id}/commands",
    operation_id="send_command",
    summary="Tell a deployment what to do",
    responses=responses(404, 409),
)
def send_command(
    request: Request, deployment_id: str, body: NewCommand, caller: Operator, workspace: OwnWorkspace
) -> CommandResult:
    """Send a command and wait a moment until it is carried out. One that needs the account waits for a process; then `acked_at`
    is null. To resume in mode live, `confirm` is the name of the account; what makes a deployment safer needs no confirmation.
    """
    deployment = named_deployment(workspace, deployment_id)
    request.state.audit = f"{body.command} {body.reason}".strip()[:200]
    _require_not_stopped(deployment)
    if body.command == "resume" and deployment.mode == "live":
        with refused_as(409, "confirmation_required"):
            require_confirmed(deployment.account, body.confirm)
    sent = asyncio.run(send(workspace, deployment.id, body.command, body.reason, caller.name, WAIT_S))
    state = sent.state or workspace.deployments.get(deployment.id).state
    attend(workspace, deployment.id)
    acked_at = None if sent.acked_at is None else iso(sent.acked_at)
    return CommandResult(command_id=sent.id, acked_at=acked_at, state=state, note=sent.note or None)


@router.get(
    "/{deployment_id}/commands",
    operation_id="list_commands",
    summary="List the commands of a deployment",
    responses=responses(404),
)
def list_commands(
    deployment_id: str, caller: Viewer, workspace: OwnWorkspace, limit: Most = 100
) -> list[CommandDocument]:
    """What people told a deployment, newest first: when, who, why, and the state after it."""
    del caller
    deployment = named_deployment(workspace, deployment_id)
    documents: list[dict[str, Any]] = [
        command_document(each) for each in workspace.deployments.commands(deployment.id, limit)
    ]
    return [CommandDocument(**document) for document in documents]


@router.post(
    "/{deployment_id}/caps",
    operation_id="change_caps",
    summary="Change the caps of a deployment",
    responses=responses(404, 409),
)
def change_caps(
    request: Request, deployment_id: str, body: NewCaps, caller: Operator, workspace: OwnWorkspace
) -> CapsDocument:
    """Lower caps are in effect at once. Higher ones, never beyond those of the skill, are pending for an hour (the setting
    `raise_caps_delay_s`); they need the password of a caller who has one, and in mode live the name of the account as `confirm`:
    without them the response is 409. What was pending before is cancelled.
    """
    deployment = named_deployment(workspace, deployment_id)
    request.state.audit = f"caps {' '.join(body.caps)} {body.reason}".strip()[:200]
    _require_not_stopped(deployment)

    def confirm_raise(fields: Sequence[str]) -> None:
        if deployment.mode == "live":
            with refused_as(409, "confirmation_required"):
                require_confirmed(deployment.account, body.confirm)
        require_password(request, caller, body.password, f"raising {fields[0]}")

    document = deployment_caps.change_caps(workspace, deployment, body.caps, body.reason, caller.name, confirm_raise)
    return CapsDocument(**document)


@router.delete(
    "/{deployment_id}/caps/pending",
    operation_id="cancel_caps_raise",
    summary="Cancel a raise of caps",
    responses=responses(404, 409),
)
def cancel_caps_raise(request: Request, deployment_id: str, caller: Operator, workspace: OwnWorkspace) -> CapsDocument:
    """Cancel the raise that is not in effect yet."""
    deployment = named_deployment(workspace, deployment_id)
    request.state.audit = "cancels the raise of caps that is pending"
    with refused_as(409, "conflict"):
        return CapsDocument(**deployment_caps.cancel_raise(workspace, deployment, caller.name))


def _require_not_stopped(deployment: Deployment) -> None:
    if deployment.state == "stopped":
        raise Problem(409, "conflict", "the deployment is stopped", "deploy the skill again")
