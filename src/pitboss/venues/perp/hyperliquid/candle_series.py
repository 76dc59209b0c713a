"""The candles of one symbol and interval on their way to closed bars. Pure: the feed gives it messages and replies.

A candle is closed when a later one of the stream follows it without a gap, or when a reply requested after its end has it.
Bars are released in the order of time, each once, and never changed. The stream is trusted only after a reply that was
requested while it was subscribed; a gap, a contradiction or a reconnect ends the trust, and the next reply restores it.
"""

from collections.abc import Sequence

from pitboss.core.instant import MINUTE_MS, SECOND_MS, Instant, interval_ms
from pitboss.core.market import Bar
from pitboss.venues.perp.hyperliquid.market_messages import CandleUpdate, MalformedMessage
from pitboss.venues.perp.hyperliquid.price_checks import bar_problem, is_possible

SETTLE_MS = 1_500
"""A reply requested this long after the end of a candle has its final form, even if no later candle shows it."""
HOLD_MS = MINUTE_MS
"""How long after its close an implausible bar is held back; see rule 6 of `price_checks`."""
MISSING_PATIENCE_MS = 2 * MINUTE_MS
"""How long replies may lack a bar before it counts as missing for good."""
LEAST_LACKING = 3
"""How many replies have to lack a bar before it counts as missing: one may be empty by error."""
LACKING_SETTLE_MS = 10 * SECOND_MS
"""How long after its end a bar is waited for once the series has stopped."""
EARLY_MS = 5 * SECOND_MS
"""How far ahead of the venue's clock a candle may begin."""
KEPT_CLOSED = 16


class CandleSeries:
    """State of one series. `next_open` is the open of the first bar that has not been released."""

    def __init__(self, symbol: str, interval: str, next_open: Instant) -> None:
        self.symbol = symbol
        self.interval = interval
        self.step = interval_ms(interval)
        self.next_open = next_open
        self.is_trusted = False
        """Whether the stream may close candles."""
        self.missing = 0
        """Bars that the exchange has no candle for."""
        self.contradictions = 0
        """Messages and replies that differ from what was sent before."""
        self.contradicted_at: Instant | None = None
        """The venue time at which such a difference was last found."""
        self.is_lacking = False
        """Whether bars have been counted as missing since the newest one."""
        self.last_bar_at = next_open
        """The close of the newest bar that was released."""
        self.hold_reason = ""
        """Why the next bar is held back."""
        self.flagged_at: Instant | None = None
        """The close of the newest implausible bar that was released."""
        self._open_candle: CandleUpdate | None = None
        self._closed: dict[Instant, CandleUpdate] = {}
        self._last_close: float | None = None
        self._lacking: tuple[Instant, int] | None = None

    @property
    def complete_before(self) -> Instant:
        """Return the close of the first bar that has not been released."""
        return self.next_open + self.step

    def add_update(self, candle: CandleUpdate, now: Instant) -> list[Bar]:
        """Take a candle of the stream; return the bars that it closes. `now` is the venue's time."""
        if candle.open_at > now + EARLY_MS:
            raise MalformedMessage(f"a candle of {self.symbol} begins in the future")
        if candle.open_at < self.next_open:
            self._compare(candle, now)
            return []
        current = self._open_candle
        if current is None or candle.open_at == current.open_at:
            self._replace(current, candle, now)
            return []
        if candle.open_at < current.open_at:
            return []  # out of order: the reply has its final form
        self._open_candle = candle
        if self.is_trusted and current.open_at == self.next_open and candle.open_at == self.next_open + self.step:
            return self._release([current], now)
        self.is_trusted = False
        return []

    def add_snapshot(self, candles: Sequence[CandleUpdate], requested_at: Instant, is_subscribed: bool) -> list[Bar]:
        """Take a reply and return the bars that it closes.

        `requested_at` is the venue time before the request was sent; `is_subscribed` tells whether the stream was
        subscribed then and still is.
        """
        rows = {candle.open_at: candle for candle in candles}
        newest = max(rows, default=self.next_open)
        final = [
            row
            for open_at, row in sorted(rows.items())
            if open_at < newest or open_at + self.step + SETTLE_MS <= requested_at
        ]
        for row in final:
            if row.open_at < self.next_open:
                self._compare(row, requested_at)
        due = [row for row in final if row.open_at >= self.next_open]
        bars = self._release(due, requested_at, is_record=True)
        if not self.hold_reason and self.complete_before + SETTLE_MS > requested_at:
            self.is_trusted = is_subscribed
        if not due:
            self._count_lacking(requested_at)
        return bars

    def on_disconnect(self) -> None:
        """Trust the stream no more until a reply has filled the gap."""
        self.is_trusted = False
        self._open_candle = None

    def _release(self, candles: Sequence[CandleUpdate], now: Instant, is_record: bool = False) -> list[Bar]:
        bars: list[Bar] = []
        self.hold_reason = ""
        for candle in candles:
            bar = candle.bar()
            reason = bar_problem(bar, self.step, self._last_close)
            if reason and not (is_record and is_possible(bar) and now >= bar.closed_at + HOLD_MS):
                if is_record and not is_possible(bar) and now >= bar.closed_at + MISSING_PATIENCE_MS:
                    self._skip(bar.closed_at)
                    continue
                self.hold_reason, self.is_trusted = reason, False
                break
            if reason:
                self.flagged_at = bar.closed_at
            self._skip(candle.open_at)
            self._lacking, self.is_lacking = None, False
            bars.append(bar)
            self.next_open = self.last_bar_at = bar.closed_at
            self._last_close = bar.close
            self._closed[candle.open_at] = candle
        while len(self._closed) > KEPT_CLOSED:
            del self._closed[next(iter(self._closed))]
        if self._open_candle is not None and self._open_candle.open_at < self.next_open:
            self._open_candle = None
        return bars

    def _count_lacking(self, requested_at: Instant) -> None:
        """Count a reply without the next bar; after enough of them the bars that are over count as missing."""
        if self.complete_before + SETTLE_MS > requested_at:
            return
        since, count = self._lacking or (requested_at, 0)
        self._lacking = since, count + 1
        if requested_at - since >= MISSING_PATIENCE_MS and count >= LEAST_LACKING - 1:
            self.is_lacking = True
            self._skip((requested_at - LACKING_SETTLE_MS) // self.step * self.step)

    def _skip(self, open_at: Instant) -> None:
        """Count the bars before an instant as missing."""
        self.missing += max(0, (open_at - self.next_open) // self.step)
        self.next_open = max(self.next_open, open_at)
        self.hold_reason = ""

    def _replace(self, current: CandleUpdate | None, candle: CandleUpdate, now: Instant) -> None:
        if current is not None:
            if candle.trades < current.trades:
                return  # out of order
            if candle.open != current.open or candle.high < current.high or candle.low > current.low:
                self._contradict(now)
        self._open_candle = candle

    def _compare(self, candle: CandleUpdate, now: Instant) -> None:
        released = self._closed.get(candle.open_at)
        if released is not None and released != candle and candle.trades >= released.trades:
            self._contradict(now)
            self._closed[candle.open_at] = candle  # counted once

    def _contradict(self, now: Instant) -> None:
        self.contradictions += 1
        self.contradicted_at = now
        self.is_trusted = False
