"""Names of models → who answers: `policy/<name>`, `standin/analyst`, and every provider's `<provider>/<model>`.

The one place that knows which names there are; nothing else compares model names. A provider's model is only named
here: it is connected (key, price, cache) when a run begins.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Literal

from pitboss.core.errors import InvariantError, UserError
from pitboss.core.ports import Model, ModelReply, ModelRequest
from pitboss.models.providers import LOCAL, PRESET, PROVIDERS, REPLAY
from pitboss.venues.perp import policies

if TYPE_CHECKING:  # a program is loaded when it is named: each brings a good part of its venue along
    from pitboss.venues.perp.policy import Policy, PolicyDefinition

Kind = Literal["policy", "standin", "model"]


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One name that works."""

    name: str
    kind: Kind
    summary: str
    venue: str = ""
    """The only venue on which it works; empty if it does on every one."""

    @property
    def is_policy(self) -> bool:
        """Reads the structured observation; needs no prompt and no tools."""
        return self.kind == "policy"

    @property
    def is_standin(self) -> bool:
        """Speaks the whole model protocol without being a language model."""
        return self.kind == "standin"

    @property
    def is_model(self) -> bool:
        """Has to be connected before it can be asked."""
        return self.kind == "model"


@dataclass(slots=True)
class Unconnected:
    """A model that has a name and nothing else yet."""

    name: str

    async def complete(self, request: ModelRequest) -> ModelReply:
        """There is nobody to ask."""
        raise InvariantError(f"{self.name} was asked before it was connected")


def resolve(name: str, seed: int = 0) -> "Policy | Model":
    """Who answers to a name: a `Policy` for `policy/*`, else a `Model` for the tool loop."""
    entry = describe(name)
    if entry.is_model:
        return Unconnected(name)
    if entry.is_policy:
        return policy(entry.name.removeprefix("policy/"), seed)
    from pitboss.venues.perp.standin.analyst import Analyst

    return Analyst()


def describe(name: str) -> CatalogEntry:
    """The entry of a name; an unknown one is refused with what works."""
    provider, _, model = name.partition("/")
    if provider in (*PROVIDERS, LOCAL, REPLAY, PRESET):
        if not model and provider != PRESET:
            raise UserError(f"{name!r} names no model of {provider}", f"write it as {provider}/<model>")
        return CatalogEntry(name, "model", f"a model of {provider}")
    if provider == "policy" and model in _policies():
        return _perp(_policies()[model])
    known = entries()
    if name in known:
        return known[name]
    raise _unknown("model", name, [*known, *(f"{one}/<model>" for one in (*PROVIDERS, LOCAL, REPLAY))])


def policy(name: str, seed: int = 0) -> "Policy":
    """A policy by its bare name."""
    known = _policies()
    if name not in known:
        if f"policy/{name}" in entries():
            raise UserError(f"policy/{name} is a policy of another venue", f"one of {', '.join(known)}")
        raise _unknown("policy", name, known)
    return known[name].build(seed)


@cache
def entries() -> Mapping[str, CatalogEntry]:
    """Every name that works now, sorted."""
    from pitboss.venues.perp.standin import analyst as standin
    from pitboss.venues.predict.heuristics import heuristics

    found = [_perp(one) for one in _policies().values()]
    found += [CatalogEntry(one.name, "policy", one.summary, "predict") for one in heuristics().values()]
    found.append(CatalogEntry(standin.NAME, "standin", standin.LABEL))
    return {entry.name: entry for entry in sorted(found, key=lambda entry: entry.name)}


def _perp(one: "PolicyDefinition") -> CatalogEntry:
    return CatalogEntry(f"policy/{one.name}", "policy", one.summary, "perp")


@cache
def _policies() -> "Mapping[str, PolicyDefinition]":
    return discover()


def discover() -> "dict[str, PolicyDefinition]":
    """Look into the policies package afresh."""
    from pitboss.venues.perp.policy import PolicyDefinition

    found: dict[str, PolicyDefinition] = {}
    for module in sorted(iter_modules(policies.__path__), key=lambda module: module.name):
        one = getattr(import_module(f"{policies.__name__}.{module.name}"), "POLICY", None)
        if not isinstance(one, PolicyDefinition):
            raise InvariantError(f"models/policies/{module.name}.py has no POLICY = define_policy(...)")
        if one.name in found:
            raise InvariantError(f"two policies are named {one.name}")
        found[one.name] = one
    return dict(sorted(found.items()))


def _unknown(what: str, name: str, known: Iterable[str]) -> UserError:
    known = list(known)
    close = get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]}?" if close else f"one of {', '.join(known)}"
    return UserError(f"unknown {what} {name!r}", hint)
