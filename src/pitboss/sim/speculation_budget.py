"""The speculation budget: the cap on wasted cost, checked before each speculative call is sent.

At the end of a run, waste may be at most a share of the useful cost. A guess under way is counted at the most that
its call can cost, and as wasted; the cost of future ticks is estimated conservatively. Where calls have cost about
the same so far, a future call is assumed to cost at most twice the most expensive one, and a tick at least half the
cheapest one. Otherwise nothing is assumed: a call costs the most that its price allows, and only money already spent
counts as useful.

The size of the window is `sim.speculation_window`; the requests are sent by `sim.speculator`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from pitboss.core.money import ZERO
from pitboss.core.ports import ModelRequest

UNIFORM_RATIO = 2
"""Calls cost about the same if the most expensive costs at most this many times the cheapest."""

UNKNOWN_PRICE_RATIO = 4
"""Multiple of the most expensive call assumed where costs vary and the price is unknown."""

WorstCost = Callable[[ModelRequest], Decimal | None]
"""The most that one attempt at a request can cost; None if unknown."""


class RunSpending(Protocol):
    """The run's spending. Without it, an abandoned call is assumed to have cost as much as the most expensive one."""

    @property
    def spent(self) -> Decimal:
        """The cost of all replies of the run."""
        ...

    @property
    def under_way(self) -> int:
        """The number of calls without a reply yet."""
        ...


@dataclass(slots=True)
class SpeculationBudget:
    """The costs seen so far. `least_usd` is for a tick, `least_call_usd` and `most_call_usd` are for one call."""

    worst_cost: WorstCost | None = None
    spending: RunSpending | None = None
    least_usd: Decimal = ZERO
    least_call_usd: Decimal = ZERO
    most_call_usd: Decimal = ZERO
    worst_usd: Decimal = ZERO
    uncertain_usd: Decimal = ZERO
    """The most that abandoned calls may still cost."""
    has_free_ticks: bool = False
    """Whether a tick was free because another run had paid for it: later ticks may be free, too."""

    def add_call(self, usd: Decimal | None) -> None:
        """Update the bounds with the cost of a call."""
        if usd:
            self.least_call_usd = min(self.least_call_usd or usd, usd)
            self.most_call_usd = max(self.most_call_usd, usd)

    def add_tick(self, usd: Decimal | None, saved_usd: Decimal) -> None:
        """Update the bounds with the cost of a tick."""
        if usd:
            self.least_usd = min(self.least_usd or usd, usd)
        elif saved_usd:
            self.has_free_ticks = True

    @property
    def is_uniform(self) -> bool:
        """Whether all calls so far have cost about the same."""
        return self.most_call_usd <= UNIFORM_RATIO * self.least_call_usd

    def max_call_usd(self, request: ModelRequest | None = None) -> Decimal:
        """The most that this speculative call, or the next one, may cost; 0 where calls are free."""
        worst_usd = None if self.worst_cost is None or request is None else self.worst_cost(request)
        if worst_usd is not None:
            self.worst_usd = max(self.worst_usd, worst_usd)
        worst = self.worst_usd or UNKNOWN_PRICE_RATIO * self.most_call_usd
        return min(worst, UNIFORM_RATIO * self.most_call_usd) if self.is_uniform and self.most_call_usd else worst

    def max_wasted_usd(self, wasted_usd: Decimal, useful_usd: Decimal, guesses_usd: Decimal, in_flight: int) -> Decimal:
        """Cost that is or may be wasted.

        `guesses_usd` was paid for guesses that may still be used; `in_flight` guesses are under way.
        """
        if self.spending is None:
            return wasted_usd
        # only those guesses and the tick itself are under way: all dropped calls have been paid for
        if self.spending.under_way <= in_flight + 1:
            self.uncertain_usd = ZERO
        return max(wasted_usd, self.spending.spent - useful_usd - guesses_usd) + self.uncertain_usd

    def min_useful_usd(self, useful_usd: Decimal, ahead: int) -> Decimal:
        """A lower bound of the useful cost at the end: the cost so far plus that of `ahead` further ticks."""
        return useful_usd + (
            ahead * self.least_usd / UNIFORM_RATIO if self.is_uniform and not self.has_free_ticks else ZERO
        )
