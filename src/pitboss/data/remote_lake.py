"""A lake in object storage, read as any other: what a run asks for is fetched, checked and kept, and then read here.

The newest push is looked up once, at the first use, and everything is read from that one afterwards, whatever is pushed
meanwhile; `pin` names it. What there is, is known from the index alone; a series is fetched when its folder is asked for.
It is never written: lakes are written where they are imported, and pushed (`push`).
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import NoReturn

from pitboss.core.errors import UserError
from pitboss.core.instant import INTERVALS, Instant
from pitboss.data.lake import Lake
from pitboss.data.lake_cache import FetchResult, LakeCache, ObjectSource, newest_pin
from pitboss.data.lake_index import MARKER, LakeIndex
from pitboss.data.manifest import MANIFEST, folder_of
from pitboss.data.object_storage import Address, ObjectStorage, open_objects
from pitboss.data.series_files import PART, SeriesFiles, group_files


def open_remote(
    address: Address, variables: Callable[[], Mapping[str, str]], folder: Path, pin: str = ""
) -> "RemoteLake":
    """The lake at an address, its copies kept in a folder. Nothing is looked at before the first use.

    `pin` names one push; else the address does, or it is the newest. `variables` are asked for whenever something is
    fetched, for keys that last an hour are renewed.
    """
    opened: list[tuple[Mapping[str, str], ObjectStorage]] = []

    def objects() -> ObjectStorage:
        now = variables()
        if not opened or opened[-1][0] != now:
            opened[:] = [(now, open_objects(address, now))]
        return opened[-1][1]

    return RemoteLake(ObjectSource(str(address), objects), LakeCache(folder), pin or address.pin)


def read_only_error(where: str) -> UserError:
    """What a person is told who wants to write to such a lake."""
    return UserError(
        f"the lake of this workspace is {where}, which is only read",
        "import in a workspace without the setting `lake`, then `pitboss data push ADDRESS`",
    )


class RemoteLake(Lake):
    """Everything that one push holds."""

    def __init__(self, source: ObjectSource, cache: LakeCache, pin: str = "") -> None:
        self._source = source
        self._cache = cache
        self._asked = pin

    @property
    def where(self) -> str:
        """The address, without the push."""
        return self._source.where

    @cached_property
    def pin(self) -> str:
        """The digest of the push that is read."""
        return self._asked or newest_pin(self._source)

    @cached_property
    def index(self) -> LakeIndex:
        """The files of that push."""
        return self._cache.index(self._source, self.pin)

    @cached_property
    def root(self) -> Path:  # pyright: ignore[reportIncompatibleVariableOverride]  known only after a look
        """The folder of the copies. The manifest is there; series are when they were asked for."""
        self._bring([MANIFEST])
        return self._cache.root(self.pin)

    def bring(self) -> FetchResult:
        """Fetch everything that is not here."""
        return self._bring(self.index.files)

    # where things are

    def folder(self, kind: str, venue: str, symbol: str | None, interval: str | None) -> Path:
        """The folder of one series, with all its files."""
        path = super().folder(kind, venue, symbol, interval)
        self._bring(self._names.get(path.relative_to(self.root).as_posix(), ()))
        return path

    def places(self, kind: str | None = None, venue: str | None = None) -> list[SeriesFiles]:
        """Every series with at least one file, and all these files here."""
        found = self._places(kind, venue)
        self._bring(path.relative_to(self.root).as_posix() for place in found for path in place.files)
        return super().places(kind, venue)

    def venues(self, kind: str | None = None) -> "list[str]":
        """Venues with any data, or with data of one kind."""
        return sorted({place.venue for place in self._places(kind)})

    def symbols(self, venue: str) -> "list[str]":
        """Symbols of a venue that have bars."""
        return sorted({place.symbol or "" for place in self._places("bars", venue)})

    def intervals(self, venue: str, symbol: str) -> "list[str]":
        """Intervals in which there are bars of a symbol, finest first."""
        found = {place.interval for place in self._places("bars", venue) if place.symbol == symbol}
        return [interval for interval in INTERVALS if interval in found]

    def synthetic_note(self, venue: str) -> str | None:
        """What the marker of a generated venue says."""
        known = f"meta/venue={venue}/{MARKER}" in self.index.files
        return super().synthetic_note(venue) if known else None

    @cached_property
    def _names(self) -> Mapping[str, "list[str]"]:
        """Files by the folder of their series."""
        found: dict[str, list[str]] = {}
        for name in self.index.files:
            kind, _, rest = name.partition("/")
            if rest:
                folder = folder_of(kind, name) if name.endswith(f"/{PART}") else name.rpartition("/")[0]
                found.setdefault(folder, []).append(name)
        return found

    def _places(self, kind: str | None = None, venue: str | None = None) -> "list[SeriesFiles]":
        """What the index says there is; no file of it need be here."""
        return [each for each in self._held if kind in (None, each.kind) and venue in (None, each.venue)]

    @cached_property
    def _held(self) -> "list[SeriesFiles]":
        return group_files(
            self.root, [self.root / name for name in sorted(self.index.files) if name.endswith(f"/{PART}")]
        )

    def _bring(self, names: Iterable[str]) -> FetchResult:
        return self._cache.bring(self._source, self.pin, self.index, names)

    # writing

    def writing(self, at: Instant | None = None) -> NoReturn:
        """Refused."""
        del at
        raise read_only_error(self.where)

    def mark_synthetic(self, venue: str, text: str) -> NoReturn:
        """Refused."""
        del venue, text
        raise read_only_error(self.where)

    def drop_synthetic(self, venue: str) -> NoReturn:
        """Refused."""
        del venue
        raise read_only_error(self.where)
