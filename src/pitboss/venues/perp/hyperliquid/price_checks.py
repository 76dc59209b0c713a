"""The sanity rules for prices of one symbol: which mark may be used, and which bar is held back. Pure: no clock, no network.

1. A price is above zero.
2. The best bid is below the best ask, and neither side is empty.
3. The mark is within 5 % of the oracle price.
4. A mark more than 25 % from the last good one is not used until the new level has lasted 60 s.
5. Mark, oracle and middle price that have not changed for 120 s are frozen.
6. A bar that leaves its previous close by more than a factor (1.5 up to 5m, 2 up to 1h, 5 above) is held back until the
   exchange's record still shows it a minute after its close; then it is added, and for 10 minutes the mark is not used.

A rule that fails gives a reason; while there is one, the symbol has no mark, and brokers refuse to open (`R10_STALE_DATA`).
"""

from decimal import Decimal

from pitboss.core.instant import HOUR_MS, MINUTE_MS, SECOND_MS, Instant
from pitboss.core.market import Bar
from pitboss.venues.perp.hyperliquid.market_messages import AssetContext, BestPrices

MOST_FROM_ORACLE = Decimal("0.05")
MOST_MARK_JUMP = Decimal("0.25")
JUMP_CONFIRM_MS = MINUTE_MS
FROZEN_MS = 120 * SECOND_MS
FLAG_MS = 10 * MINUTE_MS


def bar_problem(bar: Bar, step: int, previous_close: float | None) -> str:
    """Return why a bar is implausible after the previous close; empty if it is plausible."""
    if not is_possible(bar):
        return "a bar has a price that is not above zero, a high below its low, or a negative volume"
    if previous_close is None:
        return ""
    factor = 1.5 if step <= 5 * MINUTE_MS else 2.0 if step <= HOUR_MS else 5.0
    highest, lowest = max(bar[1:5]), min(bar[1:5])
    if highest > previous_close * factor or lowest < previous_close / factor:
        return f"a bar moves by more than a factor of {factor:g}"
    return ""


def is_possible(bar: Bar) -> bool:
    """Whether a bar has the numbers of a bar. One that has not is never added."""
    return min(bar[1:5]) > 0 and bar.high >= bar.low and bar.volume >= 0


class PriceChecks:
    """The newest prices of one symbol. Times are venue times, in milliseconds."""

    def __init__(self, symbol: str) -> None:
        self.symbol = symbol
        self.mark: tuple[Decimal, Instant] | None = None
        """The newest good mark and when the venue sent it at the earliest."""
        self.context: AssetContext | None = None
        """The newest context, plausible or not."""
        self.received_at: Instant | None = None
        """The venue time of the newest context."""
        self._mark_problem = ""
        self._book_problem = ""
        self._jump: tuple[Decimal, Instant] | None = None
        self._changed_at: Instant = 0
        self._flagged_until: Instant = 0

    def add_context(self, context: AssetContext, at: Instant) -> None:
        """Judge a new context. One that is older than the newest is ignored."""
        if self.received_at is not None and at < self.received_at:
            return
        before, self.context, self.received_at = self.context, context, at
        if before is None or _prices(before) != _prices(context):
            self._changed_at = at
        self._mark_problem = self._judge(context, at)
        if not self._mark_problem:
            self.mark = context.mark, at

    def add_best_prices(self, prices: BestPrices) -> None:
        """Judge the newest best bid and ask."""
        self._book_problem = _book_problem(prices.bid, prices.ask)

    def flag(self, at: Instant) -> None:
        """Note that an implausible bar was confirmed and added at an instant."""
        self._flagged_until = at + FLAG_MS

    def problem(self, now: Instant) -> str:
        """Return why the mark may not be used now; empty if it may."""
        if self._mark_problem or self._book_problem:
            return self._mark_problem or self._book_problem
        if self.received_at is not None and self.received_at - self._changed_at >= FROZEN_MS:
            return "its prices are frozen"
        if now < self._flagged_until:
            return "a bar moved implausibly far"
        return ""

    def _judge(self, context: AssetContext, at: Instant) -> str:
        mark, oracle = context.mark, context.oracle
        if mark <= 0 or oracle <= 0 or (context.mid is not None and context.mid <= 0):
            return "its mark, middle or oracle price is not above zero"
        if context.impact is not None and (problem := _book_problem(*context.impact, touching=True)):
            return problem
        if abs(mark - oracle) > oracle * MOST_FROM_ORACLE:
            return "its mark is more than 5 % from its oracle price"
        return self._judge_jump(mark, at)

    def _judge_jump(self, mark: Decimal, at: Instant) -> str:
        if self.mark is None or not _is_far(mark, self.mark[0]):
            self._jump = None
            return ""
        if self._jump is None or _is_far(mark, self._jump[0]):
            self._jump = mark, at
        if at - self._jump[1] >= JUMP_CONFIRM_MS:
            self._jump = None
            return ""
        return "its mark jumped by more than 25 %"


def _is_far(price: Decimal, reference: Decimal) -> bool:
    return abs(price - reference) > min(price, reference) * MOST_MARK_JUMP


def _book_problem(bid: Decimal | None, ask: Decimal | None, touching: bool = False) -> str:
    if bid is None or ask is None:
        return "a side of its book is empty"
    if bid <= 0 or ask <= 0:
        return "its book has a price that is not above zero"
    if bid > ask or (bid == ask and not touching):
        return "its book is crossed"
    return ""


def _prices(context: AssetContext) -> tuple[Decimal, Decimal, Decimal | None]:
    return context.mark, context.oracle, context.mid
