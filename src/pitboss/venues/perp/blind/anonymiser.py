"""`PerpAnonymiser`: shows the model of a blind run other symbol names, other dates and other prices.

Engine, account, orders and records always hold true values. Only what goes to the model is anonymised and only what it
proposes is translated back, so the same decisions give the same run, blind or not. Scale factors are powers of two, so
neither a decimal nor a float loses a digit: anything that a tool or a section computes from anonymised numbers is
exactly the anonymised result. Sizes are scaled by the inverse of the price factor, so amounts of money are unchanged.

It is used instead of `agent.blind.anonymiser`, because each symbol has factors of its own and sizes are scaled too.
Related modules: `agent.blind.mapping` (names, factors and the shift in time), `agent.blind.translator` (names, texts
and the past), `agent.blind.market`, `venues.perp.blind.translation` (proposals and verdicts),
`venues.perp.blind.observation` (account), `venues.perp.blind.memory`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pitboss.agent.blind.mapping import draw_mapping
from pitboss.core.asof import Market
from pitboss.core.ports import ToolSpec
from pitboss.venues.perp.blind.observation import AnonymisedValues
from pitboss.venues.perp.blind.translation import PerpTranslator
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.skill import PerpSkill

_VENUE = re.compile(r"(?<=trading agent on )Hyperliquid ")


@dataclass(frozen=True, eq=True)
class PerpAnonymiser(PerpTranslator):
    """Anonymises everything that the model of one run sees, with caches of the results.

    Equality compares the mapping only; the caches are not part of it.
    """

    @cached_property
    def _cached(self) -> AnonymisedValues:
        return AnonymisedValues(self)

    def market(self, market: Market) -> Market:
        """Return the anonymised market; the same object for the same market."""
        return self._cached.market(market)

    def observation(self, observation: Observation) -> Observation:
        """Return a tick as the model sees it; the same object for the same observation."""
        return self._cached.observation(observation)

    def skill(self, skill: PerpSkill) -> PerpSkill:
        """Return the anonymised skill; the same object for the same skill."""
        return self._cached.skill(skill)

    def header(self, system: str) -> str:
        """Return the system prompt without the venue's name, which is also the name of a coin."""
        return _VENUE.sub("", system)

    def spec(self, spec: ToolSpec) -> ToolSpec:
        """Return a tool's specification with example symbols replaced by names that exist in this run."""
        entry = self._specs.get(spec.name)
        if entry is None or entry[0] is not spec:
            example = self.aliases[0].name if self.aliases else "ASSET-K"
            anonymised = ToolSpec(spec.name, _in_spec(spec.description, example), _in_spec(spec.schema, example))
            entry = self._specs[spec.name] = spec, anonymised
        return entry[1]

    @cached_property
    def _specs(self) -> dict[str, tuple[ToolSpec, ToolSpec]]:
        return {}


def make_anonymiser(symbols: Sequence[str], seed: int, levels: Mapping[str, float] | None = None) -> PerpAnonymiser:
    """Create the anonymiser of a run from its seed and symbols; `levels` are prices known at its start.

    With the price level known, prices are scaled to a level that does not identify the coin.
    """
    return PerpAnonymiser(*draw_mapping(symbols, seed, levels or {}))


def read_anonymiser(plain: Mapping[str, Any]) -> PerpAnonymiser:
    """Restore an anonymiser from the form stored with the run (`PerpAnonymiser.plain`)."""
    return PerpAnonymiser.read(plain)


_EXAMPLE = re.compile(r"(?<=such as )BTC\b")


def _in_spec(value: Any, example: str) -> Any:
    if isinstance(value, str):
        return _EXAMPLE.sub(example, value)
    if isinstance(value, Mapping):
        return {key: _in_spec(item, example) for key, item in value.items()}
    return [_in_spec(item, example) for item in value] if isinstance(value, list) else value
