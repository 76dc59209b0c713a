"""A process to be killed: starts a backtest, or goes on with one, in a workspace. Says `ready`, the run's id, `done`.

python worker.py HOME start SKILL.json FROM_MS TO_MS
python worker.py HOME resume RUN_ID
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


def say(word: str) -> None:
    """One line at once: whoever listens may kill us right after it."""
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


def work(home: str, action: str, *rest: str) -> None:
    """Do what was asked."""
    with open_workspace(load_settings(Path(home))) as workspace:
        say("ready")
        if action == "start":
            skill, from_at, to_at = rest
            request = PerpRequest(codec.loads(Path(skill).read_bytes()), int(from_at), int(to_at))
            run = asyncio.run(start(workspace, request, Watch(), say))
        else:
            run = asyncio.run(resume(workspace, rest[0]))
        assert run.status == "complete", run.status
    say("done")


if __name__ == "__main__":
    work(*sys.argv[1:])
