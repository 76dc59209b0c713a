"""The benchmark suite: finds the measurements, gives each of them grounds to work on, gathers their rows.

A measurement is one file in `measures` with `MEASURE = Measure(name, summary, run)`; adding one adds nothing here.
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
from pitboss_dev.bench.measure import FULL, Bench, Measure, Scale
from pitboss_dev.bench.peers.environment import REQUIREMENTS, default_folder
from pitboss_dev.bench.row import BenchRow
from pitboss_dev.bench.trial import Grounds


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What to measure and how. `only` names measurements; none means all of them."""

    only: tuple[str, ...] = ()
    scale: Scale = FULL
    repeats: int = 5
    peers: tuple[str, ...] = ("backtesting",)
    peers_folder: Path | None = None


@cache
def found() -> dict[str, Measure]:
    """Every measurement by its name, in the order in which they are run."""
    every: list[Measure] = []
    for module in iter_modules(measures.__path__):
        one = getattr(import_module(f"{measures.__name__}.{module.name}"), "MEASURE", None)
        if not isinstance(one, Measure):
            raise InvariantError(f"bench/measures/{module.name}.py has no MEASURE = Measure(...)")
        every.append(one)
    return {one.name: one for one in sorted(every, key=lambda one: (one.place, one.name))}


def run(options: BenchOptions, say: Callable[[str], None] = lambda text: None) -> list[BenchRow]:
    """Measure, one after the other. `say` is told what is going on; it may take minutes."""
    return list(measured(options, say))


def measured(options: BenchOptions, say: Callable[[str], None] = lambda text: None) -> Iterator[BenchRow]:
    """The rows as they become known."""
    chosen = _chosen(options.only)
    _check_names("peer", options.peers, sorted(REQUIREMENTS))
    if options.repeats < 1:
        raise UserError("--repeats must be at least 1")
    with tempfile.TemporaryDirectory(prefix="pitboss-bench-") as folder:
        bench = Bench(
            Grounds(Path(folder)),
            options.scale,
            options.repeats,
            options.peers,
            options.peers_folder or default_folder(),
            say,
        )
        for measure in chosen:
            say(f"{measure.name}: {measure.summary}")
            yield from measure.run(bench)


def _chosen(only: Sequence[str]) -> list[Measure]:
    known = found()
    _check_names("measurement", only, list(known))
    return [measure for name, measure in known.items() if not only or name in only]


def _check_names(what: str, asked: Sequence[str], known: Sequence[str]) -> None:
    for name in asked:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"one of {', '.join(known)}"
            raise UserError(f"there is no {what} {name!r}", hint)
