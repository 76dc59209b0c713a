"""A market feed on the fake exchange in virtual time: requests and streams without sockets, an hour in a second."""

import asyncio
from random import Random

import orjson

from pitboss.core.errors import TransientError
from pitboss.core.instant import HOUR_MS, MINUTE_MS
from pitboss.testing.hyperliquid.exchange import START as MIDNIGHT
from pitboss.testing.hyperliquid.exchange import FakeExchange
from pitboss.testing.hyperliquid.faults import FaultPlan, FaultRule
from pitboss.testing.hyperliquid.rules import VenueRules
from pitboss.testing.hyperliquid.streams import StreamHub
from pitboss.testing.hyperliquid.transport import InProcessTransport, VirtualClock, run_in_virtual_time
from pitboss.testing.hyperliquid.universe import LISTED
from pitboss.venues.perp.hyperliquid.market_feed import HyperliquidFeed
from pitboss.venues.perp.hyperliquid.market_requests import MarketRequests

TIMEOUT_S = 2.0
PERPS = LISTED[:3]
START = MIDNIGHT + 55 * MINUTE_MS
HOUR = MIDNIGHT + HOUR_MS
"""The first full hour of a scene."""


class PlainInfo:
    """Requests to `/info` over the in-process transport, without a rate budget. Counts them by type."""

    def __init__(self, transport):
        self.transport = transport
        self.sent = []
        self.change = lambda body, reply: reply

    async def post(self, body):
        self.sent.append(body)
        try:
            status, text = await self.transport.post("/info", dict(body), TIMEOUT_S)
        except (TimeoutError, OSError) as error:
            raise TransientError(f"no reply ({type(error).__name__})") from None
        if status != 200:
            raise TransientError(f"HTTP status {status}")
        try:
            reply = orjson.loads(text)
        except orjson.JSONDecodeError:
            raise TransientError("not JSON") from None
        return self.change(body, reply)


class HubSocket:
    """A connection to the streams of the fake exchange; messages arrive after a delay."""

    def __init__(self, hub, delay_s=0.0):
        self.queue = asyncio.Queue()
        self.hub = hub
        loop = asyncio.get_running_loop()
        put = (lambda item: loop.call_later(delay_s, self.queue.put_nowait, item)) if delay_s else self.queue.put_nowait
        self.session = hub.connect(put, put)
        self.sent = []
        self.closed = False

    async def send(self, text):
        self.sent.append(text)
        if not self.session.is_half_open:
            self.hub.receive(self.session, text)

    async def receive(self):
        item = await self.queue.get()
        if isinstance(item, str):
            return item
        raise ConnectionError("the exchange closed the connection")

    async def close(self):
        self.closed = True
        self.hub.disconnect(self.session)


class FeedScene:
    """Everything of one test. `run(work)` runs a coroutine function of the scene in virtual time, with the feed open."""

    def __init__(self, *rules, symbols=("BTC",), intervals=("5m",), seed=1, history_ms=2 * HOUR_MS, history_bars=20):
        self.symbols, self.intervals = symbols, intervals
        self.clock = VirtualClock(START)
        perps = tuple(perp for perp in PERPS if perp.name in symbols)
        venue_rules = VenueRules(step_ms=2_000, history_ms=history_ms, verify_every=0, ip_weight=0)
        self.exchange = FakeExchange(seed, perps, START, venue_rules)
        self.plan = FaultPlan(tuple(rules), seed)
        self.transport = InProcessTransport(self.exchange, self.clock, self.plan)
        self.conditions = self.transport.gateway.conditions
        self.hub = StreamHub(self.transport.gateway)
        self.info = PlainInfo(self.transport)
        self.sockets = []
        self.connected = asyncio.Condition()
        self.skew = 0
        self.refuses = False
        self.random = Random(seed)
        self.history_bars = history_bars

    async def connect(self):
        await asyncio.sleep(0.05)
        if self.refuses or self.conditions.outage() is not None:
            raise ConnectionError("refused")
        async with self.connected:
            self.sockets.append(HubSocket(self.hub))
            self.connected.notify_all()
        return self.sockets[-1]

    async def connections(self, count):
        """Wait until there have been this many connections."""
        async with self.connected:
            await self.connected.wait_for(lambda: len(self.sockets) >= count)

    def now(self):
        return self.clock.now() + self.skew

    def make_feed(self):
        return HyperliquidFeed(
            MarketRequests(self.info),
            self.connect,
            now=self.now,
            elapsed=lambda: self.clock.micros / 1_000_000,
            random=self.random.random,
            history_bars=self.history_bars,
        )

    def run(self, work):
        self.feed = self.make_feed()
        return self.run_with(self.feed, lambda: work(self))

    def run_with(self, feed, work):
        """Run a coroutine function in virtual time, with a feed open."""

        async def main():
            await feed.include(self.symbols, self.intervals)
            feed.start()
            try:
                return await work()
            finally:
                await feed.close()

        return run_in_virtual_time(self.clock, main())

    async def until(self, at):
        """Let time pass until an instant."""
        await asyncio.sleep(max(0, at - self.clock.now()) / 1000)

    def push(self, channel, data):
        """Give the feed a message of the newest connection."""
        self.sockets[-1].queue.put_nowait(orjson.dumps({"channel": channel, "data": data}).decode())

    def fault(self, kind, **fields):
        """Begin a condition now."""
        self.conditions.begin(FaultRule(kind, **fields))

    def truth(self, symbol, interval="1m"):
        """Return the exchange's record of closed candles, by open time."""
        body = {"coin": symbol, "interval": interval, "startTime": START - 3 * HOUR_MS, "endTime": self.exchange.now}
        return {row["t"]: row for row in self.exchange.info({"type": "candleSnapshot", "req": body})}

    def bars(self, symbol, interval="1m"):
        return self.feed.market().bars[symbol, interval]

    def differences(self):
        """Return bars of the feed that the exchange does not have, and gaps between bars."""
        wrong = []
        for (symbol, interval), bars in self.feed.market().bars.items():
            truth = self.truth(symbol, interval)
            for bar in bars.rows():
                row = truth.get(bar.closed_at - bars.interval_ms)
                expected = row and tuple(float(row[name]) for name in ("o", "h", "l", "c", "v"))
                if tuple(bar[1:]) != expected:
                    wrong.append((symbol, interval, bar, expected))
            wrong += [
                (symbol, interval, "gap")
                for step in set((bars.open_at[1:] - bars.open_at[:-1]).tolist())
                if step != bars.interval_ms
            ]
        return wrong

    def mark_age_ms(self, symbol):
        """The age of the newest good mark, in the exchange's time."""
        state = self.feed.state
        return state.clock.now() - state.prices[symbol].mark[1]

    def requests(self, kind):
        return sum(body["type"] == kind for body in self.info.sent)
