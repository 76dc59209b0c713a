"""`data push`: puts the lake of this machine into object storage, from where workers on other machines read it.

The bytes of each file go under their own digest, then an index of all of them, and last the head that names the index. So
whoever reads sees the lake as it was before or as it is after; a push that was killed is gone on with by the next one, which
sends only what is missing; and earlier pushes stay readable for runs that began with them. It deletes nothing.
"""

import hashlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pitboss.core.errors import UserError
from pitboss.data import manifest
from pitboss.data.lake_cache import ObjectSource, read_small
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
from pitboss.data.series import count_noun, series
from pitboss.data.series_files import PART, find_series
from pitboss.data.staging import readable_rows, write_lock

MOST_AT_ONCE = 4
TRIES = 3
"""How often a push begins anew because an import has replaced a file that was still to be sent."""

PushProgress = Callable[[int, int], None]
"""Is told how many bytes were sent, of how many."""


@dataclass(frozen=True, slots=True)
class PushResult:
    """What a push came to. `pin` names it; nothing was sent if it was there already."""

    where: str
    pin: str
    files: int
    bytes: int
    sent_files: int
    sent_bytes: int
    changed: bool


@dataclass(frozen=True, slots=True)
class _Seen:
    """A file as it was when it was hashed. A write of the lake makes a new file, so this tells whether it still is that."""

    entry: IndexEntry
    number: int
    changed_ns: int

    def is_still(self, status: os.stat_result) -> bool:
        return (status.st_ino, status.st_size, status.st_mtime_ns) == (self.number, self.entry.size, self.changed_ns)


class _Moved(Exception):
    """An import has replaced a file meanwhile."""


def push(
    root: Path,
    source: ObjectSource,
    again: bool = False,
    replace: bool = False,
    tell: PushProgress = lambda sent, of: None,
) -> PushResult:
    """Push a lake. `again` sends what is there already, too; `replace` lets the new one lack files of the one there."""
    for _ in range(TRIES):
        try:
            return _push(root, source, again, replace, tell)
        except _Moved:
            continue  # what was sent stays, and is not sent again
    raise UserError("the lake changes faster than it can be pushed", "push again when nothing is imported")


def _push(root: Path, source: ObjectSource, again: bool, replace: bool, tell: PushProgress) -> PushResult:
    known, seen = _look(root)
    index = LakeIndex({name: each.entry for name, each in seen.items()})
    pin = index.pin
    before, held = _before(source, again)
    lost = [] if replace else sorted(held - set(index.files))
    if lost:  # nobody loses a series because two lakes were taken for one
        raise UserError(
            f"{source.where} has {count_noun(len(lost), 'file')} that this lake has not, such as {lost[0]}",
            "is it another lake? --replace makes the one there like this one",
        )
    there = {} if again else source.objects().sizes(OBJECTS)
    missing = {each.entry.sha256: name for name, each in seen.items() if not _is_there(there, each.entry)}
    total, sent = sum(seen[name].entry.size for name in missing.values()), 0
    with ThreadPoolExecutor(MOST_AT_ONCE, "push") as pool:
        waiting = []
        try:
            for name in sorted(missing.values()):  # looked into here, one by one, and sent by the others meanwhile
                _check(root, known, name)
                waiting.append((name, pool.submit(_send, source, root / name, seen[name])))
            for name, one in waiting:
                one.result()
                sent += seen[name].entry.size
                tell(sent, total)
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    content = index.dumps()
    if again or before != pin:
        source.objects().write(index_name(pin), content)
        source.objects().write(HEAD, head_bytes(pin))
    return PushResult(source.where, pin, len(seen), index.size, len(missing), total, before != pin)


def _look(root: Path) -> tuple[LakeManifest, dict[str, _Seen]]:
    """The lake as it is at one moment: its manifest and every file that a reader would find."""
    if not root.is_dir():
        raise UserError("there is no data here yet", "import some, then push")
    with write_lock(root):
        known = manifest.load_manifest(root)
        paths = [path for place in find_series(root) for path in place.files]
        if known is None or not paths:
            raise UserError("there is no data here to push", "import some; `pitboss data check` says what is wrong")
        names = {path.relative_to(root).as_posix() for path in paths}
        odd = sorted(names ^ set(known.files))
        if odd:
            raise UserError(f"{odd[0]} and the lake's manifest do not agree", "`pitboss data check` says what is wrong")
        markers = [path for path in (root / "meta").glob(f"venue=*/{MARKER}") if path.is_file()]
        return known, {path.relative_to(root).as_posix(): _see(path) for path in [*paths, *markers, root / MANIFEST]}


def _see(path: Path) -> _Seen:
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return _Seen(IndexEntry(sha256, status.st_size), status.st_ino, status.st_mtime_ns)


def _before(source: ObjectSource, again: bool) -> tuple[str | None, set[str]]:
    """The push that is there now, and the names of its files. Who sends everything again cares not if it is damaged."""
    try:
        head = read_small(source, HEAD, MOST_HEAD_BYTES)
        if head is None:
            return None, set()
        pin = read_head(head, source.where)
        content = read_small(source, index_name(pin), MOST_INDEX_BYTES)
        return pin, set() if content is None else set(read_index(content, pin, source.where).files)
    except UserError:
        if not again:
            raise
        return None, set()


def _is_there(there: dict[str, int], entry: IndexEntry) -> bool:
    return there.get(entry.object) == entry.size


def _check(root: Path, known: LakeManifest, name: str) -> None:
    """A file that is not what was imported is not spread."""
    if not name.endswith(f"/{PART}"):
        return
    shape = series(name.partition("/")[0])
    frame = readable_rows(shape, root / name)
    if frame is None or manifest.describe_rows(shape, frame) != known.files[name]:
        now = manifest.load_manifest(root)
        if now is not None and now.files != known.files:
            raise _Moved
        raise UserError(f"{name} is not what was imported", "see `pitboss data check`")


def _send(source: ObjectSource, path: Path, seen: _Seen) -> None:
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise _Moved from None
    with file:
        if not seen.is_still(os.fstat(file.fileno())):
            raise _Moved
        source.objects().write(seen.entry.object, file)
