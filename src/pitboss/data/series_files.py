"""The files of each series in a lake, by the names of folders such as `bars/venue=x/interval=5m/symbol=BTC/year=2025`.

Used by `lake` and `manifest`. It lists files and opens none.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from pitboss.core.instant import INTERVALS
from pitboss.data.series import SERIES, SeriesKind, series

PART = "part.parquet"
YEARS = "year=[0-9][0-9][0-9][0-9]"
"""A pattern for the folders of a series that is stored by year."""
_YEAR = re.compile(r"[0-9]{4}")


@dataclass(frozen=True, slots=True)
class SeriesFiles:
    """The files of one series, oldest first, and what identifies the series."""

    kind: str
    venue: str
    symbol: str | None
    interval: str | None
    paths: tuple[Path, ...]


def find_series(root: Path, kind: str | None = None, venue: str | None = None) -> list[SeriesFiles]:
    """Every series with at least one file, sorted by venue, kind, symbol and interval."""
    kinds = [series(kind)] if kind else SERIES.values()
    folders = [folder for each in kinds if (folder := root / each.kind).is_dir()]
    return group_files(root, [path for folder in folders for path in sorted(folder.glob(f"**/{PART}"))], venue)


def group_files(root: Path, files: Iterable[Path], venue: str | None = None) -> list[SeriesFiles]:
    """Group files, oldest first, by their series. A file at an unexpected path belongs to none."""
    grouped: dict[tuple[str, str, str, int], SeriesFiles] = {}
    for path in files:
        kind, *parts = path.parent.relative_to(root).parts
        names = _names(parts)
        if kind not in SERIES or not _belongs(SERIES[kind], names) or (venue and names["venue"] != venue):
            continue
        interval = names.get("interval")
        key = (names["venue"], kind, names.get("symbol", ""), INTERVALS.get(interval or "", 0))
        earlier = grouped[key].paths if key in grouped else ()
        grouped[key] = SeriesFiles(kind, names["venue"], names.get("symbol"), interval, (*earlier, path))
    return [grouped[key] for key in sorted(grouped)]


def _names(parts: list[str]) -> dict[str, str]:
    pairs = (part.partition("=") for part in parts)
    return {name: unquote(value) for name, equals, value in pairs if equals}


def _belongs(shape: SeriesKind, names: dict[str, str]) -> bool:
    expected = {"venue": True, "interval": shape.per_interval, "symbol": shape.per_symbol, "year": bool(shape.time)}
    return (
        set(names) == {name for name, is_expected in expected.items() if is_expected}
        and (not shape.per_interval or names["interval"] in INTERVALS)
        and (not shape.time or _YEAR.fullmatch(names["year"]) is not None)
    )
