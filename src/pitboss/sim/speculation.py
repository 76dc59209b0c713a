"""Settings and counters of speculation. Values only: `sim.speculator` does the work."""

from dataclasses import dataclass, field
from decimal import Decimal

from pitboss.core.money import ZERO
from pitboss.sim.speculation_budget import SpeculationBudget
from pitboss.sim.speculation_window import NO_PAST, HoldPrior


@dataclass(slots=True)
class Tally:
    """Counters of speculation.

    A decision is counted once: used if the replay built the same prompt, else wasted or failed. `useful` counts the
    decisions that the run itself paid for, speculated or not; waste is measured against those.
    """

    launched: int = 0
    used: int = 0
    wasted: int = 0
    failed: int = 0
    useful: int = 0
    wasted_usd: Decimal = ZERO
    useful_usd: Decimal = ZERO
    least_usd: Decimal = ZERO
    most_usd: Decimal = ZERO

    @property
    def waste_pct(self) -> float:
        """Waste in percent of the useful cost: in money, or in decisions if that is higher or nothing was paid."""
        share_of_cost = float(self.wasted_usd / self.useful_usd) if self.useful_usd else 0.0
        return 100 * max(share_of_cost, self.wasted / self.useful if self.useful else 0.0)

    def add_cost(self, usd: Decimal | None) -> None:
        """Add the cost of a decision."""
        if usd:
            self.least_usd = min(self.least_usd or usd, usd)
            self.most_usd = max(self.most_usd, usd)


@dataclass(frozen=True, slots=True, eq=False)
class Speculation:
    """How far a replay may speculate.

    `window` None chooses a window; the cap on waste also holds for a given window. `prior` is how often the agent is
    expected to hold before its first tick.
    """

    window: int | None = None
    max_waste_pct: float = 35.0
    tally: Tally = field(default_factory=Tally)
    budget: SpeculationBudget = field(default_factory=SpeculationBudget)
    prior: HoldPrior = NO_PAST
