"""The program as it is typed: how soon help is there, and how long the demo takes."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from pitboss.bench.measure import Bench, Measure
from pitboss.bench.row import LIMIT, Gate, Row, skipped
from pitboss.bench.timing import interleave, seconds

DEMO_LIMIT_S = 60.0
"""`make demo` has a minute after installation."""


class _Failed(Exception):
    """The program did not end well."""


def measure(bench: Bench) -> Iterable[Row]:
    """Help against an interpreter that does nothing; the demo against its minute."""
    try:
        taken = interleave({"help": lambda: _run("--help"), "bare": _bare}, bench.repeats)
        yield Row("pitboss --help", taken["help"] * 1e3, "ms", "python -c pass", taken["bare"] * 1e3)
    except _Failed as error:
        yield skipped("pitboss --help", "ms", str(error), "python -c pass")
    gate = Gate("at most", 1.0)
    try:
        taken_s = _run("demo", "--home", str(bench.grounds.folder / "demo"))
        yield Row("pitboss demo", taken_s, "s", LIMIT, DEMO_LIMIT_S, gate, "market, run and report in a new workspace")
    except _Failed as error:
        yield skipped("pitboss demo", "s", str(error), LIMIT, gate)


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


MEASURE = Measure("program", "`pitboss --help` and `pitboss demo` as they are typed", measure, 70)
