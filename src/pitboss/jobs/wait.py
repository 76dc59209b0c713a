"""Waiting for queued runs. The waiting process also starts missing workers, because there is no service that would."""

import asyncio
from collections.abc import Callable, Sequence

from pitboss.bootstrap.workspace import Workspace
from pitboss.jobs.enqueue import ensure_workers
from pitboss.store.lifecycle import ENDED
from pitboss.store.retry import Unreachable
from pitboss.store.runs import Run

POLL_S = 0.5
ENSURE_S = 5.0


async def wait_until_ended(
    workspace: Workspace, ids: Sequence[str], on_poll: Callable[[list[Run]], None] = lambda runs: None
) -> list[Run]:
    """Return the runs when all of them have ended. `on_poll` receives their current state at every poll."""
    loop = asyncio.get_running_loop()
    ensured_s = float("-inf")
    while True:
        try:
            runs = [workspace.runs.get(run_id) for run_id in ids]
            on_poll(runs)
            if all(run.status in ENDED for run in runs):
                return runs
            if loop.time() - ensured_s >= ENSURE_S:
                ensured_s = loop.time()
                ensure_workers(workspace)
        except Unreachable:
            ensured_s = float("-inf")
        await asyncio.sleep(POLL_S)
