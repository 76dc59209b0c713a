"""Builds the readers of the predict protocol from the machine's clock and the configured addresses and ids."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pitboss.bootstrap.machine import SystemClock, stopwatch, unit_random
from pitboss.core.errors import UserError
from pitboss.data.fetch import Fetcher
from pitboss.venues.predict.data.indexer import Indexer, listed_predict_ids
from pitboss.venues.predict.settings import PredictSettings
from pitboss.venues.predict.state import Oracle

TIMEOUT_S, ATTEMPTS = 10.0, 4
"""Fewer attempts than a download makes: a user waits, and a late reply is stale."""


@asynccontextmanager
async def open_fetcher() -> AsyncIterator[Fetcher]:
    """Open a fetcher for current data."""
    fetcher = Fetcher(
        now=SystemClock().now,
        elapsed=stopwatch,
        random=unit_random(),
        timeout_s=TIMEOUT_S,
        attempts=ATTEMPTS,
    )
    try:
        yield fetcher
    finally:
        await fetcher.close()


async def indexer_of(settings: PredictSettings, fetcher: Fetcher) -> Indexer:
    """Return a client of the configured indexer. An id that is not set is that of the only Predict object it lists."""
    if settings.predict_id:
        return Indexer(fetcher, settings.predict_server_url, settings.predict_id)
    ids = await listed_predict_ids(fetcher, settings.predict_server_url)
    if len(ids) == 1:
        return Indexer(fetcher, settings.predict_server_url, ids[0])
    listed = f"{len(ids)} Predict objects: {', '.join(ids[:4])}" if ids else "no market of any Predict object"
    raise UserError(f"the indexer lists {listed}", "set PITBOSS_PREDICT_ID to the one whose markets are meant")


async def live_markets(settings: PredictSettings, underlying: str) -> tuple[Oracle, ...]:
    """Return the open markets of an underlying as the indexer currently reports them."""
    async with open_fetcher() as fetcher:
        return await (await indexer_of(settings, fetcher)).markets(underlying)
