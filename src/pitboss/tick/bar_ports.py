"""`BarPorts`: the ports of a venue whose agents see closed bars and an account with an equity."""

from abc import abstractmethod
from decimal import Decimal
from typing import Any

from pitboss.core import codec
from pitboss.core.asof import Market, View
from pitboss.core.instant import Instant
from pitboss.core.money import ZERO, text
from pitboss.core.noun import noun
from pitboss.core.state import LastDecision, State
from pitboss.tick.ports import Ports


@noun
class BarObservation:
    """What the agent may know at `at`: the market up to then, the account, its last decision and its memory."""

    at: Instant
    skill: Any
    view: View
    world: Any
    last: LastDecision | None
    memory: Any


@noun
class BarPorts(Ports):
    """A venue derives its own and implements `rule_book` and `equity`."""

    skill: Any
    market: Market

    @abstractmethod
    def equity(self, world: Any) -> Decimal:
        """The value of the account."""

    def observe(self, state: State, at: Instant) -> BarObservation:
        """The market as of `at`, and the state."""
        return BarObservation(at, self.skill, self.market.view(at), state.world, state.last, state.memory)

    def summary(self, world: Any) -> dict[str, Any]:
        """The fields of the world, and its equity."""
        return {**codec.plain(world), "equity": text(self.equity(world))}

    def is_over(self, world: Any) -> bool:
        """Whether no equity is left."""
        return self.equity(world) <= ZERO
