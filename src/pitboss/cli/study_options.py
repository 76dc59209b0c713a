"""The options of execution and output that `pitboss sweep` and `pitboss arena` share.

The options of their runs are `RangeOptions` in `terminal/options.py`; what a study varies is declared by its command.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from pitboss.terminal.options import Json, given

Out = Annotated[Path | None, given("--out", "File for the page. Default: under reports in the workspace.")]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How a study is executed and reported."""

    name: Annotated[str, given("--name", "A name that makes it another study, though all else is the same.")] = ""
    executor: Annotated[
        Literal["auto", "here", "local", "ray"],
        given("--executor", "Who does the runs: this process, workers on this machine, workers on Ray, or what fits."),
    ] = "auto"
    concurrency: Annotated[int, given("--concurrency", "Runs at once in this process.")] = 4
    estimate: Annotated[bool, given("--estimate", "Say what it would cost, and do nothing.")] = False
    pilot: Annotated[
        bool, given("--pilot", "Ask five ticks of each model for real first, and estimate from those.")
    ] = False
    out: Out = None
    json: Json = False


USUAL = Manner()
