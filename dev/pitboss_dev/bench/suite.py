"""The benchmark suite: finds the measurements, runs each in a temporary folder, collects their rows.

A measurement is one file in `measures` with `MEASURE = Measure(name, summary, run)`; adding one changes nothing here.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from pitboss.core.errors import InvariantError, UserError
from pitboss_dev.bench import measures
from pitboss_dev.bench.backtests import BenchFolder
from pitboss_dev.bench.measure import FULL, Bench, Measure, Scale
from pitboss_dev.bench.peers.environment import DEFAULT_FOLDER, REQUIREMENTS
from pitboss_dev.bench.row import BenchRow


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What to measure and how. `only` names measurements; empty means all of them."""

    only: tuple[str, ...] = ()
    scale: Scale = FULL
    repeats: int = 5
    peers: tuple[str, ...] = ("backtesting",)
    peers_folder: Path | None = None


@cache
def all_measures() -> dict[str, Measure]:
    """Every measurement by name, in the order in which they run."""
    unordered: list[Measure] = []
    for module in iter_modules(measures.__path__):
        measure = getattr(import_module(f"{measures.__name__}.{module.name}"), "MEASURE", None)
        if not isinstance(measure, Measure):
            raise InvariantError(f"bench/measures/{module.name}.py has no MEASURE = Measure(...)")
        unordered.append(measure)
    return {measure.name: measure for measure in sorted(unordered, key=lambda measure: (measure.order, measure.name))}


def run(options: BenchOptions, progress: Callable[[str], None] = lambda text: None) -> list[BenchRow]:
    """Run the measurements one after the other, which may take minutes. `progress` gets a line for each."""
    return list(iter_rows(options, progress))


def iter_rows(options: BenchOptions, progress: Callable[[str], None] = lambda text: None) -> Iterator[BenchRow]:
    """The rows as they are measured."""
    selected = _selected(options.only)
    _check_names("peer", options.peers, sorted(REQUIREMENTS))
    if options.repeats < 1:
        raise UserError("--repeats must be at least 1")
    with tempfile.TemporaryDirectory(prefix="pitboss-bench-") as folder:
        bench = Bench(
            BenchFolder(Path(folder)),
            options.scale,
            options.repeats,
            options.peers,
            options.peers_folder or DEFAULT_FOLDER,
            progress,
        )
        for measure in selected:
            progress(f"{measure.name}: {measure.summary}")
            yield from measure.run(bench)


def _selected(only: Sequence[str]) -> list[Measure]:
    by_name = all_measures()
    _check_names("measurement", only, list(by_name))
    return [measure for name, measure in by_name.items() if not only or name in only]


def _check_names(kind: str, names: Sequence[str], allowed: Sequence[str]) -> None:
    for name in names:
        if name not in allowed:
            near = get_close_matches(name, allowed, 1)
            hint = f"did you mean {near[0]}?" if near else f"one of {', '.join(allowed)}"
            raise UserError(f"there is no {kind} {name!r}", hint)
