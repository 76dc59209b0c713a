"""`ForkedProcess`: a Python process forked from a server that has imported pitboss, which saves the second of importing it.

`ForkedProcess("-m", "pitboss", …)` is used like `subprocess.Popen([sys.executable, "-m", "pitboss", …])` with text pipes, or
with a controlling terminal. It has its own environment, signals and exit code. Tests of the start of the interpreter or of
imports start a new interpreter instead. `forked_command(…)` is the same as a command line, for programs that start programs.

One server forks for all workers of a test run. It ends with its last connection; forked processes are killed when the
connection of their test closes.
"""

import atexit
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import pitboss

NOT_IMPORTED = (
    "server.mcp",
    "server.hyperliquid_info",
    "testing",
    "audit",
    "redteam",
    "chat",
    "jobs.executors.ray",
    "venues.predict.sui",
    "store.migrations.",
)
"""Parts of pitboss that programs seldom need and that have many imports."""
ALSO_IMPORTED = ("mcp.server.mcpserver", "uvicorn")
"""Libraries that pitboss imports lazily and that many programs of tests need."""
LONGEST, MOST_FILES = 1 << 20, 16


class ForkedProcess(subprocess.Popen[str]):
    """A process that runs Python like `python WORDS`: `-m module`, `-c code` or a script, and arguments."""

    def __init__(
        self,
        *words: object,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: bool = False,
        terminal: int | None = None,
    ) -> None:
        self.args = list(map(str, words))
        self.returncode = None  # pyright: ignore[reportAttributeAccessIssue]
        keep_server()
        self._connection = _connect()
        request = {
            "words": self.args,
            "environment": dict(os.environ if env is None else env),
            "cwd": str(cwd or Path.cwd()),
            "files": [0, 1, 2],
            "has_terminal": terminal is not None,
        }
        if terminal is not None:
            self.stdin = self.stdout = self.stderr = None
            socket.send_fds(self._connection, [json.dumps(request).encode()], [terminal] * 3)
            self.pid = int(self._connection.recv(64))
            return
        pipes = [os.pipe(), os.pipe()]
        ends = [*(os.pipe() if stdin else (os.open(os.devnull, os.O_RDONLY), None)), *(pipe[1] for pipe in pipes)]
        child_in, own_in, *child_out = ends
        socket.send_fds(self._connection, [json.dumps(request).encode()], [child_in, *child_out])
        for descriptor in (child_in, *child_out):
            os.close(descriptor)
        self.stdin = None if own_in is None else os.fdopen(own_in, "w")
        self.stdout, self.stderr = (os.fdopen(pipe[0], encoding="utf-8") for pipe in pipes)
        self.pid = int(self._connection.recv(64))

    def __del__(self, *_: object, **__: object) -> None:
        with suppress(AttributeError):  # of a process that could not be started
            self._connection.close()

    def poll(self) -> int | None:
        return self._exit_code(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._exit_code(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(str(self.args), timeout or 0)
        return code

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str, str]:
        if self.stdin is not None and not self.stdin.closed:
            with suppress(BrokenPipeError):
                self.stdin.write(input or "")
                self.stdin.close()
        texts: dict[Any, str] = {self.stdout: "", self.stderr: ""}
        until = None if timeout is None else time.monotonic() + timeout
        readers = [
            threading.Thread(target=lambda file=file: texts.update({file: file.read()}), daemon=True)
            for file in texts
            if not file.closed
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(None if until is None else max(0.0, until - time.monotonic()))
            if reader.is_alive():
                raise subprocess.TimeoutExpired(str(self.args), timeout or 0)
        self.wait(timeout)
        for file in texts:
            file.close()
        return texts[self.stdout], texts[self.stderr]

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def __exit__(self, *_: object) -> None:
        for file in (self.stdin, self.stdout, self.stderr):
            if file is not None:
                file.close()
        self.wait()

    def _exit_code(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._connection], [], [], timeout)[0]:
            self.returncode = os.waitstatus_to_exitcode(int(self._connection.recv(64)))
            self._connection.close()
        return self.returncode


def forked_command(*words: object) -> list[str]:
    """The command line that starts a forked process."""
    keep_server()
    return _client(_address(), *words)


def _start_server() -> None:
    """Start the server; returns when it listens, before it has imported pitboss."""
    subprocess.run([sys.executable, __file__, str(_address())], check=True, stdin=subprocess.DEVNULL)


def _client(address: Path, *words: object) -> list[str]:
    return [sys.executable, "-I", "-S", str(Path(__file__).with_name("fork_client.py")), str(address), *map(str, words)]


def _address() -> Path:
    """The socket of the server of this test run."""
    return (
        Path(tempfile.gettempdir())
        / f"pitboss-fork-{os.environ.get('PYTEST_XDIST_TESTRUNUID', f'alone{os.getpid()}')[:24]}"
    )


@cache
def keep_server() -> socket.socket:
    """Start the server unless another worker has; it runs until this connection closes."""
    address = _address()
    with address.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            connection = _connect()
        except OSError:
            address.unlink(missing_ok=True)
            _start_server()
            connection = _connect()
    atexit.register(connection.close)
    return connection


def _connect() -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        connection.connect(str(_address()))
    except OSError:
        connection.close()
        raise
    return connection


def _serve(listener: socket.socket, address: Path) -> tuple[dict[str, Any], list[int]]:
    """Fork for every request; returns in the forked process, with its request and its three standard files."""
    selector = selectors.DefaultSelector()
    wake, woken = os.pipe2(os.O_NONBLOCK)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    selector.register(listener, selectors.EVENT_READ)
    selector.register(wake, selectors.EVENT_READ)
    children: dict[int, socket.socket] = {}
    connections: set[socket.socket] = set()
    began = False
    while connections or not began:
        for key, _ in selector.select():
            if key.fileobj is listener:
                began = True
                connection, _ = listener.accept()
                connections.add(connection)
                selector.register(connection, selectors.EVENT_READ)
            elif key.fileobj == wake:
                os.read(wake, 4096)
                _send_exit_codes(children)
            else:
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                try:
                    text, files, _, _ = socket.recv_fds(connection, LONGEST, MOST_FILES)
                except ConnectionResetError:  # closed with unread data
                    text, files = b"", []
                if not text:
                    selector.unregister(connection)
                    connections.discard(connection)
                    connection.close()
                    for pid in [pid for pid, one in children.items() if one is connection]:
                        os.kill(pid, signal.SIGKILL)
                    continue
                pid = os.fork()
                if not pid:
                    signal.set_wakeup_fd(-1)
                    for one in (listener, selector, *connections):
                        one.close()
                    os.close(wake)
                    os.close(woken)
                    return json.loads(text), files
                children[pid] = connection
                for file in files:
                    os.close(file)
                _send_number(connection, pid)
    for path in (address, address.with_suffix(".lock")):
        path.unlink(missing_ok=True)
    os._exit(0)


def _send_exit_codes(children: dict[int, socket.socket]) -> None:
    """Send the exit codes of ended children to their tests."""
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        connection = children.pop(pid)
        if connection.fileno() >= 0:
            _send_number(connection, status)


def _send_number(connection: socket.socket, number: int) -> None:
    """Send a number to a test; a closed connection is ignored."""
    with suppress(OSError):
        connection.send(str(number).encode())


def _run_request(request: dict[str, Any], files: list[int]) -> None:
    """Set up the forked process as requested, and run its program."""
    aside = [fcntl.fcntl(file, fcntl.F_DUPFD, max(request["files"]) + 1) for file in files]
    for file in files:
        os.close(file)
    for number, file in zip(request["files"], aside, strict=True):
        os.dup2(file, number)
        os.close(file)
    if request.get("has_terminal"):
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115  until the end
    sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    for number, action in ((signal.SIGCHLD, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
        signal.signal(number, action)
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    os.chdir(request["cwd"])
    first, *rest = request["words"]
    if first == "-u":
        first, *rest = rest
    if first == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    elif first == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [first, *rest]
        sys.path[0] = str(Path(first).parent)
        runpy.run_path(first, run_name="__main__")


def main(address: str) -> None:
    """Listen, fork into the background, import most of pitboss, and serve."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(address)
    listener.listen(64)
    if os.fork():
        os._exit(0)
    os.setsid()
    gc.disable()  # what is imported stays
    _import()
    null = os.open(os.devnull, os.O_RDWR)
    for number in (1, 2):
        os.dup2(null, number)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    gc.enable()
    code: object = None
    try:
        _run_request(*_serve(listener, Path(address)))
    except SystemExit as leaving:
        code = leaving.code
    exit_process(code)


def _import() -> None:
    left_out = tuple(f"pitboss.{name}" for name in NOT_IMPORTED)
    for module in pkgutil.walk_packages(pitboss.__path__, "pitboss."):
        if not module.name.startswith(left_out) and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in ALSO_IMPORTED:
        importlib.import_module(name)


def exit_process(code: object) -> NoReturn:
    """End as an interpreter does, but without freeing modules, which takes longer than most commands."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
    for file in (sys.stdout, sys.stderr):
        file.flush()
    os._exit(code if isinstance(code, int) else code is not None)


if __name__ == "__main__":
    main(sys.argv[1])
