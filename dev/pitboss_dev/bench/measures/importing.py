"""Importing a year of 5m bars as one file and as daily files: reading, checking, hashing and storing parquet files."""

from collections.abc import Iterable
from itertools import count
from pathlib import Path

import polars as pl

from pitboss.data.importing import import_paths
from pitboss.data.lake import Lake
from pitboss_dev.bench.market import BARS_A_DAY, MarketShape, bars_frame, random_walk
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import BenchRow, RatioGate
from pitboss_dev.bench.timing import Side, interleave, seconds

GATE = RatioGate("at most", 5.0)
_NUMBERS = count()
_CALENDAR = "scheduled_at,kind,title\n" + "".join(
    f"2025-{1 + index % 12:02d}-{1 + index // 12:02d}T18:00:00Z,fomc,Statement {index}\n" for index in range(32)
)


def measure(bench: Bench) -> Iterable[BenchRow]:
    """Compared with polars reading the same files and writing them again, the least that an import has to do."""
    table = bars_frame(random_walk("SOL", MarketShape(bench.scale.year_days))).rename({"open_at": "time"})
    folder = bench.folder.path / "import"
    year = _write(folder / "year", [table])
    daily = _write(folder / "daily", list(table.iter_slices(BARS_A_DAY)))
    calendar = folder / "calendar.csv"
    calendar.write_text(_CALENDAR)
    full_lake = Lake(folder / "full")
    import_paths(full_lake, year)
    sides: dict[str, Side] = {
        "year": _importing(bench, year),
        "year copy": _copying(folder, year),
        "daily": _importing(bench, daily),
        "daily copy": _copying(folder, daily),
        "again": lambda: seconds(lambda: import_paths(full_lake, year)),
        "calendar": _importing(bench, [calendar]),
        "calendar copy": lambda: seconds(lambda: pl.read_csv(calendar).write_parquet(folder / "copy.part")),
    }
    ms = {name: value * 1e3 for name, value in interleave(sides, bench.repeats).items()}
    for name, side, copy, note in (
        ("import of a year of 5m bars", "year", "year copy", f"{table.height:,} bars, checked row by row"),
        ("import of a year in daily files", "daily", "daily copy", f"{len(daily)} files, one a day"),
        ("import of a calendar", "calendar", "calendar copy", "32 events in one small file"),
        ("import of the same year again", "again", "year copy", "nothing changes"),
    ):
        yield BenchRow(name, ms[side], "ms", "copy by polars", ms[copy], GATE, note)


def _write(folder: Path, tables: list[pl.DataFrame]) -> list[Path]:
    paths: list[Path] = []
    for number, table in enumerate(tables):
        path = folder / f"{number:04d}" / "5m" / "SOL.parquet"
        path.parent.mkdir(parents=True)
        table.write_parquet(path)
        paths.append(path)
    return paths


def _importing(bench: Bench, paths: list[Path]) -> Side:
    def once() -> float:
        lake = Lake(bench.folder.path / f"imported-{next(_NUMBERS)}")
        return seconds(lambda: import_paths(lake, paths))

    return once


def _copying(folder: Path, paths: list[Path]) -> Side:
    def once() -> None:
        for path in paths:
            pl.read_parquet(path).write_parquet(folder / "copy.part")

    return lambda: seconds(once)


MEASURE = Measure("importing", "importing a year of 5m bars", measure, 60)
