"""The lake's manifest: rows, time span and digest of every stored file, and the files it was imported from.

`manifest.json` in the lake's root. It is committed together with the data (`commit`); `data check` compares the files with
it; a missing one is rebuilt from the stored files. It does not tell whether rows are plausible.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pitboss.core import codec
from pitboss.core.instant import Instant
from pitboss.data.series import SeriesKind, series
from pitboss.data.series_files import SeriesFiles, find_series, group_files

MANIFEST = "manifest.json"
VERSION = 1

Reader = Callable[[SeriesKind, Path], pl.DataFrame | None]
"""Reads the rows of a stored file; None if they cannot be read."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """An imported file: its name and the SHA-256 of its bytes."""

    name: str
    sha256: str
    imported_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file of the lake. The digest is of the rows, not of the parquet bytes."""

    rows: int
    first_at: Instant | None
    last_at: Instant | None
    digest: str


@dataclass
class LakeManifest:
    """Files by their path in the lake, sources and the last change by the folder of a series."""

    files: dict[str, StoredFile] = field(default_factory=dict[str, StoredFile])
    sources: dict[str, tuple[SourceFile, ...]] = field(default_factory=dict[str, tuple[SourceFile, ...]])
    changed_at: dict[str, Instant | None] = field(default_factory=dict[str, Instant | None])

    def record(
        self, folder: str, files: Mapping[str, StoredFile], sources: Iterable[SourceFile], at: Instant | None
    ) -> None:
        """Record a write to one series. A source that is listed already is not listed twice."""
        earlier = self.sources.get(folder, ())
        keys = {(source.name, source.sha256) for source in earlier}
        new = [replace(source, imported_at=at) for source in sources if (source.name, source.sha256) not in keys]
        if files or new:
            self.sources[folder] = (*earlier, *dict.fromkeys(new))
        if files:
            self.files |= files
            self.changed_at[folder] = at

    def drop(self, venue: str) -> None:
        """Remove a venue."""
        part = f"/venue={venue}/"
        for mapping in (self.files, self.sources, self.changed_at):
            for key in [key for key in mapping if part in f"/{key}/"]:
                del mapping[key]

    def plain(self, root: Path) -> list[dict[str, Any]]:
        """One document per series."""
        return [self._series(root, files) for files in group_files(root, [root / name for name in sorted(self.files)])]

    def dumps(self, root: Path) -> bytes:
        """The stored form. Its `digest` covers the whole lake."""
        documents = self.plain(root)
        total = hashlib.sha256(
            codec.dumps([(document["folder"], document["digest"]) for document in documents])
        ).hexdigest()
        lines = b",\n".join(codec.dumps(document) for document in documents)
        head = codec.dumps({"version": VERSION, "digest": total})[:-1]
        return head + b',"series":[\n' + lines + b"\n]}\n"

    def _series(self, root: Path, files: SeriesFiles) -> dict[str, Any]:
        names = [path.relative_to(root).as_posix() for path in files.paths]
        entries = {name: self.files[name] for name in names}
        folder = folder_of(files.kind, names[0])
        firsts = [entry.first_at for entry in entries.values() if entry.first_at is not None]
        lasts = [entry.last_at for entry in entries.values() if entry.last_at is not None]
        return {
            "folder": folder,
            "kind": files.kind,
            "venue": files.venue,
            "symbol": files.symbol,
            "interval": files.interval,
            "rows": sum(entry.rows for entry in entries.values()),
            "first_at": min(firsts, default=None),
            "last_at": max(lasts, default=None),
            "digest": hashlib.sha256(codec.dumps([entry.digest for entry in entries.values()])).hexdigest(),
            "imported_at": self.changed_at.get(folder),
            "files": {name: asdict(entry) for name, entry in entries.items()},
            "sources": [asdict(source) for source in self.sources.get(folder, ())],
        }


def folder_of(kind: str, name: str) -> str:
    """The folder of the series that a file belongs to."""
    parts = name.split("/")
    return "/".join(parts[:-1] if series(kind).time is None else parts[:-2])


def load_manifest(root: Path) -> LakeManifest | None:
    """The stored manifest; None if it is missing or unreadable."""
    try:
        document = codec.loads((root / MANIFEST).read_bytes())
        if document["version"] != VERSION:
            return None
        manifest = LakeManifest()
        for entry in document["series"]:
            manifest.files |= {name: StoredFile(**fields) for name, fields in entry["files"].items()}
            manifest.sources[entry["folder"]] = tuple(SourceFile(**source) for source in entry["sources"])
            manifest.changed_at[entry["folder"]] = entry["imported_at"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return manifest


def describe_rows(shape: SeriesKind, frame: pl.DataFrame) -> StoredFile:
    """The manifest entry of a file with these rows."""
    column = frame[shape.time] if shape.time else None
    if column is not None and column.null_count():
        column = column.drop_nulls()
    times = np.empty(0, dtype=np.int64) if column is None else _numbers(column, 0)
    first, last = (int(times.min()), int(times.max())) if len(times) else (None, None)
    return StoredFile(frame.height, first, last, content_digest(shape, frame))


def content_digest(shape: SeriesKind, frame: pl.DataFrame) -> str:
    """SHA-256 of rows in their order, column by column; how parquet packs them does not matter.

    An empty column that a later version added counts as absent, so that digests of older files do not change.
    """
    empty = {name for name in shape.later if frame[name].null_count() == frame.height}
    columns = {name: dtype for name, dtype in shape.columns.items() if name not in empty}
    total = hashlib.sha256(codec.dumps([shape.kind, list(columns), frame.height]))
    for name, dtype in columns.items():
        column = frame[name]
        if dtype == pl.String:
            texts = [None if text is None else text.encode() for text in column.to_list()]
            lengths = np.array([-1 if text is None else len(text) for text in texts], dtype="<i8")
            total.update(lengths.tobytes() + b"".join(text for text in texts if text))
            continue
        if column.null_count():
            total.update(column.is_null().to_numpy().tobytes())
        total.update(_numbers(column, False if dtype == pl.Boolean else 0).data)
    return total.hexdigest()


def _numbers(column: pl.Series, missing: int | bool) -> "np.typing.NDArray[Any]":
    # by numpy: for a small file polars expressions cost more than the hashing
    values = (column.to_physical().fill_null(missing) if column.null_count() else column).to_numpy()
    if values.dtype.kind == "M":
        values = values.astype("datetime64[ms]", copy=False).view(np.int64)
    kind = {"i": "<i8", "f": "<f8"}.get(values.dtype.kind)
    return np.ascontiguousarray(values if kind is None else values.astype(kind, copy=False))


def rebuild_manifest(root: Path, read: Reader) -> LakeManifest:
    """A manifest of the stored files, without their sources. Unreadable files are left out."""
    manifest = LakeManifest()
    for files in find_series(root):
        shape = series(files.kind)
        for path in files.paths:
            frame = read(shape, path)
            if frame is not None:
                name = path.relative_to(root).as_posix()
                manifest.record(folder_of(files.kind, name), {name: describe_rows(shape, frame)}, (), None)
    return manifest
