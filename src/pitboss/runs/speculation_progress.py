"""Stores the counters of speculation every few seconds while a run is executed, so that its progress can show them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from pitboss.sim.speculation import Speculation
from pitboss.store.database import Database
from pitboss.store.retry import Unreachable
from pitboss.store.speculation_counts import SpeculationCounts, write_counts

EVERY_S = 2.0


@asynccontextmanager
async def stored_counts(database: Database, run_id: str, epoch: int, plan: Speculation | None) -> AsyncIterator[None]:
    """Store the counters during a block and at its end. A database that is away does not stop the run."""
    if plan is None:
        yield
        return
    stored = SpeculationCounts(0, 0)

    async def write() -> None:
        nonlocal stored
        counts = SpeculationCounts(plan.tally.launched, plan.tally.used)
        if counts != stored:
            with suppress(Unreachable):
                await asyncio.to_thread(write_counts, database, run_id, epoch, counts)
                stored = counts

    async def write_on() -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            await write()

    task = asyncio.create_task(write_on())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await write()
