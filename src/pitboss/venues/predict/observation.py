"""What an agent of the predict venue may know at instant `at`: markets, account, budgets, candles, what came of it all.

Frozen and lazy like the other venue's, with one exception: `shown` collects the asks that prompt and tools put before the
model at this tick, because the slippage rule compares with the ask last shown. Nothing else is written during a tick.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from pitboss.core.asof import View
from pitboss.core.instant import MINUTE_MS, Instant
from pitboss.core.market import Bars
from pitboss.core.noun import noun
from pitboss.core.state import LastDecision
from pitboss.core.verdict import Margin
from pitboss.venues.predict import caps as budgets
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.desk import Desk, Fill, reckoned
from pitboss.venues.predict.portfolio import PredictPortfolio, portfolio
from pitboss.venues.predict.state import ACCOUNT, Contract, Oracle, open_markets, oracle_of

Tape = Callable[[str, Instant], Sequence[Fill]]
"""Trades of everybody in one market known by an instant, oldest first, where somebody has recorded them."""


def no_tape(market_id: str, at: Instant) -> Sequence[Fill]:
    """Nobody else's trades are known."""
    del market_id, at
    return ()


class Shown:
    """The asks that were put before the model at one tick, by the contract's key; a later one takes the place."""

    __slots__ = ("asks",)

    def __init__(self) -> None:
        self.asks: dict[str, int] = {}

    def note(self, contract: Contract, ask: int) -> None:
        """One ask that the model gets to see."""
        self.asks[contract.key] = ask


@noun
class PredictObservation:
    """One tick as the agent sees it. `ticks` is its number on the schedule; `notes` are about the agent's own means."""

    at: Instant
    ticks: int
    desk: Desk
    caps: PredictCaps
    view: View | None
    last: LastDecision | None
    tape: Tape
    candles_minutes: int
    underlying: str
    account_id: str
    notes: tuple[str, ...]
    memory: Any
    shown: Shown

    def markets(self, priced: bool = True) -> tuple[Oracle, ...]:
        """The markets that are open now, by expiry, never a dead twin; without prices where only names are wanted."""
        return open_markets(self.desk.world, self.at, self.caps.underlying or self.underlying, priced)

    def market(self, market_id: str) -> Oracle | None:
        """One market by its id, if it is of the agent's underlying."""
        found = oracle_of(self.desk.world, market_id)
        wanted = self.caps.underlying or self.underlying
        return found if found is not None and found.underlying == wanted else None

    def portfolio(self) -> PredictPortfolio:
        """The account, every position at its bid."""
        return portfolio(self.desk.world, self.at, self.account_id)

    def room(self) -> list[Margin]:
        """What is left of every budget, with what waits counted as spent."""
        return budgets.room(self.caps, self.desk.world, reckoned(self.desk, self.at), self.account_id, self.at)

    def candles(self, minutes: int) -> Bars | None:
        """One-minute bars closed within the last `minutes`, oldest first; None where there is no such data."""
        if self.view is None or not self.view.has_bars(self.underlying, "1m"):
            return None
        bars = self.view.bars(self.underlying, "1m", minutes)
        first = int(bars.open_at.searchsorted(self.at - minutes * MINUTE_MS, side="left"))
        return bars.slice(first, len(bars))

    def fills(self, market_id: str) -> list[Fill]:
        """What is known of trades in a market by now, oldest first: everybody's where recorded, and one's own."""
        own = [fill for fill in self.desk.done if fill.market_id == market_id and fill.kind != "refused"]
        others = [fill for fill in self.tape(market_id, self.at) if fill.at <= self.at]
        return sorted([*others, *own], key=lambda fill: fill.at)

    def since(self) -> list[Fill]:
        """What came of orders since the last decision was made, that decision's own trade included."""
        if self.last is None:
            return []
        before = self.last.tick_at
        return [fill for fill in self.desk.done if fill.at > before or (fill.at == before and fill.kind != "payout")]


def observe(desk: Desk, at: Instant, caps: PredictCaps | None = None, view: View | None = None) -> PredictObservation:
    """An observation outside of any run: for a preview and for tests."""
    nothing = (), None, Shown()
    return PredictObservation(at, 0, desk, caps or PredictCaps(), view, None, no_tape, 60, "BTC", ACCOUNT, *nothing)


def mid_change(bars: Bars) -> Decimal | None:
    """How far the closes of a run of bars moved, in percent; None where there are fewer than two."""
    if len(bars) < 2:
        return None
    first, last = float(bars.close[0]), float(bars.close[-1])
    return Decimal(repr(round((last / first - 1) * 100, 4))) if first > 0 else None
