"""A measurement of the suite, and what it is run with."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from pitboss_dev.bench.backtests import BenchFolder
from pitboss_dev.bench.row import BenchRow


@dataclass(frozen=True, slots=True)
class Scale:
    """How much work a measurement does. The gates are for the defaults; tests use less."""

    year_days: int = 365
    month_days: int = 30
    model_ticks: int = 1_500
    memory_symbols: int = 8
    memory_ticks: int = 2_000
    calls: int = 2_000
    months: int = 12
    agents: int = 200


FULL = Scale()
TINY = Scale(year_days=4, month_days=4, model_ticks=30, memory_symbols=2, memory_ticks=10, calls=20, months=2, agents=3)
"""Enough to see that everything runs; its numbers mean nothing."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What a measurement is run with: a folder to work in, how much to do, which peers to measure."""

    folder: BenchFolder
    scale: Scale
    repeats: int
    peers: tuple[str, ...]
    peers_folder: Path
    progress: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Measure:
    """One measurement: its name for `--only`, a summary, the function that returns its rows. Lower `order` runs first."""

    name: str
    summary: str
    run: Callable[[Bench], Iterable[BenchRow]]
    order: int = 50
