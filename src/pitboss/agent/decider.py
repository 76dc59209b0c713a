"""The `Decider` port. A tool loop over a model is one decider; policies and files of decisions are others.

A `Planned` decider is deterministic code whose holds can be predicted as long as the account does not change; the
simulator then skips the ticks in between. The plan must agree with calling it at every tick, which is tested.
"""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from pitboss.core.asof import Market
from pitboss.core.intent import Decision
from pitboss.core.market import Ints
from pitboss.core.verdict import Verdict

Judge = Callable[[Any], Verdict]
"""Returns the engine's verdict on an intent at this moment, without side effects."""


class Decider(Protocol):
    """Decides one tick, from an observation of the venue it was made for."""

    @property
    def name(self) -> str: ...

    async def decide(self, observation: Any, judge: Judge) -> Decision: ...


class Plan(Protocol):
    """When a planned decider acts next."""

    def next_tick(self, index: int, world: Any) -> int:
        """First tick at or after `index` that is not a hold if the account does not change; the tick count if none.

        A change is one of positions, orders or cash: `world` may have older marks than that tick.
        """
        ...


@runtime_checkable
class Planned(Protocol):
    """A decider that can say in advance when it will next act."""

    def plan(self, market: Market, tick_at: Ints, symbols: tuple[str, ...], interval: str) -> Plan: ...
