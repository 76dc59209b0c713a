"""Starts or resumes a backtest in a workspace, to be killed by a test. Prints `ready`, the run's id and `done`.

python backtest_process.py HOME start SKILL.json FROM_MS TO_MS
python backtest_process.py HOME resume RUN_ID
"""

import asyncio
import sys
from pathlib import Path

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.core import codec
from pitboss.runs.run import resume, start
from pitboss.sim.watch import Watch
from pitboss.venues.perp.assembly import PerpRequest


def print_line(text: str) -> None:
    """Print a line and flush it: the test may kill this process right after it."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(home: str, action: str, *arguments: str) -> None:
    """Start or resume a backtest."""
    with open_workspace(load_settings(Path(home))) as workspace:
        print_line("ready")
        if action == "start":
            skill, from_at, to_at = arguments
            request = PerpRequest(codec.loads(Path(skill).read_bytes()), int(from_at), int(to_at))
            run = asyncio.run(start(workspace, request, Watch(), print_line))
        else:
            run = asyncio.run(resume(workspace, arguments[0]))
        assert run.status == "complete", run.status
    print_line("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
