"""A real forum server on a port of this machine, for tests: in a thread, or in processes as `pitboss community serve` runs it."""

import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from forked_process import ForkedProcess
from pitboss.bootstrap.machine import SystemClock, random_hex
from pitboss.server.venue_server import SPREADS
from pitboss.terminal.workspace_options import WorkspaceOptions
from pitboss.venues.community.scenario import read_scenario
from pitboss.venues.community.scenario_file import TRIAL, shipped_scenario
from pitboss.venues.community.sns.app import app_of, open_server
from pitboss.venues.community.sns.seed import seed_forum
from pitboss.venues.community.sns.serve_options import SnsOptions

PROGRAM = """
import sys
from pathlib import Path
from pitboss.server.venue_server import serve_routes
from pitboss.terminal.workspace_options import WorkspaceOptions
from pitboss.venues.community.sns.serve_options import SnsOptions

if __name__ == "__main__":
    home, db, v1, rate, processes = sys.argv[1:]
    serve_routes(
        "pitboss.venues.community.sns.app:make_app",
        WorkspaceOptions(Path(home), db or None),
        SnsOptions(v1=v1, rate_limit=int(rate)),
        "127.0.0.1", 0, int(processes), lambda line: print(line, flush=True),
    )
"""


@dataclass(frozen=True)
class RunningForum:
    """A running server and what its database was filled with."""

    port: int
    home: Path
    db: str | None
    seeded: dict[str, Any]
    pid: int | None = None
    """The process that started the server processes."""
    more_ports: tuple[int, ...] = ()
    """Where other servers of the same database listen."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in (self.port, *self.more_ports)]

    @property
    def agent_id(self) -> str:
        return str(self.seeded["agent"]["id"])

    @property
    def token(self) -> str:
        return str(self.seeded["runner_token"])

    @property
    def runner(self) -> dict[str, str]:
        """The headers of a read."""
        return {"x-runner-token": self.token, "x-agent-id": self.agent_id}

    def thread(self, kind: str) -> str:
        return next(row["id"] for row in self.seeded["threads"] if row["type"] == kind)

    def send(
        self, method: str, path: str, headers: dict[str, str] | None = None, body: bytes | None = None
    ) -> tuple[int, Any, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            content = response.read()
            return response.status, _read(content), dict(response.getheaders())
        finally:
            connection.close()


def _read(content: bytes) -> Any:
    """JSON, or what else was answered, as text."""
    try:
        return json.loads(content)
    except ValueError:
        return content.decode() or None


def fill_database(home: Path, db: str | None = None) -> dict[str, Any]:
    """Fill the database of a server; what `pitboss community seed` prints."""
    server = open_server(WorkspaceOptions(home, db), SnsOptions(), SystemClock(), random_hex)
    with server.database:
        return seed_forum(server, random_hex, read_scenario(shipped_scenario(TRIAL)))


@contextmanager
def serving(
    home: Path,
    db: str | None = None,
    v1: str = "on",
    rate: int = 0,
    processes: int = 0,
    seeded: Any = None,
    origin: str = "",
) -> Iterator[RunningForum]:
    """A filled server until the end of the block: in a thread of this process, or in processes of its own."""
    seeded = seeded or fill_database(home, db)
    home.mkdir(exist_ok=True)
    start = _processes(home, db, v1, rate, processes) if processes else _thread(home, db, v1, rate, origin)
    with start as (port, pid):
        yield RunningForum(port, home, db, seeded, pid)


@contextmanager
def _thread(home: Path, db: str | None, v1: str, rate: int, origin: str) -> Iterator[tuple[int, int | None]]:
    options = SnsOptions(v1="on" if v1 == "on" else "off", rate_limit=rate)
    server = open_server(WorkspaceOptions(home, db), options, SystemClock(), random_hex)
    with server.database, socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(1_024)
        running = uvicorn.Server(
            uvicorn.Config(app_of(server, origin), log_config=None, log_level="critical", access_log=False)
        )
        thread = threading.Thread(target=running.run, args=([listening],), daemon=True)
        thread.start()
        try:
            yield listening.getsockname()[1], None
        finally:
            running.should_exit = True
            thread.join(30)


def listening_sockets(port: int) -> int:
    """How many sockets listen on a port of this machine. A server process does once it has started."""
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == "0A" for row in rows)


@contextmanager
def _processes(home: Path, db: str | None, v1: str, rate: int, processes: int) -> Iterator[tuple[int, int | None]]:
    program = home / "program.py"
    program.write_text(PROGRAM)
    process = ForkedProcess(program, home, db or "", v1, rate, processes)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        match = re.search(r":(\d+)$", line.strip())
        assert match is not None, line
        port = int(match[1])
        while SPREADS and processes > 1 and listening_sockets(port) <= processes:  # one of all, and one of each
            assert process.poll() is None
            time.sleep(0.05)
        yield port, process.pid
    finally:
        process.terminate()
        process.communicate(timeout=30)
