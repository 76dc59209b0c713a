"""The requests of one process to one exchange: transport, rate budget and info client, shared by market data and orders."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.venues.perp.hyperliquid.info_client import HyperliquidInfo
from pitboss.venues.perp.hyperliquid.rate_budget import RateBudget
from pitboss.venues.perp.hyperliquid.transport import ExchangeTransport, open_transport


@noun
class ExchangeAccess:
    """What sends requests to one address. The exchange counts them together, so there is one budget for all."""

    transport: ExchangeTransport
    budget: RateBudget
    info: HyperliquidInfo


def access_over(
    transport: ExchangeTransport,
    now: Callable[[], Instant],
    unit_random: Callable[[], float],
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> ExchangeAccess:
    """Return the access through a transport, with a budget of its own."""
    budget = RateBudget(unit_random)
    return ExchangeAccess(transport, budget, HyperliquidInfo(transport, budget, now, sleep))


@asynccontextmanager
async def open_access(
    base_url: str, now: Callable[[], Instant], unit_random: Callable[[], float]
) -> AsyncIterator[ExchangeAccess]:
    """Open the access to an address for the duration of the block."""
    async with open_transport(base_url) as transport:
        yield access_over(transport, now, unit_random)
