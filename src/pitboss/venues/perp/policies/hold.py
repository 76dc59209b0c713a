"""Policy `hold`: never trades; it shows what a run costs and earns without an agent."""

from pitboss.agent.decider import Judge
from pitboss.core.asof import Market
from pitboss.core.intent import Decision
from pitboss.core.market import Ints
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.policy import define_policy
from pitboss.venues.perp.state import PerpWorld


class HoldPolicy:
    """Holds at every tick."""

    name = "policy/hold"

    async def decide(self, observation: Observation, judge: Judge) -> Decision:
        """Return an empty decision."""
        del observation, judge
        return Decision()

    def plan(self, market: Market, tick_at: Ints, symbols: tuple[str, ...], interval: str) -> "HoldPlan":
        """Return a plan without acts."""
        del market, symbols, interval
        return HoldPlan(len(tick_at))


class HoldPlan:
    """A plan that never acts."""

    def __init__(self, count: int) -> None:
        self._count = count

    def next_tick(self, index: int, world: PerpWorld) -> int:
        """Return the number of ticks: there is no further act."""
        del index, world
        return self._count


POLICY = define_policy("hold", "never trades", lambda seed: HoldPolicy())
