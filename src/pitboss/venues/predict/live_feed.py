"""The data of a live run: Pyth prices and candles, and the protocol's markets unless they are those of the schedule."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from pitboss.bootstrap.machine import SystemClock, stopwatch, unit_random
from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.data.fetch import Fetcher
from pitboss.data.hermes import Hermes
from pitboss.live.world_source import WorldSource
from pitboss.venues.predict.agent import caps_of
from pitboss.venues.predict.data.indexer import Indexer
from pitboss.venues.predict.data.market_watch import MarketWatch
from pitboss.venues.predict.data.spot import Spot, candles_of
from pitboss.venues.predict.deployment import PredictDeployment
from pitboss.venues.predict.indexer_source import IndexerSource
from pitboss.venues.predict.live_source import PredictSource
from pitboss.venues.predict.observation import Tape, no_tape
from pitboss.venues.predict.readers import indexer_of
from pitboss.venues.predict.settings import PredictSettings
from pitboss.venues.predict.skill import UNDERLYING

TIMEOUT_S = 5.0
"""Timeout of a request. A later reply is no longer current; the next poll sends a new request."""


@dataclass(slots=True)
class LiveFeed:
    """The source of a run's world, and what its status and its agent read besides."""

    source: WorldSource
    spot: Spot
    polling: "asyncio.Task[Any]"
    """The task that reads prices; it ends only with a fault."""
    watch: MarketWatch | None = None
    indexer: Indexer | None = None

    @property
    def tape(self) -> Tape:
        """Return the function that gives the fills of all accounts in a market."""
        return no_tape if self.watch is None else self.watch.tape


def predict_settings(settings: Settings, deployment: PredictDeployment) -> PredictSettings:
    """Return the venue's settings with the options of a run in place of the settings they replace."""
    changes: dict[str, Any] = {
        "predict_server_url": deployment.indexer_url,
        "predict_manager_id": deployment.manager_id,
        "predict_agent_id": deployment.agent_id,
        "sui_network": deployment.network,
    }
    changes = {name: value for name, value in changes.items() if value}
    if deployment.network == "mainnet":
        changes["sui_allow_mainnet"] = True  # named on the command line, and confirmed there
    return PredictSettings.of(settings).model_copy(update=changes)


@asynccontextmanager
async def open_feed(
    settings: Settings, deployment: PredictDeployment, notify: Callable[[str], None]
) -> AsyncIterator[LiveFeed]:
    """Open the data of a run for the duration of the block. Raises `UserError` if nothing could ever be quoted."""
    async with AsyncExitStack() as stack:
        clock = SystemClock()
        fetcher = Fetcher(now=clock.now, elapsed=stopwatch, random=unit_random(), timeout_s=TIMEOUT_S, attempts=1)
        stack.push_async_callback(fetcher.close)
        context, caps = deployment.skill.context, caps_of(deployment.skill)
        spot = await _open_spot(settings, deployment, fetcher, clock.now)
        if deployment.scheduled:
            source = PredictSource(spot, caps, context.sorted_tiers(), clock.now, notify)
            polling = _start(stack, spot.watch(settings.live_poll_s))
            yield LiveFeed(source, spot, polling)
            return
        indexer = await indexer_of(predict_settings(settings, deployment), fetcher)
        watch = MarketWatch(indexer, context.underlying, context.sorted_tiers(), clock.now)
        await watch.start()
        polling = _start(stack, _poll(spot, watch, settings.live_poll_s))
        yield LiveFeed(IndexerSource(watch, caps, clock.now), spot, polling, watch, indexer)


def check_markets(settings: Settings, deployment: PredictDeployment) -> None:
    """Raise `UserError` if there is no market to trade: no indexer, or an underlying that the schedule does not have."""
    underlying = deployment.skill.context.underlying
    if not deployment.scheduled:
        if not predict_settings(settings, deployment).predict_server_url:
            raise UserError(
                "the address of the predict protocol's indexer is not set",
                "give --indexer URL or set PITBOSS_PREDICT_SERVER_URL; or --scheduled, for the markets of the schedule",
            )
    elif underlying != UNDERLYING:
        raise UserError(
            f"scheduled markets are of {UNDERLYING} only: {underlying} would never be quoted",
            f"set context.underlying in the skill to {UNDERLYING}",
        )


async def _open_spot(
    settings: Settings, deployment: PredictDeployment, fetcher: Fetcher, now: Callable[[], Instant]
) -> Spot:
    symbol = deployment.skill.context.underlying
    hermes = Hermes(fetcher, deployment.prices_url or settings.hermes_url)
    candles = await candles_of(symbol, deployment.prices_url or settings.pyth_url, fetcher)
    return Spot(symbol, hermes, candles, now)


async def _poll(spot: Spot, watch: MarketWatch, every_s: float) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(spot.watch(every_s))
        group.create_task(watch.watch(every_s))


def _start(stack: AsyncExitStack, work: Any) -> "asyncio.Task[Any]":
    """Start a task that is cancelled when the stack is closed."""
    task = asyncio.create_task(work)

    async def end() -> None:
        task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await task

    stack.push_async_callback(end)
    return task
