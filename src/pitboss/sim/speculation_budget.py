"""What guesses may cost: the cap on waste in money, judged before each call of a guess is sent.

At the end of a run waste may be at most a share of what was useful. A guess under way is counted with the most that its
call can cost, and as if it came to nothing; what ticks to come will cost is counted on with care. Where calls have cost
alike so far, that is: none to come costs more than twice the dearest or a tick less than half the cheapest. Where they
have not, nothing is counted on: a call costs what its price allows at most, and only what has been spent is spent.

How far to ask ahead is `sim.window`; who asks is `sim.speculate`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from pitboss.core.money import ZERO
from pitboss.core.ports import ModelRequest

ALIKE = 2
"""Calls cost alike where the dearest costs at most so many times the cheapest."""

UNSEEN = 4
"""So many times the dearest, where calls do not cost alike and nobody knows a price."""

Worst = Callable[[ModelRequest], Decimal | None]
"""The most that one attempt at a request can cost; None where nobody knows."""


class Till(Protocol):
    """Where a run pays. Without one, a call that nobody waited for is taken to have cost as much as the dearest."""

    @property
    def spent(self) -> Decimal:
        """What all answers of the run have cost."""
        ...

    @property
    def under_way(self) -> int:
        """Calls that are not answered yet."""
        ...


@dataclass(slots=True)
class Purse:
    """What is known of costs so far. `least_usd` is that of a tick, `least_call_usd` and `most_call_usd` of one call."""

    worst: Worst | None = None
    till: Till | None = None
    least_usd: Decimal = ZERO
    least_call_usd: Decimal = ZERO
    most_call_usd: Decimal = ZERO
    worst_usd: Decimal = ZERO
    doubt_usd: Decimal = ZERO
    """The most that calls which nobody waits for any more may still cost."""
    free: bool = False
    """Whether a tick has cost nothing because another run had paid for it: others may, too."""

    def called(self, usd: Decimal | None) -> None:
        """Learn what a call costs."""
        if usd:
            self.least_call_usd = min(self.least_call_usd or usd, usd)
            self.most_call_usd = max(self.most_call_usd, usd)

    def ticked(self, usd: Decimal | None, saved_usd: Decimal) -> None:
        """Learn what a tick costs."""
        if usd:
            self.least_usd = min(self.least_usd or usd, usd)
        elif saved_usd:
            self.free = True

    @property
    def alike(self) -> bool:
        """Whether all calls so far have cost about the same."""
        return self.most_call_usd <= ALIKE * self.least_call_usd

    def bound(self, request: ModelRequest | None = None) -> Decimal:
        """The most that this call of a guess, or the next one, may cost; 0 where calls cost nothing."""
        known = None if self.worst is None or request is None else self.worst(request)
        if known is not None:
            self.worst_usd = max(self.worst_usd, known)
        worst = self.worst_usd or UNSEEN * self.most_call_usd
        return min(worst, ALIKE * self.most_call_usd) if self.alike and self.most_call_usd else worst

    def lost(self, wasted_usd: Decimal, useful_usd: Decimal, paid_usd: Decimal, flying: int) -> Decimal:
        """What came to nothing, or may have. `paid_usd` is paid for guesses that may be used yet, so many more fly."""
        if self.till is None:
            return wasted_usd
        if self.till.under_way <= flying + 1:  # theirs and that of the tick itself: what was dropped has been paid for
            self.doubt_usd = ZERO
        return max(wasted_usd, self.till.spent - useful_usd - paid_usd) + self.doubt_usd

    def sure(self, useful_usd: Decimal, ahead: int) -> Decimal:
        """What will have been useful at the end, at the least: so much is by now, and so many ticks will be asked."""
        return useful_usd + (ahead * self.least_usd / ALIKE if self.alike and not self.free else ZERO)
