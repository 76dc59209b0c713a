"""Runs the web server of a workspace: opens it, makes the start token, and serves the app with uvicorn."""

from collections.abc import Callable

from pitboss.bootstrap.machine import random_hex
from pitboss.server.access.sign_in import SignIn, digest
from pitboss.server.app import create_app
from pitboss.server.venue_server import address_of, listen, serve_one_process
from pitboss.terminal.workspace_options import WorkspaceOptions

TOKEN_BYTES = 24


def serve_app(location: WorkspaceOptions, host: str, port: int, announce: Callable[[str, str], None]) -> None:
    """Serve until the process is told to stop. `announce` is called with the address and the start token."""
    token = random_hex(TOKEN_BYTES)
    app = create_app(location.workspace(), SignIn(digest(token), random_hex))
    with listen(host, port) as listening:
        announce(address_of(listening), token)
        serve_one_process(app, listening)
