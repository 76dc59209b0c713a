"""Looks up provider keys: first in the environment, then in the encrypted store. Also maps keys to their providers.

Every key is added to the redactor before it is returned.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from pitboss.bootstrap.machine import SystemClock, environment
from pitboss.bootstrap.redact import REDACTOR, Redactor
from pitboss.core.errors import UserError
from pitboss.core.plain_http import HTTP_HOSTS
from pitboss.core.suggestion import did_you_mean, nearest
from pitboss.models.providers import PRESET, PROVIDERS
from pitboss.models.secret import Secret
from pitboss.store.secrets import NAME, VARIABLE, Secrets, check_name

Environment = Callable[[str], str | None]
PRESET_KEY = "LLM_API_KEY"
PRESET_HOST = "the host of LLM_BASE_URL or LLM_PROVIDER"


def open_secrets(home: Path, environment: Environment = environment, redactor: Redactor = REDACTOR) -> Secrets:
    """The secrets of a workspace. Nothing is read or created before the first use."""
    master = environment(VARIABLE) or ""
    redactor.add(master)
    return Secrets(home, master, SystemClock().now)


def key_for(
    variables: Iterable[str], environment: Environment, store: Secrets | None, redactor: Redactor = REDACTOR
) -> Secret | None:
    """The key under the first of these names that has one.

    The environment is searched first for all names: a key set for a single command takes precedence over stored keys.
    """
    names = tuple(variables)
    key = next((value for name in names if (value := (environment(name) or "").strip())), None)
    if key is None and store is not None:
        key = next((value for name in names if (value := store.get(name))), None)
    if key is None:
        return None
    redactor.add(key)
    return Secret(key)


class Values(Mapping[str, str]):
    """Values from the environment and the store by variable name, in the form that `models.providers.route` takes.

    The store is opened only for a key that the environment does not have, and holds only keys: an address never comes
    from it. `http_hosts` is the setting of that name. Its `repr` shows neither names nor values.
    """

    def __init__(
        self, environment: Environment, store: Secrets | None, redactor: Redactor = REDACTOR, http_hosts: str = ""
    ) -> None:
        self._environment = environment
        self._store = store
        self._redactor = redactor
        self._http_hosts = http_hosts
        self._siblings = _siblings()

    def __getitem__(self, name: str) -> str:
        value = self._http_hosts if name == HTTP_HOSTS else self._environment(name) or ""
        if name in self._siblings:
            key = None if value.strip() else key_for(self._siblings[name], self._environment, None, self._redactor)
            if key is None:
                key = key_for((name,), self._environment, self._store, self._redactor)
                value = "" if key is None else key.reveal()
        if not value:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._siblings if self.get(name))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def variable_of(name: str) -> str:
    """The variable for a name: the variable itself, or the first variable of a provider."""
    if name.lower() == PRESET:
        return PRESET_KEY
    provider = PROVIDERS.get(name.lower())
    if provider is not None:
        if not provider.key_names:
            raise UserError(f"{provider.name} needs no key")
        return provider.key_names[0]
    if not NAME.fullmatch(name) and len(name) <= 20 and name.replace("-", "_").isidentifier():
        hint = did_you_mean(nearest(name.lower(), PROVIDERS), "")
        if hint:
            raise UserError("there is no provider of that name", hint)
    check_name(name)
    return name


def owners() -> Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """By variable: the providers that read it, and the hosts it is sent to."""
    users: dict[str, tuple[list[str], list[str]]] = {PRESET_KEY: ([PRESET], [PRESET_HOST])}
    for provider in PROVIDERS.values():
        for variable in provider.key_names:
            names, hosts = users.setdefault(variable, ([], []))
            names.append(provider.name)
            if provider.host not in hosts:
                hosts.append(provider.host)
    return {variable: (tuple(names), tuple(hosts)) for variable, (names, hosts) in users.items()}


def _siblings() -> dict[str, tuple[str, ...]]:
    """By variable: all variables of its provider, because any of them in the environment precedes stored keys."""
    siblings: dict[str, tuple[str, ...]] = {PRESET_KEY: (PRESET_KEY,)}
    for provider in PROVIDERS.values():
        for variable in provider.key_names:
            siblings[variable] = tuple(dict.fromkeys((*siblings.get(variable, ()), *provider.key_names)))
    return siblings
