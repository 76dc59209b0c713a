"""Where series live in a lake: folders such as `bars/venue=x/interval=5m/symbol=BTC/year=2025` ↔ what they hold.

Beneath `lake` and `manifest`. Names and files only: it opens none of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from pitboss.core.instant import INTERVALS
from pitboss.data.series import SERIES, SeriesKind, series

PART = "part.parquet"


@dataclass(frozen=True, slots=True)
class SeriesFiles:
    """Where one series lives: its identity and its files, oldest first."""

    kind: str
    venue: str
    symbol: str | None
    interval: str | None
    files: tuple[Path, ...]


def find_series(root: Path, kind: str | None = None, venue: str | None = None) -> list[SeriesFiles]:
    """Every series with at least one file, sorted by venue, kind, symbol and interval."""
    kinds = [series(kind)] if kind else SERIES.values()
    folders = [folder for each in kinds if (folder := root / each.kind).is_dir()]
    return group_files(root, [path for folder in folders for path in sorted(folder.glob(f"**/{PART}"))], venue)


def group_files(root: Path, files: Iterable[Path], venue: str | None = None) -> list[SeriesFiles]:
    """Files, oldest first, as the series they belong to. A file where none should be belongs to none."""
    found: dict[tuple[str, str, str, int], SeriesFiles] = {}
    for path in files:
        kind, *parts = path.parent.relative_to(root).parts
        names = _names(parts)
        if kind not in SERIES or not _belongs(SERIES[kind], names) or (venue and names["venue"] != venue):
            continue
        interval = names.get("interval")
        key = (names["venue"], kind, names.get("symbol", ""), INTERVALS.get(interval or "", 0))
        earlier = found[key].files if key in found else ()
        found[key] = SeriesFiles(kind, names["venue"], names.get("symbol"), interval, (*earlier, path))
    return [found[key] for key in sorted(found)]


def _names(parts: list[str]) -> dict[str, str]:
    pairs = (part.partition("=") for part in parts)
    return {name: unquote(value) for name, equals, value in pairs if equals}


def _belongs(shape: SeriesKind, names: dict[str, str]) -> bool:
    wanted = {"venue"}
    wanted |= {"interval"} if shape.per_interval else set()
    wanted |= {"symbol"} if shape.per_symbol else set()
    wanted |= {"year"} if shape.time else set()
    return set(names) == wanted and (not shape.per_interval or names["interval"] in INTERVALS)
