"""`data push`: copies the local lake into object storage, from which workers on other machines read it.

Each file is stored under its digest, then an index of all files, and last the head that names the index. A reader sees the
lake either before or after a push; a killed push is continued by the next, which sends only what is missing; earlier
pushes stay readable for runs that began with them. Nothing is deleted.
"""

import hashlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pitboss.core.errors import UserError
from pitboss.data import manifest
from pitboss.data.lake_index import (
    HEAD,
    MARKER,
    MOST_HEAD_BYTES,
    MOST_INDEX_BYTES,
    OBJECTS,
    IndexEntry,
    LakeIndex,
    head_bytes,
    index_name,
    read_head,
    read_index,
)
from pitboss.data.manifest import MANIFEST, LakeManifest
from pitboss.data.object_storage import ObjectSource
from pitboss.data.series import count_noun, series
from pitboss.data.series_files import PART, find_series
from pitboss.data.staging import readable_rows, write_lock

MOST_AT_ONCE = 4
TRIES = 3
"""How often a push starts again because an import has replaced a file that was still to be sent."""

PushProgress = Callable[[int, int], None]
"""Called with the bytes sent and the total."""


@dataclass(frozen=True, slots=True)
class PushResult:
    """The result of a push. `pin` identifies it; files that were stored already are not sent."""

    where: str
    pin: str
    files: int
    bytes: int
    sent_files: int
    sent_bytes: int
    changed: bool


@dataclass(frozen=True, slots=True)
class _HashedFile:
    """A file at the time it was hashed. The lake never rewrites a file in place, so its inode and time detect changes."""

    entry: IndexEntry
    inode: int
    changed_ns: int

    def is_unchanged(self, status: os.stat_result) -> bool:
        return (status.st_ino, status.st_size, status.st_mtime_ns) == (self.inode, self.entry.size, self.changed_ns)


class _LakeChanged(Exception):
    """An import has replaced a file during the push."""


def push(
    root: Path,
    source: ObjectSource,
    again: bool = False,
    replace: bool = False,
    progress: PushProgress = lambda sent_bytes, total_bytes: None,
) -> PushResult:
    """Push a lake. `again` also sends what is stored already; `replace` allows the push to lack files of the stored lake."""
    for _ in range(TRIES):
        try:
            return _push(root, source, again, replace, progress)
        except _LakeChanged:
            continue  # what was sent is not sent again
    raise UserError("the lake changes faster than it can be pushed", "push again when nothing is imported")


def _push(root: Path, source: ObjectSource, again: bool, replace: bool, progress: PushProgress) -> PushResult:
    lake_manifest, files = _snapshot(root)
    index = LakeIndex({name: file.entry for name, file in files.items()})
    pin = index.pin
    previous_pin, previous_names = _previous(source, again)
    lost = [] if replace else sorted(previous_names - set(index.files))
    if lost:  # protects a series from being lost because two lakes were confused
        raise UserError(
            f"{source.address} has {count_noun(len(lost), 'file')} that this lake lacks, such as {lost[0]}",
            "it may be another lake; --replace makes it equal to this one",
        )
    sizes = {} if again else source.objects().sizes(OBJECTS)
    missing = {
        file.entry.sha256: name for name, file in files.items() if sizes.get(file.entry.object) != file.entry.size
    }
    total_bytes, sent_bytes = sum(files[name].entry.size for name in missing.values()), 0
    with ThreadPoolExecutor(MOST_AT_ONCE, "push") as pool:
        futures = []
        try:
            for name in sorted(missing.values()):  # verified here one by one while the threads send
                _verify(root, lake_manifest, name)
                futures.append((name, pool.submit(_send, source, root / name, files[name])))
            for name, future in futures:
                future.result()
                sent_bytes += files[name].entry.size
                progress(sent_bytes, total_bytes)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    content = index.dumps()
    if again or previous_pin != pin:
        source.objects().write(index_name(pin), content)
        source.objects().write(HEAD, head_bytes(pin))
    return PushResult(source.address, pin, len(files), index.size, len(missing), total_bytes, previous_pin != pin)


def _snapshot(root: Path) -> tuple[LakeManifest, dict[str, _HashedFile]]:
    """The lake at one moment: its manifest and every file that a reader would find."""
    if not root.is_dir():
        raise UserError("there is no data here yet", "import some, then push")
    with write_lock(root):
        lake_manifest = manifest.load_manifest(root)
        paths = [path for files in find_series(root) for path in files.paths]
        if lake_manifest is None or not paths:
            raise UserError("there is no data here to push", "import some; `pitboss data check` says what is wrong")
        names = {path.relative_to(root).as_posix() for path in paths}
        unmatched = sorted(names ^ set(lake_manifest.files))
        if unmatched:
            raise UserError(
                f"{unmatched[0]} and the lake's manifest do not agree", "`pitboss data check` says what is wrong"
            )
        markers = [path for path in (root / "meta").glob(f"venue=*/{MARKER}") if path.is_file()]
        return lake_manifest, {
            path.relative_to(root).as_posix(): _hashed(path) for path in [*paths, *markers, root / MANIFEST]
        }


def _hashed(path: Path) -> _HashedFile:
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return _HashedFile(IndexEntry(sha256, status.st_size), status.st_ino, status.st_mtime_ns)


def _previous(source: ObjectSource, again: bool) -> tuple[str | None, set[str]]:
    """The pin of the stored push, and the names of its files. With `again` a damaged push counts as none."""
    try:
        head = source.read_small(HEAD, MOST_HEAD_BYTES)
        if head is None:
            return None, set()
        pin = read_head(head, source.address)
        content = source.read_small(index_name(pin), MOST_INDEX_BYTES)
        return pin, set() if content is None else set(read_index(content, pin, source.address).files)
    except UserError:
        if not again:
            raise
        return None, set()


def _verify(root: Path, lake_manifest: LakeManifest, name: str) -> None:
    """Refuse a file that differs from what was imported."""
    if not name.endswith(f"/{PART}"):
        return
    shape = series(name.partition("/")[0])
    frame = readable_rows(shape, root / name)
    if frame is None or manifest.describe_rows(shape, frame) != lake_manifest.files[name]:
        current = manifest.load_manifest(root)
        if current is not None and current.files != lake_manifest.files:
            raise _LakeChanged
        raise UserError(f"{name} is not what was imported", "see `pitboss data check`")


def _send(source: ObjectSource, path: Path, hashed: _HashedFile) -> None:
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise _LakeChanged from None
    with file:
        if not hashed.is_unchanged(os.fstat(file.fileno())):
            raise _LakeChanged
        source.objects().write(hashed.entry.object, file)
