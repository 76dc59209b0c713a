"""What a source of data is: what was wanted of it, and the series it can go and get.

A source is one file in `sources/` with `SOURCE = Source(...)`. It knows addresses, questions and the form of replies.
It does not write: pages and what they bring are handed to `download`.
"""

from collections.abc import Awaitable, Callable, Container, Mapping
from dataclasses import dataclass, field

import polars as pl

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.data.fetch import Fetcher
from pitboss.data.series import suggestion


@dataclass(frozen=True, slots=True)
class DownloadRequest:
    """What a person asked for. Times are open times of bars: `from_at` counts, `to_at` does not."""

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
    """A key by the name of its variable, or nothing. Asked for only when it is needed."""


@dataclass(frozen=True, slots=True)
class SourcePage:
    """Rows of one reply in the columns of their kind, in order, each once, none that is not final yet."""

    frame: pl.DataFrame


@dataclass(frozen=True, slots=True)
class Ranged:
    """A series that is asked for span by span. `pace_ms` is its usual step, `page_ms` what one reply can hold."""

    kind: str
    symbol: str
    interval: str | None
    pace_ms: int
    page_ms: int
    page: Callable[[Instant, Instant], Awaitable[SourcePage]]
    """Rows from an instant up to and without another."""


@dataclass(frozen=True, slots=True)
class SeriesRows:
    """Rows of one series that came all at once. `replace`: the newest word holds, as with an asset table."""

    kind: str
    symbol: str | None
    frame: pl.DataFrame
    notes: tuple[str, ...] = ()
    replace: bool = False
    seen: Mapping[str, Instant] = field(default_factory=dict[str, Instant])
    """Ids and links to remember once the rows are stored."""


@dataclass(frozen=True, slots=True)
class StoredState:
    """What is stored already of the kind that is to come, and which items were met before."""

    frame: pl.DataFrame | None
    seen: Container[str] = ()


@dataclass(frozen=True, slots=True)
class Single:
    """Something that has no past to page through: it is as it is when asked. `bring` is told what is known."""

    label: str
    kind: str
    bring: Callable[[StoredState], Awaitable[list[SeriesRows]]]
    optional: bool = False
    """Whether the rest is still worth having if the server does not serve this."""


Task = Ranged | Single


@dataclass(frozen=True, slots=True)
class DataSource:
    """One place that data comes from. `kinds` are those it has; `usual` those that are taken unless others are named."""

    name: str
    venue: str
    about: str
    kinds: tuple[str, ...]
    usual: tuple[str, ...]
    needs: tuple[str, ...]
    """Which of symbols, interval, from and url it cannot do without."""
    plan: Callable[[DownloadRequest, Fetcher], Awaitable[list[Task]]]
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    """Default addresses, for whoever wants to know where we go."""

    def kinds_of(self, wanted: DownloadRequest) -> tuple[str, ...]:
        """The kinds that are wanted, in this source's order."""
        for kind in wanted.kinds:
            if kind not in self.kinds:
                raise UserError(f"{self.name} has no {kind!r}", suggestion(kind, self.kinds, "kinds"))
        return tuple(kind for kind in self.kinds if kind in (wanted.kinds or self.usual))
