"""Pyth Hermes: the price of a feed as it is now, or as it was first published at or after a second.

One feed, one price: no candles (those are `sources.pyth`), no stream, no proof. The parsed part of a reply is read and
validated; the signed part is for chains.
"""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from pitboss.core.errors import UserError
from pitboss.core.instant import SECOND_MS, Instant, iso
from pitboss.core.noun import noun
from pitboss.core.suggestion import suggestion
from pitboss.data.fetch import Fetcher, MalformedReply, Query, Reply, RequestRefused, address

URL = "https://hermes.pyth.network"
REQUESTS, WINDOW_S = 30, 10.0
"""The limit of the service; above it a client is blocked for a minute."""
MOST_BYTES = 2**20
AHEAD_MS = 10 * SECOND_MS
"""Tolerance for differing clocks. A price from further in the future would count as fresh for too long."""
MOST_EXPONENT = 18
MOST_PRICE = Decimal(10) ** 12
BILLION = 1_000_000_000
FEEDS = {
    "BTC": "e62df6c8b4a85fe1a67db44dc12de5db330f7ac66b72dc658afedf0f4a415b43",
    "ETH": "ff61491a931112ddf1bd8147cd1b641375f79f5825126d665480874634fd0ace",
}
"""Feeds of USD prices by symbol. They are the same on every chain."""

_ID = re.compile(r"[0-9a-f]{64}")
_WHOLE = re.compile(r"-?[0-9]{1,20}")


@noun
class OraclePrice:
    """A price with its confidence interval (one standard deviation), in USD."""

    feed_id: str
    price: Decimal
    confidence: Decimal
    published_at: Instant

    @property
    def units(self) -> int:
        """The price in billionths, rounded down, as the predict protocol counts."""
        return int(self.price * BILLION)


def feed_of(symbol: str) -> str:
    """The feed of a symbol, or a feed's own id."""
    feed_id = FEEDS.get(symbol.upper()) or symbol.lower().removeprefix("0x")
    if not _ID.fullmatch(feed_id):
        raise UserError(
            f"no Pyth feed is known for {symbol!r}", f"{suggestion(symbol, FEEDS)}; or give a feed id of 64 hex digits"
        )
    return feed_id


class Hermes:
    """A client of the service."""

    def __init__(self, fetcher: Fetcher, base_url: str = "") -> None:
        self._base = address(base_url or URL)
        self._fetcher = fetcher
        self._budget = fetcher.budget(REQUESTS, WINDOW_S)

    async def latest(self, symbol: str) -> OraclePrice:
        """The newest price of a symbol or feed."""
        feed_id = feed_of(symbol)
        return await self._ask("latest", feed_id, lambda reply: parse_price(reply.json(), feed_id, reply.asked_at))

    async def at(self, symbol: str, at: Instant) -> OraclePrice:
        """The first price published at or after an instant, by the second."""
        feed_id, second = feed_of(symbol), -(-at // SECOND_MS)

        def parse(reply: Reply) -> OraclePrice:
            price = parse_price(reply.json(), feed_id, reply.asked_at)
            if price.published_at < second * SECOND_MS:
                raise MalformedReply(
                    f"a price from {iso(second * SECOND_MS)} on was requested, and an earlier one received"
                )
            return price

        try:
            return await self._ask(str(second), feed_id, parse)
        except RequestRefused as error:
            if error.status != 404:
                raise
            raise UserError(
                f"Pyth has no price of {symbol} at {iso(second * SECOND_MS)}", "the service keeps only some months"
            ) from None

    async def _ask(self, moment: str, feed_id: str, parse: Callable[[Reply], OraclePrice]) -> OraclePrice:
        query = Query(
            f"{self._base}/v2/updates/price/{moment}", {"ids[]": feed_id, "parsed": "true"}, most_bytes=MOST_BYTES
        )
        return await self._fetcher.ask(query, parse, self._budget)


def parse_price(value: Any, feed_id: str, now: Instant) -> OraclePrice:
    """The price of one feed in the parsed part of a reply; `MalformedReply` if there is no valid one."""
    listed = value.get("parsed") if isinstance(value, dict) else None
    if not isinstance(listed, list):
        raise MalformedReply("the reply has no parsed prices")
    entries = [entry for entry in listed if isinstance(entry, dict) and _same(entry.get("id"), feed_id)]
    if len(entries) != 1 or not isinstance(entries[0].get("price"), dict):
        raise MalformedReply("the reply does not have exactly one price of the requested feed")
    fields = entries[0]["price"]
    exponent, second = fields.get("expo"), fields.get("publish_time")
    if not _is_int(exponent) or abs(exponent) > MOST_EXPONENT:
        raise MalformedReply("the price has no usable exponent")
    price, confidence = (_scaled(fields.get(name), exponent, name) for name in ("price", "conf"))
    if not 0 < price < MOST_PRICE or not 0 <= confidence < MOST_PRICE:
        raise MalformedReply("the price or its confidence is out of range")
    if not _is_int(second) or not 0 < second * SECOND_MS <= now + AHEAD_MS:
        raise MalformedReply("the price has no time, or a time in the future")
    return OraclePrice(feed_id, price, confidence, second * SECOND_MS)


def _scaled(value: Any, exponent: int, name: str) -> Decimal:
    # sent as text: a JSON number would lose digits in other programs
    if not isinstance(value, str) or not _WHOLE.fullmatch(value):
        raise MalformedReply(f"{name} is not a whole number written as text")
    return Decimal(value).scaleb(exponent)


def _same(value: Any, feed_id: str) -> bool:
    return isinstance(value, str) and value.lower().removeprefix("0x") == feed_id


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
