"""The exchange's WebSocket stream, kept alive: connects, subscribes, pings, and reconnects with exponential backoff.

A connection ends when a ping is not answered, a subscription is not confirmed, a subscribed stream stays silent, or too many
messages cannot be read. It gives messages to its listener and does not interpret them. It never raises for what the exchange or
the network does; `problem` describes the present state.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, NoReturn

import orjson

from pitboss.core.backoff import backoff_s
from pitboss.core.noun import noun
from pitboss.venues.perp.hyperliquid.market_messages import MalformedMessage
from pitboss.venues.perp.hyperliquid.ws_connection import Connect, TextSocket

PING_S = 5.0
PONG_S = 9.0
"""A ping is sent every 5 s and has to be answered in 9 s: a dead connection is replaced within 15 s."""
SILENT_S = 45.0
"""Without any message but pongs for this long the subscriptions are taken as lost."""
STABLE_S = 30.0
"""A connection that lived this long resets the backoff; one that flaps does not."""
FIRST_PAUSE_S, LONGEST_PAUSE_S, SHORTEST_PAUSE_S = 1.0, 30.0, 0.25
MOST_MALFORMED = 20
"""A connection with more unreadable messages is replaced."""
CHECK_S = 1.0
GREETING = "Websocket connection established."
CLOSE_LIMIT_S = 3.0


@noun
class Subscription:
    """One stream of the exchange: of a coin, with an `interval` for candles, or of a user, whose address is in small letters."""

    type: str
    coin: str = ""
    interval: str = ""
    user: str = ""

    def plain(self) -> dict[str, str]:
        """Return the form of the wire."""
        fields = {"type": self.type, "coin": self.coin, "interval": self.interval, "user": self.user}
        return {name: value for name, value in fields.items() if value}


class ExchangeStream:
    """Keeps one connection. `on_message(channel, data)` may raise `MalformedMessage`; `on_disconnect` follows each end."""

    def __init__(
        self,
        connect: Connect,
        on_message: Callable[[str, Any], None],
        on_disconnect: Callable[[], None],
        *,
        elapsed: Callable[[], float],
        random: Callable[[], float],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        silent_s: float = SILENT_S,
    ) -> None:
        """`silent_s`: how long a connection may carry pongs only; infinite for streams on which nothing may happen for hours."""
        self._connect = connect
        self._on_message = on_message
        self._on_disconnect = on_disconnect
        self._elapsed = elapsed
        self._random = random
        self._sleep = sleep
        self._silent_s = silent_s
        self._wanted: dict[Subscription, None] = {}
        self._confirmed: set[Subscription] = set()
        self._socket: TextSocket | None = None
        self._opened_s = self._data_s = self._subscribed_s = 0.0
        self._ping_s: float | None = None
        self._last_ping_s = 0.0
        self._failures = 0
        self.connections = 0
        """Connections made so far; the number identifies the present one."""
        self.attempts = 0
        self.malformed = 0
        """Unreadable messages of the present connection."""
        self.problem = "the stream is not connected yet"

    def is_subscribed(self, subscription: Subscription) -> bool:
        """Whether the exchange has confirmed a subscription on the present connection."""
        return subscription in self._confirmed

    async def subscribe(self, subscriptions: Iterable[Subscription]) -> None:
        """Add subscriptions; they are repeated on every connection."""
        new = [subscription for subscription in subscriptions if subscription not in self._wanted]
        self._wanted.update(dict.fromkeys(new))
        if self._socket is not None:
            with suppress(ConnectionError):  # the reader notices it too
                await self._request(self._socket, new)

    async def run(self) -> NoReturn:
        """Connect again and again."""
        while True:
            self.attempts += 1
            try:
                socket = await self._connect()
            except ConnectionError as error:
                self.problem = f"the stream is not connected: {error}"
            else:
                await self._use(socket)
            self._failures += 1
            pause = backoff_s(self._failures, self._random(), FIRST_PAUSE_S, LONGEST_PAUSE_S)
            await self._sleep(max(SHORTEST_PAUSE_S, pause))

    async def _use(self, socket: TextSocket) -> None:
        self.connections += 1
        self._opened_s = self._data_s = self._last_ping_s = self._elapsed()
        self._ping_s, self.malformed = None, 0
        self._socket = socket
        work = [asyncio.ensure_future(self._read(socket)), asyncio.ensure_future(self._check(socket))]
        try:
            await self._request(socket, list(self._wanted))
            self.problem = ""
            done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        except ConnectionError as error:
            self.problem = f"the stream is not connected: {error}"
        finally:
            self._socket = None
            self._confirmed.clear()
            if self._elapsed() - self._opened_s >= STABLE_S:
                self._failures = 0
            self._on_disconnect()
            for task in work:
                task.cancel()
            await asyncio.gather(*work, return_exceptions=True)
            with suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(CLOSE_LIMIT_S):
                    await socket.close()

    async def _request(self, socket: TextSocket, subscriptions: list[Subscription]) -> None:
        self._subscribed_s = self._elapsed()
        for subscription in subscriptions:
            body = {"method": "subscribe", "subscription": subscription.plain()}
            await socket.send(orjson.dumps(body).decode())

    async def _read(self, socket: TextSocket) -> None:
        while True:
            text = await socket.receive()
            if text == GREETING:
                continue
            try:
                self._take(text)
            except MalformedMessage:
                self.malformed += 1
                if self.malformed > MOST_MALFORMED:
                    raise ConnectionError("too many messages cannot be read") from None

    def _take(self, text: str) -> None:
        try:
            message = orjson.loads(text)
        except orjson.JSONDecodeError:
            raise MalformedMessage("not JSON") from None
        if not isinstance(message, dict) or not isinstance(message.get("channel"), str):
            raise MalformedMessage("no channel")
        channel, data = message["channel"], message.get("data")
        if channel == "pong":
            self._ping_s = None
        elif channel == "subscriptionResponse":
            self._confirm(data)
        elif channel == "error":
            raise MalformedMessage("the exchange reports an error")
        else:
            self._data_s = self._elapsed()
            self._on_message(channel, data)

    def _confirm(self, data: Any) -> None:
        plain = data.get("subscription") if isinstance(data, dict) else None
        if not isinstance(plain, dict):
            raise MalformedMessage("a confirmation without a subscription")
        if isinstance(data, dict) and data.get("method") == "subscribe":
            kind, coin, interval, user = (str(plain.get(name) or "") for name in ("type", "coin", "interval", "user"))
            subscription = Subscription(kind, coin, interval, user.lower())
            if subscription in self._wanted:
                self._confirmed.add(subscription)

    async def _check(self, socket: TextSocket) -> None:
        """Ping, and end the connection when an answer is missing."""
        while True:
            await self._sleep(CHECK_S)
            now = self._elapsed()
            if self._ping_s is not None and now - self._ping_s >= PONG_S:
                raise ConnectionError("a ping was not answered")
            if now - self._subscribed_s >= PING_S + PONG_S and len(self._confirmed) < len(self._wanted):
                raise ConnectionError("a subscription was not confirmed")
            if self._wanted and now - self._data_s >= self._silent_s:
                raise ConnectionError("the stream is silent")
            if self._ping_s is None and now - self._last_ping_s >= PING_S:
                self._ping_s = self._last_ping_s = now
                await socket.send('{"method":"ping"}')
