"""Names of models: `policy/<name>`, `standin/analyst`, `decisions`, and `<provider>/<model>` of every provider.

The only module that knows which kinds of names exist. Which policies there are belongs to each venue; a provider's model
is connected (key, price, cache) when a run begins.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from pitboss.core.errors import UserError
from pitboss.core.suggestion import did_you_mean, nearest
from pitboss.models import standin
from pitboss.models.providers import LOCAL, PRESET, PROVIDERS, REPLAY

Kind = Literal["policy", "standin", "model"]
POLICY = "policy"
P = TypeVar("P")


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
        """Whether it reads the structured observation and needs no prompt and no tools."""
        return self.kind == "policy"

    @property
    def is_standin(self) -> bool:
        """Whether it is a program behind the model protocol."""
        return self.kind == "standin"

    @property
    def is_model(self) -> bool:
        """Whether it has to be connected before it can be called."""
        return self.kind == "model"


def describe(name: str) -> CatalogEntry:
    """The entry of a name. An unknown one is refused; whether a policy exists is checked by its venue."""
    provider, _, model = name.partition("/")
    if provider in (*PROVIDERS, LOCAL, REPLAY, PRESET):
        if not model and provider != PRESET:
            raise UserError(f"{name!r} names no model of {provider}", f"write it as {provider}/<model>")
        return CatalogEntry(name, "model", f"a model of {provider}")
    if provider == POLICY and model:
        return CatalogEntry(name, "policy", "")
    if name == standin.NAME:
        return CatalogEntry(name, "standin", standin.LABEL)
    raise unknown(
        "model", name, [standin.NAME, *(f"{prefix}/<model>" for prefix in (POLICY, *PROVIDERS, LOCAL, REPLAY))]
    )


def choose_policy(policies: Mapping[str, P], name: str) -> P:
    """The policy of a bare name. An unknown one is refused."""
    if name not in policies:
        raise unknown("policy", f"{POLICY}/{name}", [f"{POLICY}/{other}" for other in policies])
    return policies[name]


def unknown(kind: str, name: str, choices: list[str]) -> UserError:
    """The error for a name that does not exist, with the nearest one that does."""
    return UserError(f"unknown {kind} {name!r}", did_you_mean(nearest(name, choices), f"one of {', '.join(choices)}"))
