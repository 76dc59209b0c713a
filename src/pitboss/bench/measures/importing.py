"""Importing a year of 5m bars: reading, judging and storing a parquet file."""

from collections.abc import Iterable
from itertools import count
from time import perf_counter

import polars as pl

from pitboss.bench.market import Shape, frame, walk
from pitboss.bench.measure import Bench, Measure
from pitboss.bench.row import Row
from pitboss.bench.timing import interleave, seconds
from pitboss.data.importing import import_paths
from pitboss.data.lake import Lake


def measure(bench: Bench) -> Iterable[Row]:
    """Against polars reading the same file and writing it again, which is the least that has to happen."""
    folder = bench.grounds.folder / "import" / "5m"
    folder.mkdir(parents=True)
    path = folder / "SOL.parquet"
    table = frame(walk("SOL", Shape(bench.scale.year_days))).rename({"open_at": "time"})
    table.write_parquet(path)
    numbers = count()

    def once() -> float:
        lake = Lake(bench.grounds.folder / f"imported-{next(numbers)}")
        began = perf_counter()
        import_paths(lake, [path])
        return perf_counter() - began

    taken = interleave(
        {
            "import": once,
            "copy": lambda: seconds(lambda: pl.read_parquet(path).write_parquet(folder / "copy.parquet.part")),
        },
        bench.repeats,
    )
    note = f"{table.height:,} bars, checked row by row"
    yield Row(
        "import of a year of 5m bars", taken["import"] * 1e3, "ms", "copy by polars", taken["copy"] * 1e3, note=note
    )


MEASURE = Measure("importing", "importing a year of 5m bars", measure, 60)
