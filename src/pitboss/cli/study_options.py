"""The options of execution and output that `pitboss sweep` and `pitboss arena` share.

The options of their runs are `RangeOptions` in `terminal/options.py`; what a study varies is declared by its command.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from pitboss.terminal.options import Json, WholeNumber, option

Out = Annotated[Path | None, option("--out", "File of the HTML report. Default: in the workspace, under reports.")]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class StudyOptions:
    """How a study is executed and reported."""

    name: Annotated[
        str, option("--name", "Name of the study. Another name makes it another study, even with equal options.")
    ] = ""
    executor: Annotated[
        Literal["auto", "here", "local", "ray"],
        option(
            "--executor", "Where runs execute: in this process, in workers on this machine or on Ray. auto chooses."
        ),
    ] = "auto"
    concurrency: Annotated[WholeNumber, option("--concurrency", "Number of concurrent runs in this process.")] = 4
    estimate: Annotated[bool, option("--estimate", "Print the estimated cost and run nothing.")] = False
    pilot: Annotated[
        bool, option("--pilot", "First call each model for five ticks, and base the estimate on their cost.")
    ] = False
    out: Out = None
    json: Json = False


NO_OPTIONS = StudyOptions()
