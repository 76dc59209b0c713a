"""The observation of an agent at instant `at`: markets, account, budgets, candles and recent results.

Frozen and lazy like the perp venue's, with one exception: `shown` collects the asks that the prompt and tools show to
the model at this tick, because the slippage rule compares with the ask of the tick. Nothing else is written during a
tick.
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
from pitboss.venues.predict.desk import Desk, Fill, spend_with_reserves
from pitboss.venues.predict.portfolio import PredictPortfolio, portfolio
from pitboss.venues.predict.state import Contract, Oracle, open_markets, oracle_of

Tape = Callable[[str, Instant], Sequence[Fill]]
"""Returns the recorded trades of all accounts in a market up to an instant, oldest first."""


def no_tape(market_id: str, at: Instant) -> Sequence[Fill]:
    """Return no trades: none are recorded."""
    del market_id, at
    return ()


class Shown:
    """Asks shown to the model at one tick, by contract key; a later ask replaces an earlier one."""

    __slots__ = ("asks",)

    def __init__(self) -> None:
        self.asks: dict[str, int] = {}

    def note(self, contract: Contract, ask: int) -> None:
        """Record an ask shown to the model."""
        self.asks[contract.key] = ask


@noun
class PredictObservation:
    """One tick as the agent sees it. `ticks` is its number on the schedule; `notes` concern the agent's own resources."""

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
    price_scale: int = 1
    """The factor by which a blind run multiplies prices; steps between strikes are multiplied by it too."""

    def markets(self, priced: bool = True) -> tuple[Oracle, ...]:
        """Return the open markets by expiry, excluding stale twins; unpriced if only names are needed."""
        return open_markets(self.desk.world, self.at, self.caps.underlying or self.underlying, priced)

    def market(self, market_id: str) -> Oracle | None:
        """Return a market by its id, if it is of the agent's underlying."""
        oracle = oracle_of(self.desk.world, market_id)
        underlying = self.caps.underlying or self.underlying
        return oracle if oracle is not None and oracle.underlying == underlying else None

    def portfolio(self) -> PredictPortfolio:
        """Return the account with every position at its bid."""
        return portfolio(self.desk.world, self.at, self.account_id)

    def room(self) -> list[Margin]:
        """Return what remains of every budget; waiting orders count as spent."""
        return budgets.room(
            self.caps, self.desk.world, spend_with_reserves(self.desk, self.at), self.account_id, self.at
        )

    def candles(self, minutes: int) -> Bars | None:
        """Return one-minute bars closed within the last `minutes`, oldest first; None without candle data."""
        if self.view is None or not self.view.has_bars(self.underlying, "1m"):
            return None
        bars = self.view.bars(self.underlying, "1m", minutes)
        first = int(bars.open_at.searchsorted(self.at - minutes * MINUTE_MS, side="left"))
        return bars.slice(first, len(bars))

    def fills(self, market_id: str) -> list[Fill]:
        """Return the trades in a market up to now, oldest first: all accounts' where recorded, and the agent's own."""
        own = [fill for fill in self.desk.done if fill.market_id == market_id and fill.kind != "refused"]
        recorded = [fill for fill in self.tape(market_id, self.at) if fill.at <= self.at]
        return sorted([*recorded, *own], key=lambda fill: fill.at)

    def since(self) -> list[Fill]:
        """Return the results of orders since the last decision, including that decision's own trade."""
        if self.last is None:
            return []
        before = self.last.tick_at
        return [fill for fill in self.desk.done if fill.at > before or (fill.at == before and fill.kind != "payout")]


def mid_change(bars: Bars) -> Decimal | None:
    """Return the change between first and last close in percent; None with fewer than two bars."""
    if len(bars) < 2:
        return None
    first, last = float(bars.close[0]), float(bars.close[-1])
    return Decimal(repr(round((last / first - 1) * 100, 4))) if first > 0 else None
