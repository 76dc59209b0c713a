"""`Endpoint`: the server that a model's name stood for when a run began, and the model's name there.

Stored with the run: who answered is part of the answer. Cached replies of one server never serve another, a resumed run
calls the same server, and a queued run takes its server with it, whatever the variables of the worker say.
"""

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from pitboss.core.errors import UserError
from pitboss.core.noun import noun
from pitboss.models.providers import PRESET, PROVIDERS, origin
from pitboss.models.routes import Route, route

ENDPOINT = "answered_by"
"""The key of a run's parameters that holds its endpoint."""
CHOICE = ("LLM_PROVIDER", "LLM_BASE_URL", "LLM_MODEL")
"""The variables that choose the model of `llm/`."""


@noun
class Endpoint:
    """A server and a model of it. `requested` is the name as the user wrote it, `name` the provider's and the model's."""

    requested: str
    name: str
    model: str
    base_url: str

    @property
    def is_listed(self) -> bool:
        """Whether the address is the provider's own."""
        provider = PROVIDERS.get(self.name.partition("/")[0])
        return provider is not None and provider.base_url == self.base_url

    @property
    def identity(self) -> str:
        """What separates cached replies: the name, and the address if it is not the provider's own."""
        return self.name if self.is_listed else f"{self.name}@{self.base_url}"

    @property
    def text(self) -> str:
        """The host and, for an address that is not the provider's own, its path."""
        parts = urlsplit(self.base_url)
        return parts.netloc if self.is_listed else f"{parts.netloc}{parts.path}"


def endpoint_of(requested: str, model_route: Route) -> Endpoint:
    """The endpoint of a route."""
    return Endpoint(requested, model_route.name, model_route.model, model_route.provider.base_url)


def read_endpoint(stored: object) -> Endpoint | None:
    """The endpoint in a run's parameters; None for programs and for runs of earlier versions."""
    names = Endpoint.__dataclass_fields__
    if not isinstance(stored, Mapping) or not all(isinstance(stored.get(name), str) for name in names):
        return None
    return Endpoint(**{name: stored[name] for name in names})


def route_to(endpoint: Endpoint, values: Mapping[str, str]) -> Route:
    """The route to a stored endpoint. A key that is set for another address is not used."""
    prefix = endpoint.requested.partition("/")[0]
    if prefix == PRESET:
        provider = endpoint.name.partition("/")[0]
        chosen = {
            "LLM_PROVIDER": "" if provider == PRESET else provider.removesuffix("-chat"),
            "LLM_BASE_URL": endpoint.base_url,
        }
        keys = ("LLM_API_KEY",)
        return route(f"{PRESET}/{endpoint.model}", _chosen(endpoint, chosen, keys, values))
    entry = PROVIDERS.get(prefix)
    chosen = dict.fromkeys(entry.url_names if entry else (), endpoint.base_url)
    return route(endpoint.requested, _chosen(endpoint, chosen, entry.key_names if entry else (), values))


def _chosen(
    endpoint: Endpoint, chosen: dict[str, str], keys: tuple[str, ...], values: Mapping[str, str]
) -> Mapping[str, str]:
    if not chosen:
        return values
    try:
        is_same = origin(route(endpoint.requested, values).provider.base_url) == origin(endpoint.base_url)
    except UserError:
        is_same = False
    withheld = {} if is_same else dict.fromkeys(keys, "")
    return _Overlay(chosen | withheld, values)


class _Overlay(Mapping[str, str]):
    """Values of which some are replaced; an empty replacement hides a value."""

    def __init__(self, replaced: Mapping[str, str], values: Mapping[str, str]) -> None:
        self._replaced = replaced
        self._values = values

    def __getitem__(self, name: str) -> str:
        return self._replaced[name] if name in self._replaced else self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter({*self._replaced, *self._values})

    def __len__(self) -> int:
        return len({*self._replaced, *self._values})


def check_unchanged(endpoint: Endpoint, values: Mapping[str, str]) -> None:
    """Refuse to continue a run if the variables now name another server or model than the one that it began with."""
    entry = PROVIDERS.get(endpoint.requested.partition("/")[0])
    variables = entry.url_names if entry is not None else CHOICE
    if not any(values.get(variable, "").strip() for variable in variables):
        return
    now = endpoint_of(endpoint.requested, route(endpoint.requested, values))
    if now != endpoint:
        raise UserError(
            f"the run began with {endpoint.name} at {endpoint.text}; {' and '.join(_changed(variables, values))} "
            f"now names {now.name} at {now.text}",
            "restore the variable, or try the other model on a branch: `pitboss runs fork`",
        )


def _changed(variables: tuple[str, ...], values: Mapping[str, str]) -> list[str]:
    return [variable for variable in variables if values.get(variable, "").strip()]
