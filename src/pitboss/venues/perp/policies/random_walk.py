"""Policy `random`: acts at 5 % of the ticks, chosen by a hash of seed and tick; opens a random side or closes.

It is the lower bound that any informed strategy should beat. It has no state: its acts follow from seed and tick alone.
"""

from bisect import bisect_left
from hashlib import sha256
from typing import NamedTuple

from pitboss.agent.decider import Judge
from pitboss.core.asof import Market
from pitboss.core.instant import Instant
from pitboss.core.intent import Decision
from pitboss.core.market import Ints
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.policy import close_intent, define_policy, open_intent, symbols_with_orders
from pitboss.venues.perp.state import PerpWorld

ONE_IN = 20


class Draw(NamedTuple):
    """The random choice of symbol and side at a tick that acts."""

    choice: int
    side: int


def draw(seed: int, tick_at: Instant) -> Draw | None:
    """Return the draw of a tick, the same in every process; None at the 19 of 20 ticks that do not act."""
    dice = sha256(f"{seed}:{tick_at}".encode()).digest()
    if int.from_bytes(dice[:8], "big") % ONE_IN:
        return None
    return Draw(int.from_bytes(dice[8:16], "big"), 1 if dice[16] % 2 else -1)


class RandomWalk:
    """Draws at every tick and acts if the draw is not None."""

    name = "policy/random"

    def __init__(self, seed: int) -> None:
        self.seed = seed

    async def decide(self, observation: Observation, judge: Judge) -> Decision:
        """Return nothing, or one order in one symbol."""
        del judge
        act = draw(self.seed, observation.at)
        if act is None:
            return Decision()
        symbols = observation.skill.context.sorted_symbols
        symbol = symbols[act.choice % len(symbols)]
        if symbol in symbols_with_orders(observation.world):
            return Decision()
        reason = f"by chance (seed {self.seed})"
        if symbol in observation.world.positions:
            return Decision((close_intent(symbol, reason),))
        return Decision((open_intent(observation, symbol, act.side, reason),))

    def plan(self, market: Market, tick_at: Ints, symbols: tuple[str, ...], interval: str) -> "DicePlan":
        """Return the draws of all ticks at once."""
        del market, interval
        ordered = sorted(symbols)
        acts: list[tuple[int, str]] = []
        for index, at in enumerate(tick_at.tolist()):
            act = draw(self.seed, at)
            if act is not None:
                acts.append((index, ordered[act.choice % len(ordered)]))
        return DicePlan(acts, len(tick_at))


class DicePlan:
    """The ticks at which the policy acts, with their symbols."""

    def __init__(self, acts: list[tuple[int, str]], count: int) -> None:
        self._at = [index for index, _ in acts]
        self._symbols = [symbol for _, symbol in acts]
        self._count = count

    def next_tick(self, index: int, world: PerpWorld) -> int:
        """Return the next act whose symbol has no working order."""
        blocked = symbols_with_orders(world)
        for number in range(bisect_left(self._at, index), len(self._at)):
            if self._symbols[number] not in blocked:
                return self._at[number]
        return self._count


POLICY = define_policy("random", "acts by chance at 5 % of the ticks (seeded)", RandomWalk)
