"""Copies of pushed lakes on this machine, so that nothing is fetched twice. It can be deleted at any time.

    files/<sha256>                 bytes as they were pushed, checked against their digest when they arrived
    indexes/<sha256>.json          indexes that were fetched
    lakes/<sha256>/bars/venue=…    the lake of one index, as far as it was needed: links to the files above

Several processes may fetch at once: a file is fetched by one of them, under a name of its own, and moved into place when it
is whole. Above `objects` and `index`; what a lake is for is `remote`.
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
from pitboss.data.object_storage import ObjectStorage

MOST_AT_ONCE = 8
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class ObjectSource:
    """Where to fetch from: an address as it is shown, and its objects, opened by the first call."""

    where: str
    objects: Callable[[], ObjectStorage]


@dataclass(frozen=True, slots=True)
class FetchResult:
    """What was fetched; files that were here already are not counted."""

    files: int
    bytes: int


def newest_pin(source: ObjectSource) -> str:
    """The digest of the newest push."""
    content = read_small(source, HEAD, MOST_HEAD_BYTES)
    if content is None:
        raise UserError(f"there is no lake at {source.where}", "`pitboss data push ADDRESS` puts one there")
    return read_head(content, source.where)


def read_small(source: ObjectSource, name: str, most: int) -> bytes | None:
    """An object that is held in memory; None if there is none."""
    content = bytearray()

    def take(piece: bytes) -> None:
        content.extend(piece)
        if len(content) > most:
            raise UserError(f"{source.where}: {name} is larger than any that pitboss writes")

    return bytes(content) if source.objects().read(name, take) else None


class LakeCache:
    """The copies in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def index(self, source: ObjectSource, pin: str) -> LakeIndex:
        """The index with this digest, fetched if it is not here."""
        path = self.folder / index_name(pin)
        try:
            return read_index(path.read_bytes(), pin, str(path))
        except (OSError, UserError):  # not here, or not whole
            content = read_small(source, index_name(pin), MOST_INDEX_BYTES)
        if content is None:
            raise UserError(f"{source.where} holds no push {pin[:12]}…", "was it deleted, or pushed to another place?")
        index = read_index(content, pin, source.where)
        with _writable(self.folder), _locked(self.folder, "index"):
            _land(path, lambda file: _write(file, content))
        return index

    def root(self, pin: str) -> Path:
        """The folder of the lake of an index. What it holds is what was brought."""
        return self.folder / "lakes" / pin

    def bring(self, source: ObjectSource, pin: str, index: LakeIndex, names: Iterable[str]) -> FetchResult:
        """Have these files of a lake here, whole. Nothing is fetched that is here already."""
        root = self.root(pin)
        wanted = {name: index.files[name] for name in names}
        missing = {name: each for name, each in wanted.items() if not _has(root / name, each)}
        if not missing:
            return FetchResult(0, 0)
        with _writable(self.folder):
            fetched = self._fetch_all(source, missing)
            for name in sorted(missing, key=lambda name: name == MANIFEST):
                self._place(missing[name], root / name)
        return FetchResult(len(fetched), sum(each.size for each in fetched))

    def _fetch_all(self, source: ObjectSource, missing: dict[str, IndexEntry]) -> list[IndexEntry]:
        once = {each.sha256: (name, each) for name, each in sorted(missing.items())}
        with ThreadPoolExecutor(min(MOST_AT_ONCE, len(once)), "fetch") as pool:
            waiting = [pool.submit(self._fetch, source, name, each) for name, each in once.values()]
            try:
                done = [one.result() for one in waiting]
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        return [each for fetched, (_, each) in zip(done, once.values(), strict=True) if fetched]

    def _fetch(self, source: ObjectSource, name: str, entry: IndexEntry) -> bool:
        """Whether a file had to be fetched. One that is here is read once more before it is linked to: disks fail."""
        path = self.folder / "files" / entry.sha256
        with _locked(self.folder, entry.sha256[:2]):
            if _has(path, entry) and _digest(path) == entry.sha256:
                return False
            _land(path, lambda file: _receive(file, source, name, entry))
        return True

    def _place(self, entry: IndexEntry, target: Path) -> None:
        """Put a file into its lake. Whoever does the same at once puts the same bytes there."""
        kept = self.folder / "files" / entry.sha256
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(self.folder, "place"):
            if _has(target, entry):
                return
            target.unlink(missing_ok=True)
            try:
                os.link(kept, target)
            except OSError:  # a file system without links
                _land(target, lambda file: _copy(file, kept))


def _receive(file: IO[bytes], source: ObjectSource, name: str, entry: IndexEntry) -> None:
    """Write an object to a file, if it is what the index says."""
    total, size = hashlib.sha256(), 0

    def take(piece: bytes) -> None:
        nonlocal size
        size += len(piece)
        if size > entry.size:
            raise _unlike(source, name, f"it has more than {entry.size:,} bytes")
        total.update(piece)
        file.write(piece)

    if not source.objects().read(entry.object, take):
        raise UserError(f"{source.where} lacks the object of {name}", PUSH_AGAIN)
    if size != entry.size:
        raise _unlike(source, name, f"it has {size:,} bytes instead of {entry.size:,}")
    if total.hexdigest() != entry.sha256:
        raise _unlike(source, name, "its bytes have another digest")


def _unlike(source: ObjectSource, name: str, why: str) -> UserError:
    return UserError(f"{source.where}: the object of {name} is not what was pushed: {why}", PUSH_AGAIN)


def _has(path: Path, entry: IndexEntry) -> bool:
    try:
        return path.stat().st_size == entry.size
    except OSError:
        return False


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(file: IO[bytes], content: bytes) -> None:
    file.write(content)


def _copy(file: IO[bytes], kept: Path) -> None:
    with kept.open("rb") as whole:
        shutil.copyfileobj(whole, file, _PIECE)


def _land(path: Path, fill: Callable[[IO[bytes]], None]) -> None:
    """Make a file that is there whole or not at all. What is left of a killed one is written over by the next."""
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
