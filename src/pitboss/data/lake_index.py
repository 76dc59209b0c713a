"""What a pushed lake says about itself: an index of its files by digest, and a head that names the newest index.

    lake.json                  the head: which index is the newest; the last thing a push writes
    indexes/<sha256>.json      the files of one push, each by its path in the lake, its SHA-256 and its size
    objects/<sha256>           the bytes of a file

Whatever is named by a digest never changes, so who has an index has a whole lake, whatever is pushed meanwhile. Documents
come from a network and are believed only as far as they can be checked. Nothing here reads or writes anything.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.data.manifest import MANIFEST
from pitboss.data.series_files import PART, group_files
from pitboss.data.synthetic_marker import MARKER

VERSION = 1
HEAD = "lake.json"
INDEXES, OBJECTS = "indexes", "objects"
MOST_HEAD_BYTES = 64 * 1024
MOST_INDEX_BYTES = 256 * 1024 * 1024
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MARKER = re.compile(r"meta/venue=[A-Za-z0-9][A-Za-z0-9_.-]*/" + MARKER)


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """The bytes of one file."""

    sha256: str
    size: int

    @property
    def object(self) -> str:
        """The name under which they are stored."""
        return f"{OBJECTS}/{self.sha256}"


@dataclass(frozen=True, slots=True)
class LakeIndex:
    """The files of a lake as it was when it was pushed, by their path in it."""

    files: Mapping[str, IndexEntry]

    def dumps(self) -> bytes:
        """As it is stored; equal lakes give equal bytes."""
        lines = [codec.dumps([name, each.sha256, each.size]) for name, each in sorted(self.files.items())]
        return b'{"version":%d,"files":[\n' % VERSION + b",\n".join(lines) + b"\n]}\n"

    @property
    def pin(self) -> str:
        """The digest by which this very push can be named."""
        return hashlib.sha256(self.dumps()).hexdigest()

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(each.size for each in self.files.values())


def index_name(pin: str) -> str:
    """Where the index of a push is stored."""
    return f"{INDEXES}/{pin}.json"


def head_bytes(pin: str) -> bytes:
    """The head that names an index."""
    return codec.dumps({"version": VERSION, "index": pin}) + b"\n"


def read_head(content: bytes, where: str) -> str:
    """The digest of the newest index."""
    document = _document(content, where, HEAD)
    pin = document.get("index")
    if not isinstance(pin, str) or not _SHA256.fullmatch(pin):
        raise _bad(where, HEAD)
    return pin


def read_index(content: bytes, pin: str, where: str) -> LakeIndex:
    """The index with this digest. Every path in it is one that a lake has, for files will be made there."""
    name = index_name(pin)
    if hashlib.sha256(content).hexdigest() != pin:
        raise UserError(f"{where}: {name} is not what was pushed: its bytes have another digest", PUSH_AGAIN)
    try:
        files = {path: IndexEntry(sha256, size) for path, sha256, size in _document(content, where, name)["files"]}
    except (TypeError, ValueError, KeyError):
        raise _bad(where, name) from None
    for path, each in files.items():
        sound = isinstance(path, str) and isinstance(each.sha256, str) and type(each.size) is int and each.size >= 0
        if not sound or not _SHA256.fullmatch(each.sha256) or not is_lake_path(path):
            raise _bad(where, name)
    if MANIFEST not in files:
        raise _bad(where, name)
    return LakeIndex(files)


def is_lake_path(path: str) -> bool:
    """Whether a lake has files under such a path: its manifest, a part of a series, or the marker of a generated venue."""
    if path == MANIFEST or _MARKER.fullmatch(path):
        return True
    pure = PurePosixPath(path)
    plain = pure.as_posix() == path and path.isprintable() and "\\" not in path and not pure.is_absolute()
    if (
        not plain
        or pure.name != PART
        or len(pure.parts) < 2
        or any(part.startswith(".") or ":" in part for part in pure.parts)
    ):
        return False
    root = Path("lake")
    return all("=" in part for part in pure.parts[1:-1]) and bool(group_files(root, [root / path]))


PUSH_AGAIN = "push the lake again with `pitboss data push ADDRESS --again`"


def _document(content: bytes, where: str, name: str) -> dict[str, Any]:
    try:
        document = codec.loads(content)
    except ValueError:
        raise _bad(where, name) from None
    if not isinstance(document, dict) or "version" not in document:
        raise _bad(where, name)
    if document["version"] != VERSION:
        raise UserError(f"{where}: {name} is of another version of pitboss", "use that version, or push again")
    return document


def _bad(where: str, name: str) -> UserError:
    return UserError(f"{where}: {name} is not what a push of pitboss writes", PUSH_AGAIN)
