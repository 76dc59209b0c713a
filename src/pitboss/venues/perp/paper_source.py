"""The paper world on live bars: a `WorldSource` that advances the simulated account by what has closed.

It does between two ticks exactly what a backtest does between them, with the same function, so a paper deployment that is
fed with recorded bars writes the records of the simulator. A process that was down catches up: the bars since its last tick
are processed in one go, with their fills, stops and funding. If the exchange no longer has all of them, a receipt (`data_gap`)
records the gap: the account continues with the first bar that exists, and nothing is assumed about the missing ones.
"""

from dataclasses import replace

from pitboss.core.curve import Curve
from pitboss.core.instant import DAY_MS, Instant, interval_ms
from pitboss.core.receipt import Receipt
from pitboss.live.world_source import WorldUpdate
from pitboss.venues.perp.assembly import tape_of
from pitboss.venues.perp.course import marked_world
from pitboss.venues.perp.live_market import MarketFeed
from pitboss.venues.perp.state import PerpWorld, TradingTerms
from pitboss.venues.perp.world import advance

NO_DATA = "no_feed"


class PaperSource:
    """Implements `live.world_source.WorldSource` over a market feed."""

    def __init__(self, feed: MarketFeed, terms: TradingTerms, symbols: tuple[str, ...]) -> None:
        self._feed = feed
        self._terms = terms
        self._symbols = symbols

    async def update(self, world: PerpWorld, before: Instant) -> WorldUpdate:
        """Process the bars that closed by an instant and were not processed yet."""
        base = self._feed.base_interval
        step = interval_ms(base)
        until = before // step * step  # a bar that is open at `before` is processed when it has closed
        await self._feed.wait_until(until)
        # The account itself says up to which bar it is advanced, so a restart loses none, whatever was recorded since.
        advanced_to = max(world.marked_at.values(), default=None)
        if advanced_to is None:
            market = self._feed.market()
            return WorldUpdate(marked_world(replace(world, day=until // DAY_MS), market, self._symbols, base, until))
        first = await self._feed.load_since(advanced_to)
        tape = tape_of(self._feed.market(), self._symbols, base, first, until)
        if not len(tape):
            return WorldUpdate(world)
        leg = advance(world, self._terms, tape, 0, len(tape))
        gap = () if first == advanced_to else (Receipt("data_gap", first, facts={"since_at": advanced_to}),)
        return WorldUpdate(leg.world, (*gap, *leg.receipts), leg.equity)

    def hold_flag(self, world: PerpWorld, at: Instant) -> str:
        """Return the flag of a no-op while a symbol has no price."""
        del at
        return "" if set(self._symbols) <= set(world.marks) else NO_DATA

    def pending(self, world: PerpWorld) -> bool:
        """Nothing is waited for: orders are filled by later bars."""
        del world
        return False

    def equity(self, world: PerpWorld, at: Instant, period_ms: int) -> Curve:
        """Nothing: the equity points come with the bars."""
        del world, at, period_ms
        return ()

    def trouble(self) -> str:
        """Return the current problem of the feed."""
        return self._feed.trouble()
