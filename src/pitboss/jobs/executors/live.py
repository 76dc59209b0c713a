"""The host of deployments on this machine: started when a skill is deployed; it exits when there is nothing to work on."""

import subprocess

from pitboss.bootstrap.child_settings import program, surroundings
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.runs.deployments import is_attended

_started: "list[subprocess.Popen[bytes]]" = []
"""Hosts started by this process, to be reaped when they exit before it does."""


def check_host(workspace: Workspace) -> None:
    """Refuse, before anything is stored, where no process of this machine could work on a deployment."""
    settings = workspace.settings
    if settings.executor == "none":
        return
    if settings.sqlite_processes == "one" and "://" not in settings.database_url:
        raise UserError(
            "a host cannot share a database that one process has for itself", "set sqlite_processes to several"
        )


def attend(workspace: Workspace, deployment_id: str) -> str:
    """Have a process of this machine work on a deployment that none works on. Returns what a person should know of that: empty if
    a process works on it, or if it is stopped.
    """
    deployment = workspace.deployments.get(deployment_id)
    if deployment.state == "stopped" or is_attended(workspace, workspace.runs.get(deployment.run_id)):
        return ""
    try:
        is_started = ensure_host(workspace)
    except UserError as error:
        return f"no process works on the deployment, and none can be started: {error.message}"
    if is_started:
        return "no process works on the deployment yet; one is started on this machine"
    return "no process works on the deployment; `pitboss live host` runs one"


def ensure_host(workspace: Workspace) -> bool:
    """Start the host of this machine, unless one is running; returns whether a process was started.

    It takes a lock, so one that is started beside another exits at once. With the setting `executor = "none"` nothing is
    started: `pitboss live host` runs one in the foreground.
    """
    settings = workspace.settings
    if settings.executor == "none":
        return False
    check_host(workspace)
    _started[:] = [process for process in _started if process.poll() is None]
    folder = workspace.home / "live"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "host.log").open("ab") as log:
        process = subprocess.Popen(
            program("pitboss.jobs.live_host", str(settings.home)),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=surroundings(settings),
            start_new_session=True,  # Ctrl-C is for the process that deploys
        )
    _started.append(process)
    return True
