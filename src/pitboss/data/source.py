"""The interface of a data source: the request, and the tasks that fetch its series.

A source is one file in `sources/` with `SOURCE = DataSource(...)`. It knows addresses, requests and the form of replies.
It does not write: `download` stores the rows.
"""

from collections.abc import Awaitable, Callable, Container, Mapping
from dataclasses import dataclass, field

import polars as pl

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.core.suggestion import suggestion
from pitboss.data.fetch import Fetcher


@dataclass(frozen=True, slots=True)
class DownloadRequest:
    """What to download. Times are open times of bars, from `from_at` up to, but not including, `to_at`."""

    venue: str
    symbols: tuple[str, ...] = ()
    intervals: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    from_at: Instant = 0
    to_at: Instant = 0
    base_url: str = ""
    urls: tuple[str, ...] = ()
    files: bool = False
    """Published files rather than the API, where a source has both."""
    key: Callable[[str], str] = field(default=lambda name: "")
    """Returns an API key by the name of its variable, or an empty text. Called only when a key is needed."""
    hide: Callable[[str], str] = str
    """Removes keys from the texts of others."""
    http_hosts: str = ""
    """Hosts besides this machine that may be sent a key over plain http."""


@dataclass(frozen=True, slots=True)
class Ranged:
    """A series that is requested span by span. `pace_ms` is its usual step, `page_ms` the span that one reply can hold."""

    kind: str
    symbol: str
    interval: str | None
    pace_ms: int
    page_ms: int
    page: Callable[[Instant, Instant], Awaitable[pl.DataFrame]]
    """Fetches the rows from one instant up to, but not including, another: in order, unique, only final ones."""


@dataclass(frozen=True, slots=True)
class SeriesRows:
    """Rows of one series that is fetched at once. `replace`: new rows replace stored ones, as for an asset table."""

    kind: str
    symbol: str | None
    frame: pl.DataFrame
    notes: tuple[str, ...] = ()
    replace: bool = False
    keys: Mapping[str, Instant] = field(default_factory=dict[str, Instant])
    """Ids and links of the items, to be remembered once the rows are stored."""


@dataclass(frozen=True, slots=True)
class StoredState:
    """The stored rows of the kind that is fetched, and the keys of items that were downloaded before."""

    frame: pl.DataFrame | None
    seen_keys: Container[str] = ()


@dataclass(frozen=True, slots=True)
class Single:
    """A download without a range of time: the state at the time of the request. `fetch` receives the stored state."""

    label: str
    kind: str
    fetch: Callable[[StoredState], Awaitable[list[SeriesRows]]]
    optional: bool = False
    """Whether the other tasks continue if this one fails."""


Task = Ranged | Single


@dataclass(frozen=True, slots=True)
class DataSource:
    """A data source. `kinds` are those it has, `usual` those that are fetched by default."""

    name: str
    venue: str
    about: str
    kinds: tuple[str, ...]
    usual: tuple[str, ...]
    needs: tuple[str, ...]
    """Which of symbols, interval, from and url it requires."""
    plan: Callable[[DownloadRequest, Fetcher], Awaitable[list[Task]]]
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    """Default addresses, for display."""

    def kinds_of(self, request: DownloadRequest) -> tuple[str, ...]:
        """The requested kinds, in this source's order."""
        for kind in request.kinds:
            if kind not in self.kinds:
                raise UserError(f"{self.name} has no {kind!r}", suggestion(kind, sorted(self.kinds), "kinds:"))
        return tuple(kind for kind in self.kinds if kind in (request.kinds or self.usual))
