"""What a measurement is, and what it is given."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from pitboss_dev.bench.row import BenchRow
from pitboss_dev.bench.trial import Grounds


@dataclass(frozen=True, slots=True)
class Scale:
    """How much work a measurement does. The defaults are what the gates are about; tests use less."""

    year_days: int = 365
    month_days: int = 30
    model_ticks: int = 1_500
    memory_symbols: int = 8
    memory_ticks: int = 2_000
    calls: int = 2_000
    months: int = 12


FULL = Scale()
TINY = Scale(year_days=4, month_days=4, model_ticks=30, memory_symbols=2, memory_ticks=10, calls=20, months=2)
"""Enough to see that everything runs; its numbers mean nothing."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Grounds to work on, how much to do, and who else is measured."""

    grounds: Grounds
    scale: Scale
    repeats: int
    peers: tuple[str, ...]
    peers_folder: Path
    say: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Measure:
    """One measurement: a name to ask for it, what it measures, and the function that gives its rows."""

    name: str
    summary: str
    run: Callable[[Bench], Iterable[BenchRow]]
    place: int = 50
