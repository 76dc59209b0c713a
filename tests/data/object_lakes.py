"""Lakes in object storage: a small market to push, storage that records calls and fails, a local S3 server."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, Thread
from typing import IO

import polars as pl
import pytest

from pitboss.core.instant import parse_instant
from pitboss.data.demo import write_demo
from pitboss.data.lake import Lake
from pitboss.data.lake_cache import LakeCache
from pitboss.data.lake_push import PushResult, push
from pitboss.data.object_storage import ObjectSource, ObjectStorage, open_objects, read_address
from pitboss.data.remote_lake import RemoteLake
from simulated_kill import Killed

pytest.importorskip("obstore", reason="obstore is not installed: pip install 'pitboss[objects]'")

END = parse_instant("2025-03-31")
FROM = parse_instant("2025-03-29")
KEYS = {
    "AWS_ACCESS_KEY_ID": "the-access-key",
    "AWS_SECRET_ACCESS_KEY": "the-secret-access-key",
    "AWS_REGION": "us-east-1",
}
S3_URL = "PITBOSS_TEST_S3_URL"


def make_lake(root: Path) -> Lake:
    """A generated market with a marker, and an imported series beside it."""
    lake = Lake(root)
    write_demo(lake, days=3, end=END)
    lake.put("funding", "hyperliquid", "xyz:A/B", None, funding(lake).head(20))
    return lake


def funding(lake: Lake) -> pl.DataFrame:
    """Rows of funding, to import once more under another name."""
    frame = lake.stored_rows("funding", "demo", "BTC", None)
    assert frame is not None
    return frame


def copy_of(lake: Lake, root: Path) -> Lake:
    """A copy of a lake."""
    shutil.copytree(lake.root, root)
    return Lake(root)


class RecordingStorage:
    """Storage that records its calls, and whose process is killed at write number `dies`."""

    def __init__(self, inner: ObjectStorage, dies: int | None = None) -> None:
        self._inner = inner
        self._dies = dies
        self._lock = Lock()
        self.reads: list[str] = []
        self.writes: list[str] = []
        self.before_write: Callable[[], None] = lambda: None

    def read(self, name: str, take: Callable[[bytes], None]) -> bool:
        self.reads.append(name)
        return self._inner.read(name, take)

    def write(self, name: str, content: bytes | IO[bytes]) -> None:
        with self._lock:
            if self._dies is not None and len(self.writes) >= self._dies:
                raise Killed
            self.before_write()
            self.writes.append(name)
        self._inner.write(name, content)

    def sizes(self, folder: str) -> dict[str, int]:
        return self._inner.sizes(folder)


class ObjectLake:
    """A lake at an address of object storage."""

    def __init__(self, address: str, variables: dict[str, str] | None = None) -> None:
        self.address = address
        self._variables = variables or {}

    def storage(self, dies: int | None = None, writing: bool = True) -> RecordingStorage:
        return RecordingStorage(open_objects(read_address(self.address), self._variables, writing), dies)

    def push(
        self, lake: Lake, objects: ObjectStorage | None = None, again: bool = False, replace: bool = False
    ) -> PushResult:
        store = objects or self.storage()
        return push(lake.root, ObjectSource(self.address, lambda: store), again, replace)

    def remote_lake(self, folder: Path, pin: str = "", objects: ObjectStorage | None = None) -> RemoteLake:
        store = objects or self.storage(writing=False)
        return RemoteLake(ObjectSource(self.address, lambda: store), LakeCache(folder), pin)


def folder_storage(folder: Path) -> ObjectLake:
    """Object storage in a local folder."""
    return ObjectLake(f"file://{folder}")


class _QuietFileHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def web_server(folder: Path) -> Iterator[str]:
    """A plain HTTP file server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_QuietFileHandler, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def s3_server() -> Iterator[str]:
    """The address of an S3 server: the one that the variable names, or moto's in a process of its own."""
    given = os.environ.get(S3_URL)
    if given:
        yield given
        return
    if not all(find_spec(name) for name in ("moto", "flask")):
        pytest.skip(f"no S3 server: pip install 'moto[server]', or name one with {S3_URL}")
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("moto_server.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHONWARNINGS"))},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("http://"), "the S3 server did not start"
        yield line.strip()
    finally:
        process.stdin.close()  # it ends with its input
        process.stdout.close()
        process.wait(20)
