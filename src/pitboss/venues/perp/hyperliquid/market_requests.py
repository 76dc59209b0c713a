"""The `/info` requests of the market feed, with replies read strictly. A reply that cannot be read is a `TransientError`."""

from collections.abc import Mapping
from typing import Any, Protocol

from pitboss.core.asset import Asset
from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import Instant
from pitboss.data.meta_rows import meta_assets, meta_rows
from pitboss.data.reply_rows import on_the_hour
from pitboss.venues.perp.hyperliquid.market_messages import (
    AssetContext,
    CandleUpdate,
    MalformedMessage,
    read_candle,
    read_contexts,
    read_number,
    read_time,
)

MOST_ROWS = 6_000


class InfoRequests(Protocol):
    """A client of `/info` with time limits, size limits and the rate budget."""

    async def post(self, body: Mapping[str, Any]) -> Any:
        """Return the JSON of the reply. Raises `TransientError` without a usable one."""
        ...


class MarketRequests:
    """Requests for market data."""

    def __init__(self, info: InfoRequests) -> None:
        self._info = info

    async def candles(self, symbol: str, interval: str, from_at: Instant, to_at: Instant) -> list[CandleUpdate]:
        """Return the candles that overlap a range, oldest first. The newest may still be open."""
        request = {"coin": symbol, "interval": interval, "startTime": from_at, "endTime": to_at}
        rows = _rows(await self._info.post({"type": "candleSnapshot", "req": request}))
        try:
            candles = [read_candle(row) for row in rows]
        except MalformedMessage as error:
            raise TransientError(f"candles of {symbol}: {error}") from None
        by_time: dict[Instant, CandleUpdate] = {}
        for candle in candles:
            if candle.symbol != symbol or candle.interval != interval:
                raise TransientError(f"candles of {symbol}: the reply is about another series")
            if by_time.setdefault(candle.open_at, candle) != candle:
                raise TransientError(f"candles of {symbol}: two rows of one time differ")
        return [by_time[open_at] for open_at in sorted(by_time)]

    async def funding(self, symbol: str, from_at: Instant) -> list[tuple[Instant, float]]:
        """Return the funding rates since an instant, oldest first, each at its hour."""
        rows = _rows(await self._info.post({"type": "fundingHistory", "coin": symbol, "startTime": from_at}))
        rates: dict[Instant, float] = {}
        try:
            for row in rows:
                if not isinstance(row, dict) or row.get("coin") != symbol:
                    raise MalformedMessage("the reply is about another symbol")
                at, rate = on_the_hour(read_time(row.get("time"))), float(read_number(row.get("fundingRate")))
                if rates.setdefault(at, rate) != rate:
                    raise MalformedMessage("two rows of one hour differ")
        except MalformedMessage as error:
            raise TransientError(f"funding of {symbol}: {error}") from None
        return sorted(rates.items())

    async def contexts(self) -> dict[str, AssetContext]:
        """Return the present context of every symbol."""
        return (await self.universe())[1]

    async def universe(self) -> tuple[dict[str, Asset], dict[str, AssetContext]]:
        """Return the properties of all symbols that can be traded, and their present contexts."""
        reply = await self._info.post({"type": "metaAndAssetCtxs"})
        try:
            contexts = read_contexts(reply)
            assets = meta_assets(meta_rows(reply, "meta")[0])
            delisted = {str(asset["name"]) for asset in reply[0]["universe"] if asset.get("isDelisted")}
        except (MalformedMessage, UserError) as error:
            raise TransientError(f"the asset table: {error}") from None
        return {symbol: asset for symbol, asset in assets.items() if symbol not in delisted}, contexts

    async def exchange_time(self) -> Instant:
        """Return the exchange's time."""
        reply = await self._info.post({"type": "exchangeStatus"})
        try:
            return read_time(reply.get("time") if isinstance(reply, dict) else None)
        except MalformedMessage as error:
            raise TransientError(f"the status of the exchange: {error}") from None


def _rows(reply: Any) -> list[Any]:
    if not isinstance(reply, list) or len(reply) > MOST_ROWS:
        raise TransientError("the reply is not a list of rows")
    return reply
