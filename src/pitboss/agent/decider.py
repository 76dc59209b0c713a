"""Who answers at a tick. A tool loop over a model is one decider; a policy and a file of decisions are others.

A `Planned` decider is deterministic code whose holds can be foreseen as long as the account does not change; the
simulator then skips the ticks in between. The plan must agree with asking at every tick, and is tested to.
"""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from pitboss.core.asof import Market
from pitboss.core.intent import Decision
from pitboss.core.market import Ints
from pitboss.core.verdict import Verdict

Judge = Callable[[Any], Verdict]
"""What would the engine say to this intent now? Changes nothing."""


class Decider(Protocol):
    """Answers one tick, from the observation of the venue it was made for."""

    @property
    def name(self) -> str: ...

    async def decide(self, observation: Any, judge: Judge) -> Decision: ...


class Plan(Protocol):
    """When a planned decider acts next."""

    def next_tick(self, index: int, world: Any) -> int:
        """First tick at or after `index` that is not a hold while the account stays as it is; the tick count if none."""
        ...


@runtime_checkable
class Planned(Protocol):
    """A decider that can say in advance when it will next act."""

    def plan(self, market: Market, tick_at: Ints, symbols: tuple[str, ...], interval: str) -> Plan: ...
