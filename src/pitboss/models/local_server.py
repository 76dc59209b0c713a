"""A GGUF file served by llama.cpp on 127.0.0.1, in a child process that this process starts and stops.

A fault in the server is not a fault of the run, and the server lives as long as a pipe from its parent is open: whatever
ends the run, a kill included, ends the server too.

Run as a program, this module is that child.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from pitboss.core.errors import UserError
from pitboss.models.local_weights import PACKAGE, check_package

CONTEXT_TOKENS = 8_192
PATIENCE_S = 120.0
"""The time in which a server must have read its weights."""


def choose_threads(cores: int | None = None) -> int:
    """All cores but one, at least one: with all cores in use, llama.cpp waits for itself and takes forty times longer."""
    if cores is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores - 1)


@dataclass(slots=True)
class LocalServer:
    """One served file. An asynchronous context manager; `base_url` is set while it runs."""

    weights: Path
    threads: int = 0
    context_tokens: int = CONTEXT_TOKENS
    patience_s: float = PATIENCE_S
    base_url: str = ""
    _child: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def is_alive(self) -> bool:
        """Whether it was started and has not ended."""
        return self._child is not None and self._child.poll() is None

    @property
    def pid(self) -> int | None:
        """The process of the server."""
        return self._child.pid if self._child else None

    async def start(self) -> str:
        """Start it and wait until it answers."""
        check_package()
        self.stop()
        child = self._child = self._spawn()
        assert child.stdout is not None
        try:
            line = await asyncio.wait_for(asyncio.to_thread(child.stdout.readline), self.patience_s)
            message: dict[str, str] = json.loads(line) if line.strip() else {}
        except TimeoutError:
            self.stop()
            raise UserError(
                f"{self.weights.name} was not ready after {self.patience_s:g} s", "take a smaller model"
            ) from None
        except BaseException:
            self.stop()
            raise
        if "url" not in message:
            self.stop()
            raise UserError(
                f"{self.weights.name} could not be served: {message.get('error', 'the server ended without a message')}",
                "is the file whole, and is there memory for it?",
            )
        self.base_url = f"{message['url']}/v1"
        return self.base_url

    def _spawn(self) -> subprocess.Popen[bytes]:
        options = {
            "weights": str(self.weights),
            "threads": self.threads or choose_threads(),
            "context_tokens": self.context_tokens,
        }
        return subprocess.Popen(
            # -P: a module in the current folder must not replace one of ours.
            [sys.executable, "-P", "-m", "pitboss.models.local_server", json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C reaches the run alone, which then stops its server
        )

    def stop(self) -> None:
        """Stop it if it runs. It stores nothing, so it is killed."""
        child, self._child, self.base_url = self._child, None, ""
        if child is None:
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()

    async def __aenter__(self) -> "LocalServer":
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        self.stop()


def serve(options: dict[str, Any]) -> None:
    """Serve until the pipe from the parent closes. One line on the standard output holds the address or the error."""
    # llama.cpp writes to the standard output too, so the line goes to a descriptor of its own.
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        xllamacpp: Any = import_module(PACKAGE)
        parameters = xllamacpp.CommonParams()
        parameters.model.path = options["weights"]
        parameters.n_ctx = options["context_tokens"]
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = options["threads"]
        parameters.n_parallel = 1
        parameters.hostnames = ["127.0.0.1"]
        parameters.port = 0
        parameters.use_jinja = True
        parameters.ui = False
        parameters.verbosity = -1
        server = xllamacpp.Server(parameters)
        message = {"url": server.listening_address}
    except Exception as error:  # noqa: BLE001 – every error is reported to the parent
        message = {"error": str(error) or repr(error)}
    print(json.dumps(message), file=output, flush=True)
    if "url" in message:
        threading.Event().wait()


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os._exit(0)


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]))
