"""Waiting for queued runs. Whoever waits also sees to it that somebody works: there is no service that would."""

import asyncio
from collections.abc import Callable, Sequence

from pitboss.bootstrap.workspace import Workspace
from pitboss.jobs.enqueue import ensure
from pitboss.store.lifecycle import ENDED
from pitboss.store.retry import Unreachable
from pitboss.store.runs import Run

POLL_S = 0.5
ENSURE_S = 5.0


async def ended(
    workspace: Workspace, ids: Sequence[str], tell: Callable[[list[Run]], None] = lambda runs: None
) -> list[Run]:
    """The runs when all of them have ended. `tell` is given them as they are, every now and then."""
    loop = asyncio.get_running_loop()
    ensured = float("-inf")
    while True:
        try:
            found = [workspace.runs.get(run_id) for run_id in ids]
            tell(found)
            if all(run.status in ENDED for run in found):
                return found
            if loop.time() - ensured >= ENSURE_S:
                ensured = loop.time()
                ensure(workspace)
        except Unreachable:
            ensured = float("-inf")
        await asyncio.sleep(POLL_S)
