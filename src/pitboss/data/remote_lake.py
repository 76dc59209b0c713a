"""A lake in object storage, read like a local one: the series that a run reads are fetched, verified and cached.

The newest push is looked up once, at the first use; everything is read from that push afterwards, whatever is pushed
later, and `pin` identifies it. The index alone tells which series exist; a series is fetched when its folder is used. It
is read-only: lakes are written where data is imported, and pushed (`lake_push`).
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import NoReturn

from pitboss.core.errors import UserError
from pitboss.core.instant import INTERVALS
from pitboss.data.lake import Lake
from pitboss.data.lake_cache import FetchResult, LakeCache, newest_pin
from pitboss.data.lake_index import MARKER, LakeIndex
from pitboss.data.manifest import MANIFEST, folder_of
from pitboss.data.object_storage import Address, ObjectSource, ObjectStorage, open_objects
from pitboss.data.series_files import PART, SeriesFiles, group_files


def open_remote(
    address: Address, variables: Callable[[], Mapping[str, str]], folder: Path, pin: str = ""
) -> "RemoteLake":
    """The lake at an address, cached in a folder. No request is made before the first use.

    `pin` selects one push; else the address does, else it is the newest. `variables` is called whenever something is
    fetched, because short-lived keys are renewed.
    """
    opened: list[tuple[Mapping[str, str], ObjectStorage]] = []

    def objects() -> ObjectStorage:
        now = variables()
        if not opened or opened[-1][0] != now:
            opened[:] = [(now, open_objects(address, now))]
        return opened[-1][1]

    return RemoteLake(ObjectSource(str(address), objects), LakeCache(folder), pin or address.pin)


def read_only_error(address: str) -> UserError:
    """The error for an attempt to write to such a lake."""
    return UserError(
        f"the lake of this workspace is {address}, which is read-only",
        "import in a workspace without the setting `lake`, then `pitboss data push ADDRESS`",
    )


class RemoteLake(Lake):
    """The lake of one push."""

    def __init__(self, source: ObjectSource, cache: LakeCache, pin: str = "") -> None:
        self._source = source
        self._cache = cache
        self._requested_pin = pin

    @property
    def address(self) -> str:
        """The address, without the pin."""
        return self._source.address

    @cached_property
    def pin(self) -> str:
        """The digest of the push that is read."""
        return self._requested_pin or newest_pin(self._source)

    @cached_property
    def index(self) -> LakeIndex:
        """The files of that push."""
        return self._cache.index(self._source, self.pin)

    @cached_property
    def root(self) -> Path:  # pyright: ignore[reportIncompatibleVariableOverride]  known only after a lookup
        """The folder of the cached files: the manifest, and the series used so far."""
        self._fetch([MANIFEST])
        return self._cache.root(self.pin)

    def fetch_all(self) -> FetchResult:
        """Fetch every file that is not cached."""
        return self._fetch(self.index.files)

    # listing

    def revision(self) -> object:
        """The push that it shows."""
        return self.pin

    def folder(self, kind: str, venue: str, symbol: str | None, interval: str | None) -> Path:
        """The folder of one series, with all its files."""
        path = super().folder(kind, venue, symbol, interval)
        self._fetch(self._names.get(path.relative_to(self.root).as_posix(), ()))
        return path

    def series_files(self, kind: str | None = None, venue: str | None = None) -> list[SeriesFiles]:
        """The files of every series, all of them fetched."""
        paths = (path for files in self._indexed(kind, venue) for path in files.paths)
        self._fetch(path.relative_to(self.root).as_posix() for path in paths)
        return super().series_files(kind, venue)

    def venues(self, kind: str | None = None) -> "list[str]":
        """Venues with any data, or with data of one kind."""
        return sorted({files.venue for files in self._indexed(kind)})

    def symbols(self, venue: str) -> "list[str]":
        """Symbols of a venue that have bars."""
        return sorted({files.symbol or "" for files in self._indexed("bars", venue)})

    def intervals(self, venue: str, symbol: str) -> "list[str]":
        """Intervals in which there are bars of a symbol, finest first."""
        intervals = {files.interval for files in self._indexed("bars", venue) if files.symbol == symbol}
        return [interval for interval in INTERVALS if interval in intervals]

    def synthetic_note(self, venue: str) -> str | None:
        """The text of the marker of a generated venue."""
        is_marked = f"meta/venue={venue}/{MARKER}" in self.index.files
        return super().synthetic_note(venue) if is_marked else None

    @cached_property
    def _names(self) -> Mapping[str, "list[str]"]:
        """Names of files by the folder of their series."""
        names: dict[str, list[str]] = {}
        for name in self.index.files:
            kind, slash, _ = name.partition("/")
            if slash:
                folder = folder_of(kind, name) if name.endswith(f"/{PART}") else name.rpartition("/")[0]
                names.setdefault(folder, []).append(name)
        return names

    def _indexed(self, kind: str | None = None, venue: str | None = None) -> "list[SeriesFiles]":
        """The series of the index, whether fetched or not."""
        return [files for files in self._all_indexed if kind in (None, files.kind) and venue in (None, files.venue)]

    @cached_property
    def _all_indexed(self) -> "list[SeriesFiles]":
        return group_files(
            self.root, [self.root / name for name in sorted(self.index.files) if name.endswith(f"/{PART}")]
        )

    def _fetch(self, names: Iterable[str]) -> FetchResult:
        return self._cache.fetch(self._source, self.pin, self.index, names)

    # writing

    def _refuse_write(self, *args: object, **options: object) -> NoReturn:
        """Refused: the lake is read-only."""
        raise read_only_error(self.address)

    writing = mark_synthetic = drop_synthetic = _refuse_write
