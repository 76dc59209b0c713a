"""`pitboss worker`: execute queued runs."""

import os
import signal
from typing import Annotated

from pitboss.core.errors import UserError
from pitboss.terminal import screen
from pitboss.terminal.exit_codes import INTERRUPTED
from pitboss.terminal.options import Duration, WholeNumber, option
from pitboss.terminal.workspace_options import Location

MAX_RUNS = 1_024
MAX_PROCESSES = 1_024


def worker(
    *,
    concurrency: Annotated[
        WholeNumber | None, option("--concurrency", "Number of concurrent runs. Default: the setting worker_runs.")
    ] = None,
    processes: Annotated[
        WholeNumber | None,
        option("--processes", "Processes for runs that call no model; 0: none. Default: one for each core."),
    ] = None,
    idle_exit: Annotated[
        Duration | None, option("--idle-exit", "Exit after this time without a run, such as 30s or 5m. Default: never.")
    ] = None,
    any_build: Annotated[
        bool, option("--any-build", "Also execute runs of other builds of pitboss; their results may differ.")
    ] = False,
    location: Location,
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

    if concurrency is not None and not 1 <= concurrency <= MAX_RUNS:
        raise UserError(f"--concurrency: {concurrency} is not from 1 to {MAX_RUNS}", "for example --concurrency 16")
    if processes is not None and not 0 <= processes <= MAX_PROCESSES:
        raise UserError(f"--processes: {processes} is not from 0 to {MAX_PROCESSES}", "for example --processes 4")
    with location.workspace() as workspace, telemetry(workspace.settings) as tracer:
        queue = open_queue(workspace)
        settings = worker_settings(
            workspace.settings,
            processes=(os.cpu_count() or 1) if processes is None else processes,
            idle_exit_s=None if idle_exit is None else idle_exit / 1_000,
            concurrency=concurrency,
            any_build=any_build,
        )
        queue_worker = Worker(workspace, queue, worker_name(), settings, tracer=tracer)
        screen.note(f"worker {queue_worker.name}, build {settings.build or 'any'}: Ctrl-C returns its runs and exits")
        with stopped_by_signals(queue_worker) as signals:
            count = asyncio.run(queue_worker.run())
        ready = queue.depth().ready
        screen.note(f"worker {queue_worker.name} exits after {count} {'run' if count == 1 else 'runs'}")
        if ready and idle_exit is not None and settings.build is not None:
            screen.note(f"{ready} queued runs belong to another build or wait for a limit")
            screen.note("hint: start a worker of that build, or one with --any-build")
    return INTERRUPTED if signal.SIGINT in signals else 0
