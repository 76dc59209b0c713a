"""What the agent may know at instant `at`: the as-of view, the account, the caps, the last decision, the memory.

Frozen, cheap to make, and lazy: nothing is formatted or computed until a section, a tool or a policy asks.
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
    """One tick as the agent sees it. `limits` is the skill's risk section as exact caps, `started_at` the first tick.

    `notes` are about the agent's own means: a server that does not answer, a tool that is switched off.
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
        """The account at its marks."""
        return portfolio.portfolio(self.world, self.terms)

    def room(self) -> list[Margin]:
        """What is left of every cap."""
        return caps.room(self.world, self.terms, self.limits, self.accepted_opens, self.at)
