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

ALIKE = 2
"""Calls cost about the same if the most expensive costs at most this many times the cheapest."""

UNSEEN = 4
"""Multiple of the most expensive call assumed where costs vary and the price is unknown."""

Worst = Callable[[ModelRequest], Decimal | None]
"""The most that one attempt at a request can cost; None if unknown."""


class Till(Protocol):
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
class Purse:
    """The costs seen so far. `least_usd` is for a tick, `least_call_usd` and `most_call_usd` are for one call."""

    worst: Worst | None = None
    till: Till | None = None
    least_usd: Decimal = ZERO
    least_call_usd: Decimal = ZERO
    most_call_usd: Decimal = ZERO
    worst_usd: Decimal = ZERO
    doubt_usd: Decimal = ZERO
    """The most that abandoned calls may still cost."""
    free: bool = False
    """Whether a tick was free because another run had paid for it: later ticks may be free, too."""

    def called(self, usd: Decimal | None) -> None:
        """Update the bounds with the cost of a call."""
        if usd:
            self.least_call_usd = min(self.least_call_usd or usd, usd)
            self.most_call_usd = max(self.most_call_usd, usd)

    def ticked(self, usd: Decimal | None, saved_usd: Decimal) -> None:
        """Update the bounds with the cost of a tick."""
        if usd:
            self.least_usd = min(self.least_usd or usd, usd)
        elif saved_usd:
            self.free = True

    @property
    def alike(self) -> bool:
        """Whether all calls so far have cost about the same."""
        return self.most_call_usd <= ALIKE * self.least_call_usd

    def bound(self, request: ModelRequest | None = None) -> Decimal:
        """The most that this speculative call, or the next one, may cost; 0 where calls are free."""
        known = None if self.worst is None or request is None else self.worst(request)
        if known is not None:
            self.worst_usd = max(self.worst_usd, known)
        worst = self.worst_usd or UNSEEN * self.most_call_usd
        return min(worst, ALIKE * self.most_call_usd) if self.alike and self.most_call_usd else worst

    def lost(self, wasted_usd: Decimal, useful_usd: Decimal, paid_usd: Decimal, flying: int) -> Decimal:
        """Cost that is or may be wasted.

        `paid_usd` was paid for guesses that may still be used; `flying` guesses are under way.
        """
        if self.till is None:
            return wasted_usd
        # only those guesses and the tick itself are under way: all dropped calls have been paid for
        if self.till.under_way <= flying + 1:
            self.doubt_usd = ZERO
        return max(wasted_usd, self.till.spent - useful_usd - paid_usd) + self.doubt_usd

    def sure(self, useful_usd: Decimal, ahead: int) -> Decimal:
        """A lower bound of the useful cost at the end: the cost so far plus that of `ahead` further ticks."""
        return useful_usd + (ahead * self.least_usd / ALIKE if self.alike and not self.free else ZERO)
