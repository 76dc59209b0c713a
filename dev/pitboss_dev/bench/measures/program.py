"""The program as it is typed: how soon help, a list and a day's backtest are there, and how long the demo takes."""

import subprocess
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import LIMIT, BenchRow, RatioGate, skipped
from pitboss_dev.bench.timing import interleave, seconds

DEMO_LIMIT_S = 60.0
"""`make demo` has a minute after installation."""
LIBRARIES = "import numpy, polars, sqlalchemy, pydantic"
"""What a command that works cannot do without: loading them is the floor of its time."""


class _Failed(Exception):
    """The program did not end well."""


def measure(bench: Bench) -> Iterable[BenchRow]:
    """Help against an interpreter that does nothing; the demo against its minute; work against loading its libraries."""
    try:
        taken = interleave({"help": lambda: _run("--help"), "bare": _bare}, bench.repeats)
        yield BenchRow("pitboss --help", taken["help"] * 1e3, "ms", "python -c pass", taken["bare"] * 1e3)
    except _Failed as error:
        yield skipped("pitboss --help", "ms", str(error), "python -c pass")
    gate, home = RatioGate("at most", 1.0), str(bench.grounds.folder / "demo")
    try:
        taken_s = _run("demo", "--home", home)
        yield BenchRow(
            "pitboss demo", taken_s, "s", LIMIT, DEMO_LIMIT_S, gate, "market, run and report in a new workspace"
        )
    except _Failed as error:
        yield skipped("pitboss demo", "s", str(error), LIMIT, gate)
        return
    yield from _started(home, bench)


def _started(home: str, bench: Bench) -> Iterable[BenchRow]:
    """How long commands take that have next to nothing to do, in the workspace of the demo."""
    skills = bench.grounds.folder / "skills"
    day = ("--from", "2025-03-20", "--to", "2025-03-21", "--model", "policy/hold")
    words = {
        "pitboss runs list": ("runs", "list", "--home", home),
        "pitboss backtest of a day": ("backtest", str(skills / "trend-thesis.yaml"), *day, "--home", home),
    }
    sides = {name: partial(_run, *typed) for name, typed in words.items()}
    try:
        _run("init", str(skills))
        taken = interleave({**sides, "libraries": _libraries}, bench.repeats)
    except _Failed as error:
        yield from (skipped(name, "ms", str(error), f"python -c '{LIBRARIES}'") for name in words)
        return
    for name in words:
        yield BenchRow(name, taken[name] * 1e3, "ms", f"python -c '{LIBRARIES}'", taken["libraries"] * 1e3)


def _run(*words: str) -> float:
    ended: list[subprocess.CompletedProcess[str]] = []

    def call() -> None:
        ended.append(
            subprocess.run(
                [sys.executable, "-m", "pitboss", *words],
                capture_output=True,
                text=True,
                check=False,
                stdin=subprocess.DEVNULL,
                cwd=Path(__file__).anchor,  # a stray .pitboss or module in the current folder must not take part
            )
        )

    taken = seconds(call)
    if ended[0].returncode:
        raise _Failed((ended[0].stderr.strip().splitlines() or [f"exit {ended[0].returncode}"])[-1][:200])
    return taken


def _bare() -> float:
    return seconds(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True))


def _libraries() -> float:
    return seconds(lambda: subprocess.run([sys.executable, "-c", LIBRARIES], check=True))


MEASURE = Measure("program", "`pitboss --help`, `pitboss demo` and short commands as they are typed", measure, 70)
