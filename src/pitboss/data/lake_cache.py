"""A local cache of pushed lakes, so that no file is fetched twice. It can be deleted at any time.

    files/<sha256>                 pushed bytes, verified against their digest when they were fetched
    indexes/<sha256>.json          fetched indexes
    lakes/<sha256>/bars/venue=…    the fetched part of the lake of one index: links to the files above

Several processes may fetch at once: each file is fetched by one of them, under a temporary name, and moved into place
when it is complete. Stands on `object_storage` and `lake_index`; `remote_lake` reads the cached files as a lake.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from filelock import FileLock

from pitboss.core.errors import UserError
from pitboss.data.lake_index import (
    HEAD,
    MOST_HEAD_BYTES,
    MOST_INDEX_BYTES,
    PUSH_AGAIN,
    IndexEntry,
    LakeIndex,
    index_name,
    read_head,
    read_index,
)
from pitboss.data.manifest import MANIFEST
from pitboss.data.object_storage import ObjectSource

MOST_AT_ONCE = 8
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class FetchResult:
    """Number and bytes of the fetched files, without those that were cached already."""

    files: int
    bytes: int


def newest_pin(source: ObjectSource) -> str:
    """The digest of the newest push."""
    content = source.read_small(HEAD, MOST_HEAD_BYTES)
    if content is None:
        raise UserError(f"there is no lake at {source.address}", "`pitboss data push ADDRESS` puts one there")
    return read_head(content, source.address)


class LakeCache:
    """The cache in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def index(self, source: ObjectSource, pin: str) -> LakeIndex:
        """The index with this digest, fetched if it is not cached."""
        path = self.folder / index_name(pin)
        try:
            return read_index(path.read_bytes(), pin, str(path))
        except (OSError, UserError):  # not cached, or damaged
            content = source.read_small(index_name(pin), MOST_INDEX_BYTES)
        if content is None:
            raise UserError(f"{source.address} has no push {pin[:12]}…", "it may be deleted, or at another address")
        index = read_index(content, pin, source.address)
        with _writable(self.folder), _locked(self.folder, "index"):
            _write_whole(path, lambda file: file.write(content))
        return index

    def root(self, pin: str) -> Path:
        """The folder of the lake of an index, with the files fetched so far."""
        return self.folder / "lakes" / pin

    def fetch(self, source: ObjectSource, pin: str, index: LakeIndex, names: Iterable[str]) -> FetchResult:
        """Fetch the files of a lake that are not cached, and link all of them into its folder."""
        root = self.root(pin)
        missing = {name: index.files[name] for name in names if not _has_size(root / name, index.files[name])}
        if not missing:
            return FetchResult(0, 0)
        with _writable(self.folder):
            fetched = self._fetch_all(source, missing)
            for name in sorted(missing, key=lambda name: name == MANIFEST):
                self._link(missing[name], root / name)
        return FetchResult(len(fetched), sum(entry.size for entry in fetched))

    def _fetch_all(self, source: ObjectSource, missing: dict[str, IndexEntry]) -> list[IndexEntry]:
        unique = {entry.sha256: (name, entry) for name, entry in sorted(missing.items())}
        with ThreadPoolExecutor(min(MOST_AT_ONCE, len(unique)), "fetch") as pool:
            futures = [pool.submit(self._fetch, source, name, entry) for name, entry in unique.values()]
            try:
                was_fetched = [future.result() for future in futures]
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        return [entry for fetched, (_, entry) in zip(was_fetched, unique.values(), strict=True) if fetched]

    def _fetch(self, source: ObjectSource, name: str, entry: IndexEntry) -> bool:
        """Fetch a file; False if it is cached. A cached file is hashed again before it is linked to: disks fail."""
        path = self.folder / "files" / entry.sha256
        with _locked(self.folder, entry.sha256[:2]):
            if _has_size(path, entry) and _digest(path) == entry.sha256:
                return False
            _write_whole(path, lambda file: _receive(file, source, name, entry))
        return True

    def _link(self, entry: IndexEntry, target: Path) -> None:
        """Link a cached file into the folder of its lake, or copy it where the file system has no links."""
        cached = self.folder / "files" / entry.sha256
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(self.folder, "place"):
            if _has_size(target, entry):
                return
            target.unlink(missing_ok=True)
            try:
                os.link(cached, target)
            except OSError:
                with cached.open("rb") as content:
                    _write_whole(target, lambda file: shutil.copyfileobj(content, file, _PIECE))


def _receive(file: IO[bytes], source: ObjectSource, name: str, entry: IndexEntry) -> None:
    """Write an object to a file and verify it against the index."""
    total, size = hashlib.sha256(), 0

    def take(piece: bytes) -> None:
        nonlocal size
        size += len(piece)
        if size > entry.size:
            raise _mismatch(source, name, f"it has more than {entry.size:,} bytes")
        total.update(piece)
        file.write(piece)

    if not source.objects().read(entry.object, take):
        raise UserError(f"{source.address} lacks the object of {name}", PUSH_AGAIN)
    if size != entry.size:
        raise _mismatch(source, name, f"it has {size:,} bytes instead of {entry.size:,}")
    if total.hexdigest() != entry.sha256:
        raise _mismatch(source, name, "its digest differs")


def _mismatch(source: ObjectSource, name: str, problem: str) -> UserError:
    return UserError(f"{source.address}: the object of {name} is not what was pushed: {problem}", PUSH_AGAIN)


def _has_size(path: Path, entry: IndexEntry) -> bool:
    try:
        return path.stat().st_size == entry.size
    except OSError:
        return False


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_whole(path: Path, fill: Callable[[IO[bytes]], object]) -> None:
    """Write a file so that it exists completely or not at all; the part of a killed process is overwritten."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def _locked(folder: Path, name: str) -> FileLock:
    """A lock between all processes and threads; the operating system releases it when its process ends."""
    locks = folder / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    return FileLock(locks / name, poll_interval=0.01, fallback_to_soft=False)


@contextmanager
def _writable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        hint = "check permissions and free space; the folder can be deleted at any time"
        raise UserError(f"cannot write to {folder}: {error.strerror or error}", hint) from None
