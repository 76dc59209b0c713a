"""`HoldSpan`: consecutive no-op ticks of one UTC day, collected into one record while a replay leaps over them."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from pitboss.core.curve import Curve, Piece, join
from pitboss.core.instant import DAY_MS, Instant
from pitboss.core.money import ZERO
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import ZERO_COST_EXTRA, Record, seal
from pitboss.core.state import LastDecision, State
from pitboss.sim.outcome import Ledger


class HoldSpan:
    """The ticks of a span so far, and what happened up to them. `end` is the first tick of the next day."""

    def __init__(self) -> None:
        self.day, self.end = -1, 0
        self._clear()

    def _clear(self) -> None:
        self.ticks = 0
        self.first_at = self.last_at = 0
        self.ruined = 0
        self.receipts: list[Receipt] = []
        self.equity: list[Piece] = []

    def begin_day(self, tick_at: Sequence[Instant], first: int) -> int:
        """Set the day to that of the tick `first`; returns its end."""
        day = tick_at[first] // DAY_MS
        if day != self.day:
            self.day, self.end = day, bisect_left(tick_at, (day + 1) * DAY_MS)
        return self.end

    def add(
        self,
        tick_at: Sequence[Instant],
        first: int,
        last: int,
        receipts: Sequence[Receipt],
        equity: Curve,
        over: bool,
    ) -> None:
        """Add the ticks `first` to `last`, and what happened up to them, to the span."""
        if not self.ticks:
            self.first_at = tick_at[first]
            self.begin_day(tick_at, first)
        self.last_at = tick_at[last]
        self.ticks += last - first + 1
        self.ruined += (last - first + 1) if over else 0
        self.receipts.extend(receipts)
        join(self.equity, equity)

    def close(self, before: State, world: Any, ledger: Ledger) -> tuple[Record, State]:
        """The record of the span and the state after it; `world` may already have advanced to the acting tick after it."""
        covered = {
            "equity": self.equity,
            "flags": {"ruined": self.ruined} if self.ruined else {},
            "receipts": self.receipts,
            "ticks": self.ticks,
            "until_at": self.last_at,
        }
        record = seal(before.seq, "span", self.first_at, before.prev_digest, covered, ZERO_COST_EXTRA)
        ledger.take("span", covered, self.receipts, ZERO)
        state = before.after(
            world=world,
            seq=before.seq + 1,
            prev_digest=record.digest,
            tick_at=self.last_at,
            seen={},
            last=LastDecision(self.last_at, "noop", "ruined" if self.ruined else ""),
        )
        self._clear()
        return record, state
