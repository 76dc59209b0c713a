"""The kinds of series in a lake, and the columns of each.

Used by `lake`. It defines stored rows; reading of imported files is in `table` and `importing`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from pitboss.core.errors import UserError
from pitboss.core.market import Ints
from pitboss.core.suggestion import suggestion
from pitboss.data.excerpt import display

TIME = pl.Datetime("ms", "UTC")


@dataclass(frozen=True, slots=True)
class SeriesKind:
    """How one kind is stored. `time` names the instant that orders and partitions it; `key` makes a row unique.

    `later` are columns that files of earlier versions lack; they are read as empty. `optional` columns may be empty in
    any row.
    """

    kind: str
    columns: Mapping[str, pl.DataType]
    key: tuple[str, ...]
    time: str | None
    per_symbol: bool
    per_interval: bool = False
    later: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


_TEXT = pl.String()
_NUMBER = pl.Float64()
_POINT: dict[str, pl.DataType] = {"at": TIME, "value": _NUMBER}

POINT_KINDS = ("funding", "mark", "open_interest", "oracle")

SERIES: dict[str, SeriesKind] = {
    "bars": SeriesKind(
        "bars",
        {"open_at": TIME} | dict.fromkeys(("open", "high", "low", "close", "volume"), _NUMBER),
        ("open_at",),
        "open_at",
        per_symbol=True,
        per_interval=True,
    ),
    **{kind: SeriesKind(kind, _POINT, ("at",), "at", per_symbol=True) for kind in POINT_KINDS},
    "news": SeriesKind(
        "news",
        {
            "published_at": TIME,
            "source": _TEXT,
            "text": _TEXT,
            "sentiment": _NUMBER,
            "symbols": _TEXT,
            "date_only": pl.Boolean(),
            "first_seen_at": TIME,
        },
        ("published_at", "source", "text"),
        "published_at",
        per_symbol=False,
        later=("first_seen_at",),
        optional=("sentiment", "first_seen_at"),
    ),
    "events": SeriesKind(
        "events",
        {
            "scheduled_at": TIME,
            "kind": _TEXT,
            "title": _TEXT,
            "known_at": TIME,
            "importance": _NUMBER,
            "symbols": _TEXT,
        },
        ("scheduled_at", "kind", "title"),
        "scheduled_at",
        per_symbol=False,
    ),
    "l2": SeriesKind("l2", {"at": TIME, "bids": _TEXT, "asks": _TEXT}, ("at",), "at", per_symbol=True),
    "extracted": SeriesKind(
        "extracted",
        {
            "scheduled_at": TIME,
            "kind": _TEXT,
            "symbols": _TEXT,
            "title": _TEXT,
            "known_at": TIME,
            "importance": _NUMBER,
            "confidence": _NUMBER,
            "published_at": TIME,
            "source": _TEXT,
            "text": _TEXT,
        },
        ("scheduled_at", "kind", "symbols"),
        "scheduled_at",
        per_symbol=False,
    ),
    "meta": SeriesKind(
        "meta", {"symbol": _TEXT, "size_decimals": pl.Int64(), "tiers": _TEXT}, ("symbol",), None, per_symbol=False
    ),
    "listings": SeriesKind(
        "listings",
        {"symbol": _TEXT, "listed_at": TIME, "delisted_at": TIME, "known_at": TIME},
        ("symbol",),
        None,
        per_symbol=False,
        optional=("listed_at", "delisted_at", "known_at"),
    ),
}
"""Every kind that can be stored, by name."""

ALIASES = {"book": "l2", "books": "l2"}
"""Alternative names of kinds."""


def series(kind: str) -> SeriesKind:
    """The layout of a kind; an unknown one is a `UserError`."""
    if kind not in SERIES:
        raise UserError(f"unknown kind of data {kind!r}", suggestion(kind, sorted(SERIES), "kinds:"))
    return SERIES[kind]


def epoch_ms(times: pl.Series) -> Ints:
    """The milliseconds since 1970 of a time column; of a stored one without an expression, which costs more to run."""
    if times.dtype == TIME and not times.null_count():
        return times.to_numpy().view(np.int64)
    return times.dt.epoch("ms").to_numpy()


def require_symbol(symbol: str, origin: str) -> None:
    """Refuse a symbol that cannot be shown on one line: symbols appear in tables and prompts."""
    if not symbol.strip() or not symbol.isprintable():
        raise UserError(f"{origin}: the symbol {display(symbol)} is not printable text")


def count_noun(count: int, noun: str) -> str:
    """`1 bar`, `2 bars`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
