"""A `MarketFeed` over a recorded market: bars count as arrived when the caller's clock has passed their close.

For parity tests and demonstrations: the live path runs on stored bars, with the clock of the caller. The market is the
recorded one, future included; a `View` restricts it to the instant of a tick, as it does in a backtest. No network.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from decimal import Decimal

from pitboss.core.asof import Market
from pitboss.core.asset import Asset
from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import Instant, interval_ms, iso
from pitboss.core.market import Bars
from pitboss.core.money import decimal


class RecordedFeed:
    """Stored bars, released by a clock.

    `advance(at)` returns when `now()` has reached `at`: it moves a virtual clock, or waits for a real one.
    """

    def __init__(
        self,
        market: Market,
        symbols: Iterable[str],
        base_interval: str,
        assets: Mapping[str, Asset],
        now: Callable[[], Instant],
        advance: Callable[[Instant], Awaitable[None]],
    ) -> None:
        self.symbols = tuple(sorted(set(symbols)))
        self.base_interval = base_interval
        self.assets = {symbol: assets[symbol] for symbol in self.symbols}
        self._market = market
        self._step = interval_ms(base_interval)
        self._now = now
        self._advance = advance
        ends = [_end(market.bars[symbol, base_interval]) for symbol in self.symbols]
        if not ends or None in ends:
            raise UserError(
                f"the recording lacks {base_interval} bars of one of {', '.join(self.symbols) or 'no symbols'}"
            )
        self.ends_at = min(end for end in ends if end is not None)
        """When the newest bar closes that every symbol has."""

    def market(self) -> Market:
        """Return the recorded market. It holds later bars too; a view at an instant does not show them."""
        return self._market

    def complete_until(self) -> Instant:
        """Return the newest close of a base bar that the clock has passed, at most the end of the recording."""
        return min(self._now() // self._step * self._step, self.ends_at)

    async def wait_until(self, at: Instant) -> None:
        """Return when the clock has passed an instant. Raises `TransientError` if the recording ends before it."""
        if at > self.ends_at:
            raise TransientError(f"the recording ends at {iso(self.ends_at)}")
        if self._now() < at:
            await self._advance(at)

    async def load_since(self, at: Instant) -> Instant:
        """Return from when on the recording has bars of every symbol; nothing has to be loaded."""
        return max(at, *(self._market.bars[symbol, self.base_interval].open_at.item(0) for symbol in self.symbols))

    def marks(self) -> Mapping[str, tuple[Decimal, Instant]]:
        """Return the newest close of each symbol's base bars and when it was made."""
        view = self._market.view(self._now())
        marks: dict[str, tuple[Decimal, Instant]] = {}
        for symbol in self.symbols:
            bars, closed = view.series(symbol, self.base_interval)
            if closed:
                marks[symbol] = decimal(bars.close.item(closed - 1)), bars.open_at.item(closed - 1) + self._step
        return marks

    def opening_problem(self, symbol: str) -> str:
        """Return nothing: a recording has closed bars only, whose age the rules judge."""
        del symbol
        return ""

    def trouble(self) -> str:
        """Return that the recording has ended, once it has."""
        return f"the recording ends at {iso(self.ends_at)}" if self.has_failed() else ""

    def has_failed(self) -> bool:
        """Whether the clock is past the end of the recording: no further bar will come."""
        return self._now() >= self.ends_at + self._step


def _end(bars: Bars) -> Instant | None:
    return bars.open_at.item(-1) + bars.interval_ms if len(bars) else None
