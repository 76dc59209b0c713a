"""The program as it is typed: the time of `--help`, of short commands and of the demo."""

import subprocess
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from time import perf_counter

from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import LIMIT, BenchRow, RatioGate, skipped
from pitboss_dev.bench.timing import interleave, seconds

DEMO_LIMIT_S = 60.0
"""`make demo` may take a minute after installation."""
LIBRARIES = "import numpy, polars, sqlalchemy, pydantic"
"""Libraries that every working command needs: loading them is the floor of its time."""


class _CommandFailed(Exception):
    """The program exited with an error."""


def measure(bench: Bench) -> Iterable[BenchRow]:
    """Help compared with an empty interpreter, the demo with a minute, short commands with loading their libraries."""
    try:
        durations = interleave({"help": lambda: _run("--help"), "bare": lambda: _python("pass")}, bench.repeats)
        yield BenchRow("pitboss --help", durations["help"] * 1e3, "ms", "python -c pass", durations["bare"] * 1e3)
    except _CommandFailed as error:
        yield skipped("pitboss --help", "ms", str(error), "python -c pass")
    gate, home = RatioGate("at most", 1.0), str(bench.folder.path / "demo")
    try:
        note = "market, run and report in a new workspace"
        yield BenchRow("pitboss demo", _run("demo", "--home", home), "s", LIMIT, DEMO_LIMIT_S, gate, note)
    except _CommandFailed as error:
        yield skipped("pitboss demo", "s", str(error), LIMIT, gate)
        return
    yield from _short_commands(home, bench)


def _short_commands(home: str, bench: Bench) -> Iterable[BenchRow]:
    """Commands with hardly any work, in the workspace of the demo."""
    skills = bench.folder.path / "skills"
    day = ("--from", "2025-03-20", "--to", "2025-03-21", "--model", "policy/hold")
    commands = {
        "pitboss runs list": ("runs", "list", "--home", home),
        "pitboss backtest of a day": ("backtest", str(skills / "trend-thesis.yaml"), *day, "--home", home),
    }
    reference = f"python -c '{LIBRARIES}'"
    sides = {name: partial(_run, *arguments) for name, arguments in commands.items()}
    try:
        _run("init", str(skills))
        durations = interleave({**sides, "libraries": lambda: _python(LIBRARIES)}, bench.repeats)
    except _CommandFailed as error:
        yield from (skipped(name, "ms", str(error), reference) for name in commands)
        return
    for name in commands:
        yield BenchRow(name, durations[name] * 1e3, "ms", reference, durations["libraries"] * 1e3)


def _run(*arguments: str) -> float:
    """Seconds of one command. Raises `_CommandFailed` with its last line."""
    start = perf_counter()
    process = subprocess.run(
        [sys.executable, "-m", "pitboss", *arguments],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        cwd=Path(__file__).anchor,  # a .pitboss folder or a module in the current folder must not be used
    )
    duration = perf_counter() - start
    if process.returncode:
        raise _CommandFailed((process.stderr.strip().splitlines() or [f"exit {process.returncode}"])[-1][:200])
    return duration


def _python(code: str) -> float:
    return seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True))


MEASURE = Measure("program", "`pitboss --help`, `pitboss demo` and short commands", measure, 70)
