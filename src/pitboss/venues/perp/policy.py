"""The common parts of policies: their definition, the proposals they write, and the rule about working orders.

A policy is a decider in plain Python. It reads the structured observation, never text, and keeps no state between
ticks: the same observation always gives the same decision, so a resumed run is exact.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from pitboss.agent.decider import Decider, Planned
from pitboss.core.discovery import definitions
from pitboss.core.errors import InvariantError
from pitboss.core.money import PERCENT, exact
from pitboss.models.catalog import choose_policy
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.state import PerpWorld, equity


class Policy(Decider, Planned, Protocol):
    """A decider that can plan the ticks at which it acts."""


@dataclass(frozen=True, slots=True)
class PolicyDefinition:
    """A policy before it gets its seed; `build(seed)` creates it, and most policies ignore the seed."""

    name: str
    summary: str
    build: Callable[[int], Policy]


def define_policy(name: str, summary: str, build: Callable[[int], Policy]) -> PolicyDefinition:
    """Define a policy; a request selects it as `policy/<name>`."""
    if not name.isidentifier() or name != name.lower():
        raise InvariantError(f"policy name {name!r} is not snake_case")
    return PolicyDefinition(name, summary, build)


def symbols_with_orders(world: PerpWorld) -> frozenset[str]:
    """Return the symbols with any working order; a policy proposes nothing there until the order is gone."""
    return frozenset(order.symbol for order in world.orders) if world.orders else frozenset()


def side_of(world: PerpWorld, symbol: str) -> int:
    """Return +1 long, −1 short, 0 flat."""
    position = world.positions.get(symbol)
    return 0 if position is None else position.side


@exact
def open_intent(observation: Observation, symbol: str, side: int, reason: str) -> dict[str, Any]:
    """Return a market open of the symbol's equal share of the position cap, at leverage 1."""
    skill = observation.skill
    size_usd = skill.risk.max_position_pct * equity(observation.world) * PERCENT / len(skill.context.symbols)
    return {
        "action": "open_long" if side > 0 else "open_short",
        "leverage": 1,
        "order_type": "market",
        "reason": reason,
        "size_usd": size_usd,
        "symbol": symbol,
    }


def close_intent(symbol: str, reason: str) -> dict[str, Any]:
    """Return a market close of the whole position."""
    return {"action": "close", "order_type": "market", "reason": reason, "symbol": symbol}


@cache
def policies() -> Mapping[str, PolicyDefinition]:
    """Return every policy by name, discovered in the package `policies`; a new policy is a new module there."""
    by_name: dict[str, PolicyDefinition] = {}
    for policy in definitions("pitboss.venues.perp.policies", "POLICY", PolicyDefinition, "define_policy"):
        if policy.name in by_name:
            raise InvariantError(f"two policies are named {policy.name}")
        by_name[policy.name] = policy
    return dict(sorted(by_name.items()))


def policy(name: str, seed: int = 0) -> Policy:
    """Return a policy by its bare name."""
    return choose_policy(policies(), name).build(seed)
