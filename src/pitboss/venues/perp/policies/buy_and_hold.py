"""Policy `buy_and_hold`: opens a long in every symbol at the first tick and never trades again.

An order that fails is not retried.
"""

from pitboss.agent.decider import Judge
from pitboss.core.asof import Market
from pitboss.core.intent import Decision
from pitboss.core.market import Ints
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.policy import define_policy, open_intent, symbols_with_orders
from pitboss.venues.perp.state import PerpWorld

REASON = "first tick: buy and hold"


class BuyAndHold:
    """Opens every symbol once, at the first tick."""

    name = "policy/buy_and_hold"

    async def decide(self, observation: Observation, judge: Judge) -> Decision:
        """Open every symbol without a position or working order at the first tick; otherwise hold."""
        del judge
        if observation.at != observation.started_at:
            return Decision()
        missing = _missing_symbols(observation.skill.context.sorted_symbols, observation.world)
        return Decision(tuple(open_intent(observation, symbol, 1, REASON) for symbol in missing))

    def plan(self, market: Market, tick_at: Ints, symbols: tuple[str, ...], interval: str) -> "FirstTickPlan":
        """Return the plan; `tick_at` begins with the first tick of the run."""
        del market, interval
        return FirstTickPlan(tuple(sorted(symbols)), len(tick_at))


class FirstTickPlan:
    """Acts at the first tick if any symbol has no position and no working order."""

    def __init__(self, symbols: tuple[str, ...], count: int) -> None:
        self._symbols = symbols
        self._count = count

    def next_tick(self, index: int, world: PerpWorld) -> int:
        """Return 0, or the number of ticks if there is nothing more to do."""
        return 0 if index == 0 and self._count and _missing_symbols(self._symbols, world) else self._count


def _missing_symbols(symbols: tuple[str, ...], world: PerpWorld) -> list[str]:
    blocked = symbols_with_orders(world)
    return [symbol for symbol in symbols if symbol not in world.positions and symbol not in blocked]


POLICY = define_policy("buy_and_hold", "long in every symbol from the first tick on", lambda seed: BuyAndHold())
