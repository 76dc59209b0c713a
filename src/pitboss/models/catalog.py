"""Names of models → who answers: `policy/<name>`, `standin/analyst`. Language models come with their own adapters.

The one place that knows which names there are; nothing else compares model names.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Literal

from pitboss.core.errors import InvariantError, UserError
from pitboss.core.ports import Model
from pitboss.models import policies, standin
from pitboss.models.policy import Policy, PolicyDefinition

Kind = Literal["policy", "standin"]

PROVIDERS = ("anthropic", "openai", "groq", "google", "openrouter", "ollama", "local", "replay")
"""Providers that skills may already name and that this version cannot ask yet."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One name that works. Everything here is code of ours: it costs nothing and is not a language model."""

    name: str
    kind: Kind
    summary: str

    @property
    def is_policy(self) -> bool:
        """Reads the structured observation; needs no prompt and no tools."""
        return self.kind == "policy"

    @property
    def is_standin(self) -> bool:
        """Speaks the whole model protocol without being a language model."""
        return self.kind == "standin"


def resolve(name: str, seed: int = 0) -> Policy | Model:
    """Who answers to a name: a `Policy` for `policy/*`, else a `Model` for the tool loop."""
    entry = describe(name)
    return policy(entry.name.removeprefix("policy/"), seed) if entry.is_policy else standin.Analyst()


def describe(name: str) -> Entry:
    """The entry of a name; an unknown one is refused with what works."""
    known = entries()
    if name in known:
        return known[name]
    provider = name.partition("/")[0]
    if provider in PROVIDERS:
        raise UserError(
            f"{name}: asking {provider} comes in a later version of pitboss", f"these work now: {', '.join(known)}"
        )
    raise _unknown("model", name, known)


def policy(name: str, seed: int = 0) -> Policy:
    """A policy by its bare name."""
    known = _policies()
    if name not in known:
        raise _unknown("policy", name, known)
    return known[name].build(seed)


@cache
def entries() -> Mapping[str, Entry]:
    """Every name that works now, sorted."""
    found = [Entry(f"policy/{one.name}", "policy", one.summary) for one in _policies().values()]
    found.append(Entry(standin.NAME, "standin", standin.LABEL))
    return {entry.name: entry for entry in sorted(found, key=lambda entry: entry.name)}


@cache
def _policies() -> Mapping[str, PolicyDefinition]:
    return discover()


def discover() -> dict[str, PolicyDefinition]:
    """Look into the policies package afresh."""
    found: dict[str, PolicyDefinition] = {}
    for module in sorted(iter_modules(policies.__path__), key=lambda module: module.name):
        one = getattr(import_module(f"{policies.__name__}.{module.name}"), "POLICY", None)
        if not isinstance(one, PolicyDefinition):
            raise InvariantError(f"models/policies/{module.name}.py has no POLICY = define_policy(...)")
        if one.name in found:
            raise InvariantError(f"two policies are named {one.name}")
        found[one.name] = one
    return dict(sorted(found.items()))


def _unknown(what: str, name: str, known: Mapping[str, object]) -> UserError:
    close = get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]}?" if close else f"one of {', '.join(known)}"
    return UserError(f"unknown {what} {name!r}", hint)
