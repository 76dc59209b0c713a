"""Names of models: `policy/<name>`, `standin/analyst`, `decisions`, and `<provider>/<model>` of every provider.

The only module that knows which kinds of names exist. Which policies there are belongs to each venue; a provider's model
is connected (key, price, cache) when a run begins.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from pitboss.core.errors import UserError
from pitboss.core.suggestion import did_you_mean, fold_spelling, nearest, nearest_spelling, suggestion
from pitboss.models import price_list, standin
from pitboss.models.providers import LOCAL, PRESET, PROVIDERS, REPLAY

Kind = Literal["policy", "standin", "model"]
POLICY = "policy"
NAMING = f"write PROVIDER/MODEL, {POLICY}/NAME or {standin.NAME}; `pitboss models list` lists them"
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
    raise UserError(f"unknown model {name!r}", did_you_mean(_similar_model(name), NAMING))


def choose_policy(policies: Mapping[str, P], name: str) -> P:
    """The policy of a bare name. An unknown one is refused."""
    if name not in policies:
        names = [f"{POLICY}/{other}" for other in policies]
        raise UserError(f"unknown policy {f'{POLICY}/{name}'!r}", suggestion(f"{POLICY}/{name}", names))
    return policies[name]


def _similar_model(name: str) -> str | None:
    """What a wrong name may stand for: another spelling of its provider, or a provider that has a model of this name."""
    prefix, slash, model = name.partition("/")
    if not slash:
        listed_at = price_list.provider_of(name)
        return next(
            (f"{each.name}/{name}" for each in PROVIDERS.values() if listed_at and each.prices == listed_at), None
        )
    if similar := nearest(name, [standin.NAME], fold_spelling, 0.7):
        return similar
    similar = nearest_spelling(prefix, (POLICY, *PROVIDERS, LOCAL, REPLAY, PRESET))
    return f"{similar}/{model}" if similar and model else None
