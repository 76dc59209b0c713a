"""A process that does runs for a worker, one at a time: `python -m pitboss.jobs.child HOME WORKER`.

Lines of JSON come in on standard input: `{"run_id", "epoch"}` is a run to do, `{"stop": true}` asks it to stop at the next
tick. One line goes out for each run. The worker beats for it and writes a stop down; when the worker is gone, standard input
ends, and so does this process, at once: everything that counts has been committed.
"""

import asyncio
import os
import queue
import sys
import threading
from pathlib import Path
from typing import Literal

import orjson

from pitboss.bootstrap.logs import start_logs
from pitboss.bootstrap.settings import Settings, load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core.errors import RunCancelled
from pitboss.runs.run import work
from pitboss.sim.watch import Watch
from pitboss.store.lifecycle import LeaseLost
from pitboss.store.queue import Lease
from pitboss.store.retry import Unreachable, patiently

Word = Literal["done", "stopped", "lost", "away"]
"""How a run went, for the worker: its own end is in the database."""


def main(home: str, worker: str) -> None:
    """Do runs until standard input ends."""
    settings = load_settings(Path(home))
    start_logs(settings.log_level, settings.log_file)
    asked: queue.SimpleQueue[dict[str, object]] = queue.SimpleQueue()
    stop = threading.Event()
    threading.Thread(target=_listen, args=(asked, stop), name="listen", daemon=True).start()
    serve(settings, worker, asked, stop)


def serve(
    settings: Settings, worker: str, asked: "queue.SimpleQueue[dict[str, object]]", stop: threading.Event
) -> None:
    """Do what is asked, for ever."""
    workspace: Workspace | None = None
    while True:
        line = asked.get()
        try:
            workspace = workspace or open_workspace(settings)
            word = asyncio.run(one(workspace, worker, str(line["run_id"]), int(str(line["epoch"])), stop))
        except Unreachable:
            word = "away"
        sys.stdout.write(orjson.dumps({"word": word}).decode() + "\n")
        sys.stdout.flush()


async def one(workspace: Workspace, worker: str, run_id: str, epoch: int, stop: threading.Event) -> Word:
    """One run under a lease that the worker has."""
    try:
        run = await patiently(lambda: workspace.runs.get(run_id))
        if run.lease_epoch != epoch:
            return "lost"
        logged = workspace.settings.log_commits
        await work(workspace, Lease(run, epoch, worker), Watch(stop=stop.is_set), logged=logged)
    except RunCancelled:
        return "stopped"
    except LeaseLost:
        return "lost"
    except Unreachable:
        return "away"
    return "done"


def _listen(asked: "queue.SimpleQueue[dict[str, object]]", stop: threading.Event) -> None:
    for text in sys.stdin:
        line = orjson.loads(text)
        if line.get("stop"):
            stop.set()
        else:
            stop.clear()  # here, in the order of the lines: a stop that follows is for this run
            asked.put(line)
    os._exit(0)  # nobody listens any more: not even an exception may keep us


if __name__ == "__main__":
    main(*sys.argv[1:])
