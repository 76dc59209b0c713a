"""Prices and candles as scripted by the test, on a clock that the test moves, and the predict source over them."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import polars as pl

from pitboss.core.errors import TransientError
from pitboss.core.instant import MINUTE_MS
from pitboss.data.hermes import OraclePrice
from pitboss.testing.prediction_services import BTC, wandering
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.data.spot import Spot
from pitboss.venues.predict.desk import Desk
from pitboss.venues.predict.live_source import PredictSource
from venues.predict.scene import NOW


@dataclass
class ScriptedHermes:
    """A scripted Hermes: a price for each second, errors, and separate errors for past prices."""

    now: Callable[[], int]
    price: Callable[[int], float] = wandering
    error: Exception | None = None
    past_error: Exception | None = None
    conf: Decimal = Decimal(3)
    lag_ms: int = 1_000
    recalled: list[int] = field(default_factory=list)

    def price_at(self, second: int) -> OraclePrice:
        return OraclePrice(BTC, Decimal(repr(self.price(second))), self.conf, second * 1000)

    async def latest(self, symbol: str) -> OraclePrice:
        if self.error is not None:
            raise self.error
        return self.price_at((self.now() - self.lag_ms) // 1000)

    async def at(self, symbol: str, at: int) -> OraclePrice:
        self.recalled.append(at)
        if self.past_error is not None:
            raise self.past_error
        return self.price_at(at // 1000)


@dataclass
class Feed:
    """A spot with its hermes, candles and clock, and the source over it."""

    at: int = NOW
    candles: str = "fine"
    caps: PredictCaps = field(default_factory=PredictCaps)
    messages: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.hermes = ScriptedHermes(lambda: self.at)
        self.spot = Spot("BTC", self.hermes, self.page, lambda: self.at)  # type: ignore[arg-type]
        self.source = PredictSource(self.spot, self.caps, ("15m", "1h"), lambda: self.at, self.messages.append)
        asyncio.run(self.spot.refresh())

    async def page(self, since: int, until: int) -> pl.DataFrame:
        if self.candles == "down":
            raise TransientError("benchmarks answers 503")
        first, last = (since, until) if self.candles == "fine" else (until - 30 * MINUTE_MS, until)
        times = list(range(-(-first // MINUTE_MS) * MINUTE_MS, last, MINUTE_MS))
        closes = [wandering(at // 1000 + 59) for at in times]
        columns = {"open_at": times, **dict.fromkeys(("open", "high", "low", "close"), closes)}
        return pl.DataFrame({**columns, "volume": [0.0] * len(times)})

    def look(self, at: int) -> None:
        self.at = at
        asyncio.run(self.spot.look())

    def bring(self, desk: Desk, before: int | None = None) -> tuple[Desk, list[Any]]:
        found = asyncio.run(self.source.update(desk, self.at if before is None else before))
        return found.world, list(found.receipts)
