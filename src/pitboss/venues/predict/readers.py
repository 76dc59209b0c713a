"""The predict protocol's readers put together: the machine's clock, chance and pauses, addresses and ids of the settings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pitboss.bootstrap.machine import SystemClock, stopwatch, unit_random
from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import UserError
from pitboss.data.fetch import Fetcher
from pitboss.data.hermes import Hermes
from pitboss.venues.predict.data.indexer import Indexer
from pitboss.venues.predict.data.wire import ManagerPosition
from pitboss.venues.predict.state import Oracle

TIMEOUT_S, ATTEMPTS = 10.0, 4
"""Somebody waits, and what comes late is stale: fewer tries than a download makes."""


@asynccontextmanager
async def open_fetcher() -> AsyncIterator[Fetcher]:
    """A fetcher for reads of this moment."""
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


def indexer(settings: Settings, fetcher: Fetcher) -> Indexer:
    """The indexer that the settings name."""
    if not settings.predict_id:
        raise UserError(
            "the id of the Predict object is not known", "set PITBOSS_PREDICT_ID, or predict_id in settings.toml"
        )
    return Indexer(fetcher, settings.predict_server_url, settings.predict_id)


def hermes(settings: Settings, fetcher: Fetcher) -> Hermes:
    """The service of prices."""
    return Hermes(fetcher, settings.hermes_url)


async def live_markets(settings: Settings, underlying: str) -> tuple[Oracle, ...]:
    """The open markets of an underlying as the indexer tells them now."""
    async with open_fetcher() as fetcher:
        return await indexer(settings, fetcher).markets(underlying)


async def live_positions(settings: Settings) -> tuple[ManagerPosition, ...]:
    """What the manager of the settings holds and held, as the indexer tells it now."""
    if not settings.predict_manager_id:
        raise UserError(
            "the id of your PredictManager is not known", "set PITBOSS_PREDICT_MANAGER_ID, or predict_manager_id"
        )
    async with open_fetcher() as fetcher:
        return await indexer(settings, fetcher).positions(settings.predict_manager_id)
