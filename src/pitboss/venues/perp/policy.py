"""What every policy is made of: its definition, the raw proposals it writes, and the one rule about working orders.

A policy is a plain Python decider. It reads the structured observation, never text, and keeps nothing between ticks:
the same observation always gives the same answer, which is what makes a resumed run exact.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Protocol

from pitboss.agent.decider import Decider, Planned
from pitboss.core.errors import InvariantError
from pitboss.core.money import exact
from pitboss.models.catalog import unknown
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.state import PerpWorld, equity


class Policy(Decider, Planned, Protocol):
    """A decider whose holds can be foreseen."""


@dataclass(frozen=True, slots=True)
class PolicyDefinition:
    """A policy before it gets its seed. `build(seed)` makes it; most policies have no use for the seed."""

    name: str
    summary: str
    build: Callable[[int], Policy]


def define_policy(name: str, summary: str, build: Callable[[int], Policy]) -> PolicyDefinition:
    """Define a policy; it is asked for as `policy/<name>`."""
    if not name.isidentifier() or name != name.lower():
        raise InvariantError(f"policy name {name!r} is not snake_case")
    return PolicyDefinition(name, summary, build)


def busy(world: PerpWorld) -> frozenset[str]:
    """Symbols with any working order, open or close: a policy proposes nothing there until the order is gone."""
    return frozenset(order.symbol for order in world.orders) if world.orders else frozenset()


def side_of(world: PerpWorld, symbol: str) -> int:
    """+1 long, −1 short, 0 flat."""
    held = world.positions.get(symbol)
    return 0 if held is None else held.side


@exact
def open_intent(observation: Observation, symbol: str, side: int, reason: str) -> dict[str, Any]:
    """A market open of the symbol's equal share of the position cap, at leverage 1."""
    skill = observation.skill
    size_usd = (skill.risk.max_position_pct * equity(observation.world)).scaleb(-2) / len(skill.context.symbols)
    return {
        "action": "open_long" if side > 0 else "open_short",
        "symbol": symbol,
        "size_usd": size_usd,
        "leverage": 1,
        "order_type": "market",
        "reason": reason,
    }


def close_intent(symbol: str, reason: str) -> dict[str, Any]:
    """A market close of the whole position."""
    return {"action": "close", "symbol": symbol, "order_type": "market", "reason": reason}


@cache
def policies() -> Mapping[str, PolicyDefinition]:
    """Every policy by its name, found in the package `policies`: a new one is a new file there."""
    package = "pitboss.venues.perp.policies"
    found: dict[str, PolicyDefinition] = {}
    for module in sorted(iter_modules(import_module(package).__path__), key=lambda module: module.name):
        policy = getattr(import_module(f"{package}.{module.name}"), "POLICY", None)
        if not isinstance(policy, PolicyDefinition):
            raise InvariantError(f"{package}.{module.name} has no POLICY = define_policy(...)")
        if policy.name in found:
            raise InvariantError(f"two policies are named {policy.name}")
        found[policy.name] = policy
    return dict(sorted(found.items()))


def policy(name: str, seed: int = 0) -> Policy:
    """A policy by its bare name."""
    known = policies()
    if name not in known:
        raise unknown("policy", f"policy/{name}", [f"policy/{one}" for one in known])
    return known[name].build(seed)
