"""Runs the web server of a workspace: opens it, makes the start token, and serves the app with uvicorn."""

from collections.abc import Callable

from pitboss.bootstrap.machine import random_hex
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.server.access.allowed_hosts import AllowedHosts, is_loopback
from pitboss.server.access.gate import Serving
from pitboss.server.access.sign_in import SignIn, digest
from pitboss.server.app import create_app
from pitboss.server.venue_server import address_of, listen, serve_one_process
from pitboss.store.users import Users
from pitboss.terminal.workspace_options import WorkspaceOptions

TOKEN_BYTES = 24


def serve_app(
    location: WorkspaceOptions, host: str, port: int, https_proxy: bool, announce: Callable[[str, str], None]
) -> None:
    """Serve until the process is told to stop. `announce` is called with the address and the start token."""
    token = random_hex(TOKEN_BYTES)
    workspace = location.workspace()
    try:
        require_users(workspace, host)
        listening = listen(host, port)
    except BaseException:
        workspace.close()
        raise
    settings = workspace.settings
    serving = Serving(
        AllowedHosts.of(host, settings.serve_hosts), https_proxy or settings.serve_https, settings.serve_rpm
    )
    app = create_app(workspace, SignIn(digest(token), random_hex), serving)
    with listening:
        announce(address_of(listening), token)
        serve_one_process(app, listening)


def require_users(workspace: Workspace, host: str) -> None:
    """Refuse to listen on an address that other machines reach while nobody has a password."""
    if not is_loopback(host) and not Users(workspace.database, workspace.now).can_sign_in():
        raise UserError(
            f"--host {host}: other machines reach this address, and no user has a password",
            "add one with `pitboss users add NAME --role admin`, or leave --host out",
        )
