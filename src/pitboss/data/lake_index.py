"""The documents of a pushed lake: an index of its files by digest, and a head that names the newest index.

    lake.json                  the head: the digest of the newest index; written last by a push
    indexes/<sha256>.json      the files of one push, each by its path in the lake, its SHA-256 and its size
    objects/<sha256>           the bytes of a file

Objects named by a digest never change, so an index identifies a complete lake, whatever is pushed later. Documents come
from a network and are validated. This module performs no input or output.
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
    """The digest and size of one file."""

    sha256: str
    size: int

    @property
    def object(self) -> str:
        """The name of the object that holds the bytes."""
        return f"{OBJECTS}/{self.sha256}"


@dataclass(frozen=True, slots=True)
class LakeIndex:
    """The files of a lake at the time of a push, by their path in it."""

    files: Mapping[str, IndexEntry]

    def dumps(self) -> bytes:
        """The stored form; equal lakes give equal bytes."""
        lines = [codec.dumps([name, entry.sha256, entry.size]) for name, entry in sorted(self.files.items())]
        return b'{"version":%d,"files":[\n' % VERSION + b",\n".join(lines) + b"\n]}\n"

    @property
    def pin(self) -> str:
        """The digest that identifies this push."""
        return hashlib.sha256(self.dumps()).hexdigest()

    @property
    def size(self) -> int:
        """The total bytes of all files."""
        return sum(entry.size for entry in self.files.values())


def index_name(pin: str) -> str:
    """The name of the object that holds the index of a push."""
    return f"{INDEXES}/{pin}.json"


def head_bytes(pin: str) -> bytes:
    """The stored form of the head."""
    return codec.dumps({"version": VERSION, "index": pin}) + b"\n"


def read_head(content: bytes, origin: str) -> str:
    """The digest of the newest index."""
    document = _document(content, origin, HEAD)
    pin = document.get("index")
    if not isinstance(pin, str) or not _SHA256.fullmatch(pin):
        raise _invalid(origin, HEAD)
    return pin


def read_index(content: bytes, pin: str, origin: str) -> LakeIndex:
    """The index with this digest. Every path in it is validated, because files will be created there."""
    name = index_name(pin)
    if hashlib.sha256(content).hexdigest() != pin:
        raise UserError(f"{origin}: {name} is not what was pushed: its digest differs", PUSH_AGAIN)
    try:
        files = {path: IndexEntry(sha256, size) for path, sha256, size in _document(content, origin, name)["files"]}
    except (TypeError, ValueError, KeyError):
        raise _invalid(origin, name) from None
    for path, entry in files.items():
        typed = isinstance(path, str) and isinstance(entry.sha256, str) and type(entry.size) is int and entry.size >= 0
        if not typed or not _SHA256.fullmatch(entry.sha256) or not is_lake_path(path):
            raise _invalid(origin, name)
    if MANIFEST not in files:
        raise _invalid(origin, name)
    return LakeIndex(files)


def is_lake_path(path: str) -> bool:
    """Whether a lake can have a file at this path: its manifest, a part of a series, or the marker of a generated venue."""
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


def _document(content: bytes, origin: str, name: str) -> dict[str, Any]:
    try:
        document = codec.loads(content)
    except ValueError:
        raise _invalid(origin, name) from None
    if not isinstance(document, dict) or "version" not in document:
        raise _invalid(origin, name)
    if document["version"] != VERSION:
        raise UserError(
            f"{origin}: {name} was written by another version of pitboss", "use that version, or push again"
        )
    return document


def _invalid(origin: str, name: str) -> UserError:
    return UserError(f"{origin}: {name} is not what a push of pitboss writes", PUSH_AGAIN)
