"""The disguise of a blind run: what the model sees under other names, at other times and in other prices.

A run stays as it is: engine, account, orders and records know nothing of this. Only what goes to the model is disguised and
only what it proposes is turned back, so that the same decisions give the same run, blind or open. Factors are powers of
two, by which neither a decimal nor a float loses a digit: whatever a tool or a section works out of disguised numbers is
exactly the disguised result. Sizes are scaled by the inverse of the price, so that money stays money.

Who plays whom is `agent.alias`, the mapping itself `agent.cover`, the texts `agent.neutral`, the facts `agent.guise` and
`agent.hindsight`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pitboss.agent.blind.mapping import Alias, throw
from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.past import Past
from pitboss.core.ports import ToolSpec
from pitboss.venues.perp.blind import observation as guise
from pitboss.venues.perp.blind.memory import DisguisedPast
from pitboss.venues.perp.blind.translation import Cover
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.skill import PerpSkill

_VENUE = re.compile(r"(?<=trading agent on )Hyperliquid ")


@dataclass(frozen=True, eq=True)
class Disguise(Cover):
    """All that a blind run hides behind. Equal disguises hide alike; what is kept in one is only its own work."""

    @cached_property
    def _made(self) -> "guise.AnonymisedValues":
        return guise.AnonymisedValues(self)

    def market(self, market: Market) -> Market:
        """The market in disguise: one and the same for one and the same market."""
        return self._made.market(market)

    def observation(self, observation: Observation) -> Observation:
        """A tick as the model sees it. Asked again about the same tick it gives the same one."""
        return self._made.observation(observation)

    def skill(self, skill: PerpSkill) -> PerpSkill:
        """The skill in disguise: one and the same for one and the same skill."""
        return self._made.skill(skill)

    def header(self, system: str) -> str:
        """The system prompt without the venue, which names a coin too."""
        return _VENUE.sub("", system)

    def past(self, past: Past) -> Past:
        """The run's own past, asked and answered in disguised terms."""
        return DisguisedPast(past, self)

    def spec(self, spec: ToolSpec) -> ToolSpec:
        """A tool as it is offered: examples of symbols are names that exist."""
        known = self._specs.get(spec.name)
        if known is None or known[0] is not spec:
            example = self.aliases[0].name if self.aliases else "ASSET-K"
            seen = ToolSpec(spec.name, _in_spec(spec.description, example), _in_spec(spec.schema, example))
            known = self._specs[spec.name] = spec, seen
        return known[1]

    @cached_property
    def _specs(self) -> dict[str, tuple[ToolSpec, ToolSpec]]:
        return {}


def make_disguise(symbols: Sequence[str], seed: int, levels: Mapping[str, float] | None = None) -> Disguise:
    """The disguise of a run, thrown by its seed and its symbols. `levels` are prices known at its start.

    Knowing a price level serves to hide it: prices are put where any coin could be.
    """
    return Disguise(*throw(symbols, seed, levels or {}))


def read_disguise(plain: Mapping[str, Any]) -> Disguise:
    """A disguise as it was kept."""
    aliases = tuple(codec.parse(Alias, alias) for alias in plain["aliases"])
    return Disguise(aliases, int(plain["weeks"]), bool(plain.get("strangers")))


_EXAMPLE = re.compile(r"(?<=such as )BTC\b")


def _in_spec(value: Any, example: str) -> Any:
    if isinstance(value, str):
        return _EXAMPLE.sub(example, value)
    if isinstance(value, Mapping):
        return {key: _in_spec(item, example) for key, item in value.items()}
    return [_in_spec(item, example) for item in value] if isinstance(value, list) else value
