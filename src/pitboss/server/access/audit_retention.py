"""Deletes old entries of the audit log while the server runs: when it starts, and then once a day."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from pitboss.core.errors import InvariantError, UserError
from pitboss.core.instant import DAY_MS, Instant
from pitboss.store.audit_log import AuditLog

LOG = logging.getLogger("pitboss.server")


@asynccontextmanager
async def pruned_daily(audit: AuditLog, now: Callable[[], Instant], days: int) -> AsyncIterator[None]:
    """Keep the entries of the last `days` days during a block; 0 keeps all."""
    if not days:
        yield
        return

    is_over = asyncio.Event()

    async def prune() -> None:
        while not is_over.is_set():
            try:
                await asyncio.to_thread(audit.prune, now() - days * DAY_MS)
            except (UserError, InvariantError) as error:  # tried again tomorrow
                LOG.warning("the audit log was not pruned", extra={"fields": {"error": str(error)}})
            with suppress(TimeoutError):
                await asyncio.wait_for(is_over.wait(), DAY_MS / 1_000)

    task = asyncio.create_task(prune())
    try:
        yield
    finally:
        is_over.set()
        await task  # what it is deleting now is deleted before the database is closed
