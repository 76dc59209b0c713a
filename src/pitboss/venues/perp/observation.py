"""What the agent may know at instant `at`: the as-of view, the account, the caps, the last decision, the memory.

It is frozen, cheap to create, and lazy: nothing is formatted or computed before a section, a tool or a policy reads it.
"""

from collections.abc import Sequence

from pitboss.core.asof import View
from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.core.state import LastDecision
from pitboss.core.verdict import Margin
from pitboss.venues.perp import caps, portfolio
from pitboss.venues.perp.caps import PerpCaps
from pitboss.venues.perp.portfolio import PerpPortfolio
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.state import PerpWorld, TradingTerms
from pitboss.venues.perp.trade_memory import PerpMemory


@noun
class Observation:
    """One tick as the agent sees it; `limits` are the skill's exact caps, `started_at` is the run's first tick.

    `notes` concern the agent's own tools: a server that does not answer, a tool that is disabled.
    """

    at: Instant
    started_at: Instant
    skill: PerpSkill
    view: View
    world: PerpWorld
    terms: TradingTerms
    limits: PerpCaps
    accepted_opens: Sequence[Instant]
    last: LastDecision | None
    memory: PerpMemory
    notes: tuple[str, ...] = ()

    def portfolio(self) -> PerpPortfolio:
        """Return the portfolio at its marks."""
        return portfolio.portfolio(self.world, self.terms)

    def room(self) -> list[Margin]:
        """Return what is left of every cap."""
        return caps.room(self.world, self.terms, self.limits, self.accepted_opens, self.at)
