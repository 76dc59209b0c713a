"""Runs the HTTP server of a venue: builds its app in each process and serves it with uvicorn.

The socket is bound once and shared, so that processes accept from one queue. An app is built in the process that serves it and so
has connections of its own. What the routes are is the venue's business (`Venue.routes`).
"""

import socket
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pitboss.core.errors import UserError

if TYPE_CHECKING:
    from pitboss.terminal.workspace_options import WorkspaceOptions

MOST_PROCESSES = 64
STARTUP_S = 120
"""How long a process may be silent, for example while it starts on a busy machine, before it is replaced."""
KEEP_ALIVE_S = 75
"""How long an idle connection stays open: longer than clients keep theirs, so that none is closed while it is used again."""
SHUTDOWN_S = 5
"""How long open requests may delay the shutdown."""


def build_app(routes: str, place: "WorkspaceOptions", options: Any) -> Any:
    """The app of a venue, with logs started for this process."""
    from pitboss.bootstrap.logs import start_logs

    settings = place.settings()
    start_logs(settings.log_level, settings.log_file)
    module, _, attribute = routes.partition(":")
    return getattr(import_module(module), attribute)(place, options)


def serve_routes(
    routes: str,
    place: "WorkspaceOptions",
    options: Any,
    host: str,
    port: int,
    processes: int,
    notify: Callable[[str], object],
) -> None:
    """Serve until the process is told to stop. The app is built here first, so that errors are reported before anything listens."""
    import uvicorn

    if not 1 <= processes <= MOST_PROCESSES:
        raise UserError(f"--processes: {processes} is not from 1 to {MOST_PROCESSES}", "for example --processes 4")
    app = build_app(routes, place, options)
    with _listen(host, port) as listening:
        address, port = listening.getsockname()[:2]
        config: dict[str, Any] = {
            "log_config": None,
            "log_level": "critical",
            "access_log": False,
            "server_header": False,
            "proxy_headers": False,  # an address is what connects, not what a header says
            "timeout_keep_alive": KEEP_ALIVE_S,
            "timeout_graceful_shutdown": SHUTDOWN_S,
        }
        notify(f"listening on http://{f'[{address}]' if ':' in address else address}:{port}")
        if processes == 1:
            uvicorn.Server(uvicorn.Config(app, **config)).run(sockets=[listening])
            return
        from uvicorn.supervisors import Multiprocess

        factory = partial(build_app, routes, place, options)
        config |= {"factory": True, "workers": processes, "timeout_worker_healthcheck": STARTUP_S}
        Multiprocess(uvicorn.Config(factory, **config), [listening]).run()


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65_535:
        raise UserError(f"--port: {port} is not from 0 to 65535", "for example --port 8710")
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(1_024)
        listening.set_inheritable(True)
    except OSError as error:
        listening.close()
        raise UserError(
            f"cannot listen on {host}:{port}: {error.strerror}", "choose another --host or --port"
        ) from None
    return listening
