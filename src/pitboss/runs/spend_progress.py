"""The cost of a run while it is executed: what is spent so far, and what the whole run will cost if it goes on like this."""

from decimal import Decimal

from pitboss.core.money import ZERO
from pitboss.models.budget import Budget
from pitboss.report import figures
from pitboss.sim.watch import Watch


class SpendProgress:
    """Reports the cost of a run to a watch before each report of its progress."""

    def __init__(self, watch: Watch, budget: Budget) -> None:
        """`budget` is that of the run; what it has spent before this execution is not projected."""
        self._watch = watch
        self._budget = budget
        self._first: tuple[float, Decimal] | None = None

    def progress(self, share: float) -> None:
        """Report the cost, then the share of the run that is finished."""
        first = self._first = self._first or (share, self._budget.spent)
        self._watch.cost(spend_text(self._budget.spent, projected_usd(first, (share, self._budget.spent))))
        self._watch.progress(share)


def projected_usd(first: tuple[float, Decimal], now: tuple[float, Decimal]) -> Decimal | None:
    """The cost of the whole run at the rate between two reports of share and cost; None before there is a rate."""
    finished = now[0] - first[0]
    if finished <= 0 or now[1] == first[1]:
        return None
    return now[1] + (now[1] - first[1]) * Decimal((1 - now[0]) / finished)


def spend_text(spent_usd: Decimal, whole_usd: Decimal | None) -> str:
    """Spent and projected dollars; empty for a run that has cost nothing."""
    if spent_usd == ZERO:
        return ""
    return f"{figures.usd(spent_usd)} spent" + ("" if whole_usd is None else f", about {figures.usd(whole_usd)} in all")
