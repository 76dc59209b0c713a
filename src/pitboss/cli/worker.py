"""`pitboss worker`: execute queued runs."""

import os
from typing import Annotated

from pitboss.core.errors import UserError
from pitboss.terminal import screen
from pitboss.terminal.options import Duration, given
from pitboss.terminal.workspace_options import Here

MOST_RUNS = 1_024
MOST_PROCESSES = 1_024


def worker(
    *,
    concurrency: Annotated[
        int | None, given("--concurrency", "Runs to work on at once. Default: the setting worker_runs.")
    ] = None,
    processes: Annotated[
        int | None,
        given("--processes", "Processes for runs that compute and ask no model; 0: none. Default: one for each core."),
    ] = None,
    idle_exit: Annotated[
        Duration | None, given("--idle-exit", "Leave after so long without a run, as 30s or 5m. Default: stay.")
    ] = None,
    any_build: Annotated[
        bool, given("--any-build", "Also take runs that another build of pitboss made, though they may end otherwise.")
    ] = False,
    place: Here,
) -> int:
    """Execute queued runs, many at once, until stopped.

    Several workers may share one database, on one machine or on many. The first Ctrl-C or SIGTERM returns the runs to
    the queue after the current tick, the second at once; another worker continues them. A killed worker loses nothing
    either.

    For example:

        pitboss worker
        pitboss worker --concurrency 64 --idle-exit 5m --db postgresql://user@host/pitboss
    """
    import asyncio

    from pitboss.bootstrap.telemetry import telemetry
    from pitboss.jobs.executors.local import stopped_by_signals
    from pitboss.jobs.worker import Worker
    from pitboss.jobs.worker_settings import open_queue, worker_name, worker_settings

    if concurrency is not None and not 1 <= concurrency <= MOST_RUNS:
        raise UserError(f"--concurrency: {concurrency} is not from 1 to {MOST_RUNS}", "for example --concurrency 16")
    if processes is not None and not 0 <= processes <= MOST_PROCESSES:
        raise UserError(f"--processes: {processes} is not from 0 to {MOST_PROCESSES}", "for example --processes 4")
    with place.workspace() as workspace, telemetry(workspace.settings.telemetry) as tracer:
        queue = open_queue(workspace)
        terms = worker_settings(
            workspace.settings,
            processes=(os.cpu_count() or 1) if processes is None else processes,
            idle_exit_s=None if idle_exit is None else idle_exit / 1_000,
            concurrency=concurrency,
            any_build=any_build,
        )
        made = Worker(workspace, queue, worker_name(), terms, tracer=tracer)
        screen.note(f"worker {made.name}, build {terms.build or 'any'}: takes runs; Ctrl-C gives them back and leaves")
        with stopped_by_signals(made):
            done = asyncio.run(made.run())
        waiting = queue.depth().ready
        screen.note(f"worker {made.name} leaves after {done} {'run' if done == 1 else 'runs'}")
        if waiting and idle_exit is not None and terms.build is not None:
            screen.note(f"{waiting} wait, made by another build or held back by a limit")
            screen.note("hint: a worker of that build takes them, or one with --any-build")
    return 0
