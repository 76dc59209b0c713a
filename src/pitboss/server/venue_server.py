"""Runs the HTTP server of a venue: builds its app in each process and serves it with uvicorn.

Processes share one socket, which takes connections while they start, and each has another on the same port: from one queue alone a
single process would accept nearly everything, but over several sockets the kernel spreads connections evenly. An app is built in the
process that serves it and so has connections of its own. What the routes are is the venue's business (`Venue.routes`).
"""

import socket
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pitboss.bootstrap.machine import let_threads_alternate
from pitboss.core.errors import UserError

if TYPE_CHECKING:
    from pitboss.terminal.workspace_options import WorkspaceOptions

MOST_PROCESSES = 64
STARTUP_S = 120
"""How long a process may be silent, for example while it starts on a busy machine, before it is replaced."""
KEEP_ALIVE_S = 75
"""How long an idle connection stays open: longer than clients keep theirs, so that none is closed while it is used again."""
SPREADS = sys.platform == "linux"
"""Whether the kernel spreads connections over sockets on the same port."""
SHUTDOWN_S = 5
"""How long open requests may delay the shutdown."""
CONFIG: dict[str, Any] = {
    "log_config": None,
    "log_level": "critical",  # bugs are logged by `ErrorLog`; uvicorn would log closed connections as errors too
    "access_log": False,
    "server_header": False,
    "proxy_headers": False,  # an address is what connects, not what a header says
    "timeout_keep_alive": KEEP_ALIVE_S,
    "timeout_graceful_shutdown": SHUTDOWN_S,
}


def build_app(routes: str, place: "WorkspaceOptions", options: Any) -> Any:
    """The app of a venue, with logs started for this process."""
    from pitboss.bootstrap.logs import start_logs
    from pitboss.server.error_log import ErrorLog

    settings = place.settings()
    start_logs(settings.log_level, settings.log_file)
    module, _, attribute = routes.partition(":")
    return ErrorLog(getattr(import_module(module), attribute)(place, options))


def serve_routes(
    routes: str,
    place: "WorkspaceOptions",
    options: Any,
    host: str,
    port: int,
    processes: int,
    notify: Callable[[str], object],
) -> None:
    """Serve until the process is told to stop.

    The app is built here before the address is told, so that its errors are reported first, and after the port is taken: a server that
    cannot listen opens no database.
    """
    import uvicorn

    if not 1 <= processes <= MOST_PROCESSES:
        raise UserError(f"--processes: {processes} is not from 1 to {MOST_PROCESSES}", "for example --processes 4")
    shares = SPREADS and processes > 1
    with listen(host, port, shares) as listening:
        app = build_app(routes, place, options)
        notify(f"listening on {address_of(listening)}")
        if processes == 1:
            serve_one_process(app, listening)
            return
        from uvicorn.supervisors import Multiprocess

        sockets = [listening, *([_ProcessSocket.bound(listening)] if shares else [])]

        factory = partial(build_app, routes, place, options)
        config = {**CONFIG, "factory": True, "workers": processes, "timeout_worker_healthcheck": STARTUP_S}
        Multiprocess(uvicorn.Config(factory, **config), sockets).run()


def serve_one_process(app: Any, listening: socket.socket) -> None:
    """Serve an app on a listening socket until this process is told to stop."""
    import uvicorn

    let_threads_alternate()
    uvicorn.Server(uvicorn.Config(app, **CONFIG)).run(sockets=[listening])


def address_of(listening: socket.socket) -> str:
    """The address of a listening socket, as a browser takes it."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


class _ProcessSocket(socket.socket):
    """A socket on the port of another, which does not listen yet. A process that gets it makes one of its own."""

    @classmethod
    def bound(cls, other: socket.socket) -> "_ProcessSocket":
        """A socket on the port of another."""
        return _bind_again(other.family, other.getsockname())

    def __reduce__(self) -> tuple[Any, ...]:
        return _bind_again, (self.family, self.getsockname())


def _bind_again(family: int, address: Any) -> _ProcessSocket:
    bound = _ProcessSocket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    _bind(bound, address, shares=True)
    return bound


def _bind(unbound: socket.socket, address: Any, shares: bool) -> None:
    """Bind a socket to an address, to one that other sockets of this server have too if it `shares`."""
    unbound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shares:
        unbound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    unbound.bind(address)


def listen(host: str, port: int, shares: bool = False) -> socket.socket:
    """The listening socket. Raises `UserError` if the address cannot be used, also where it shares its port."""
    if not 0 <= port <= 65_535:
        raise UserError(f"--port: {port} is not from 0 to 65535", "for example --port 8710")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns off Nagle's algorithm only for sockets with a named protocol; with it every small reply takes 40 ms longer
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        _bind(listening, (host, port), shares=False)
        if shares:  # the first has shown that no other program has the port: a socket that shares it does not notice
            address = listening.getsockname()
            listening.close()
            listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            _bind(listening, address, shares=True)
        listening.listen(1_024)
        listening.set_inheritable(True)
    except OSError as error:
        listening.close()
        raise UserError(
            f"cannot listen on {host}:{port}: {error.strerror}", "choose another --host or --port"
        ) from None
    return listening
