"""A child process that executes runs for a worker, one at a time: `python -m pitboss.jobs.child HOME WORKER`.

Reads lines of JSON from standard input: `{"run_id", "epoch"}` is a run to execute, `{"stop": true}` stops it at the next
tick. Writes one line for each run. The worker sends the heartbeats and records a stop. When the worker exits, standard input
ends and this process exits at once: everything that matters has been committed.
"""

import asyncio
import os
import queue
import sys
import threading
from pathlib import Path
from typing import Literal, TextIO

import orjson

from pitboss.bootstrap.logs import start_logs
from pitboss.bootstrap.settings import Settings, load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core.errors import RunCancelled
from pitboss.runs.run import work
from pitboss.sim.watch import Watch
from pitboss.store.lifecycle import LeaseLost
from pitboss.store.queue import Lease
from pitboss.store.retry import Unreachable, retry_while_unreachable

RunOutcome = Literal["done", "stopped", "lost", "unreachable"]
"""How the execution ended, for the worker; the result of the run itself is in the database."""


def main(home: str, worker: str) -> None:
    """Execute runs until standard input ends."""
    settings = load_settings(Path(home))
    start_logs(settings.log_level, settings.log_file)
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the code of a venue or a library prints must not be read as a reply
    requests: queue.SimpleQueue[dict[str, object]] = queue.SimpleQueue()
    stop = threading.Event()
    threading.Thread(target=_listen, args=(requests, stop), name="listen", daemon=True).start()
    serve(settings, worker, requests, replies, stop)


def serve(
    settings: Settings,
    worker: str,
    requests: "queue.SimpleQueue[dict[str, object]]",
    replies: TextIO,
    stop: threading.Event,
) -> None:
    """Execute requested runs in a loop that never ends."""
    workspace: Workspace | None = None
    while True:
        line = requests.get()
        try:
            workspace = workspace or open_workspace(settings)
            outcome = asyncio.run(execute(workspace, worker, str(line["run_id"]), int(str(line["epoch"])), stop))
            workspace.database.close_idle()
        except Unreachable:
            outcome = "unreachable"
        replies.write(orjson.dumps({"outcome": outcome}).decode() + "\n")
        replies.flush()


async def execute(workspace: Workspace, worker: str, run_id: str, epoch: int, stop: threading.Event) -> RunOutcome:
    """Execute a run under the worker's lease."""
    try:
        run = await retry_while_unreachable(lambda: workspace.runs.get(run_id))
        if run.lease_epoch != epoch:
            return "lost"
        logged = workspace.settings.log_commits
        await work(workspace, Lease(run, epoch, worker), Watch(stop=stop.is_set), logged=logged)
    except RunCancelled:
        return "stopped"
    except LeaseLost:
        return "lost"
    except Unreachable:
        return "unreachable"
    return "done"


def _listen(requests: "queue.SimpleQueue[dict[str, object]]", stop: threading.Event) -> None:
    for text in sys.stdin:
        line = orjson.loads(text)
        if line.get("stop"):
            stop.set()
        else:
            stop.clear()  # here, in the order of the lines: a stop that follows applies to this run
            requests.put(line)
    os._exit(0)  # the worker is gone: not even a pending exception may delay the exit


if __name__ == "__main__":
    main(*sys.argv[1:])
