"""Importing a year of 5m bars, as one file and as one a day: reading, judging, hashing and storing parquet files."""

from collections.abc import Iterable
from itertools import count
from pathlib import Path
from time import perf_counter

import polars as pl

from pitboss.data.importing import import_paths
from pitboss.data.lake import Lake
from pitboss_dev.bench.market import BARS_A_DAY, MarketShape, frame, walk
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import BenchRow, RatioGate
from pitboss_dev.bench.timing import Side, interleave, seconds

GATE = RatioGate("at most", 5.0)
_NUMBERS = count()


_CALENDAR = "scheduled_at,kind,title\n" + "".join(
    f"2025-{1 + place % 12:02d}-{1 + place // 12:02d}T18:00:00Z,fomc,Statement {place}\n" for place in range(32)
)


def measure(bench: Bench) -> Iterable[BenchRow]:
    """Against polars reading the same files and writing them again, which is the least that has to happen."""
    table = frame(walk("SOL", MarketShape(bench.scale.year_days))).rename({"open_at": "time"})
    folder = bench.grounds.folder / "import"
    whole = _written(folder / "whole", [table])
    daily = _written(folder / "daily", list(table.iter_slices(BARS_A_DAY)))
    small = folder / "calendar.csv"
    small.write_text(_CALENDAR)
    again = Lake(folder / "again")
    import_paths(again, whole)
    sides: dict[str, Side] = {
        "whole": _importing(bench, whole),
        "copy": _copying(folder, whole),
        "daily": _importing(bench, daily),
        "daily copy": _copying(folder, daily),
        "again": lambda: seconds(lambda: import_paths(again, whole)),
        "small": _importing(bench, [small]),
        "small copy": lambda: seconds(lambda: pl.read_csv(small).write_parquet(folder / "copy.part")),
    }
    taken = {name: value * 1e3 for name, value in interleave(sides, bench.repeats).items()}
    note = f"{table.height:,} bars, checked row by row"
    copied = "copy by polars"
    yield BenchRow("import of a year of 5m bars", taken["whole"], "ms", copied, taken["copy"], GATE, note)
    note = f"{len(daily)} files, one a day"
    yield BenchRow("import of a year in daily files", taken["daily"], "ms", copied, taken["daily copy"], GATE, note)
    note = "32 events in one small file"
    yield BenchRow("import of a calendar", taken["small"], "ms", copied, taken["small copy"], GATE, note)
    note = "nothing changes"
    yield BenchRow("import of the same year again", taken["again"], "ms", copied, taken["copy"], GATE, note)


def _written(folder: Path, tables: list[pl.DataFrame]) -> list[Path]:
    paths: list[Path] = []
    for number, table in enumerate(tables):
        path = folder / f"{number:04d}" / "5m" / "SOL.parquet"
        path.parent.mkdir(parents=True)
        table.write_parquet(path)
        paths.append(path)
    return paths


def _importing(bench: Bench, paths: list[Path]) -> Side:
    def once() -> float:
        lake = Lake(bench.grounds.folder / f"imported-{next(_NUMBERS)}")
        began = perf_counter()
        import_paths(lake, paths)
        return perf_counter() - began

    return once


def _copying(folder: Path, paths: list[Path]) -> Side:
    def once() -> None:
        for path in paths:
            pl.read_parquet(path).write_parquet(folder / "copy.part")

    return lambda: seconds(once)


MEASURE = Measure("importing", "importing a year of 5m bars", measure, 60)
