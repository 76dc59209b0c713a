"""Resolves a model name to a `Route`: the provider, the model's name there, and the key.

`route` reads nothing but the mapping it receives, which bootstrap fills from the environment and the stored secrets. A
route never pairs a key with an origin that the key does not belong to.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlsplit

from pitboss.core.errors import KeyMissing, UserError
from pitboss.core.noun import noun
from pitboss.core.plain_http import HTTP_HOSTS, check_plain_http
from pitboss.core.suggestion import did_you_mean, nearest, suggestion
from pitboss.models.providers import PRESET, PROVIDERS, Dialect, Provider, origin
from pitboss.models.secret import Secret

_VERSION_DOT = re.compile(r"(?<=\d)\.(?=\d)")


@noun
class Route:
    """A resolved model name: the provider, its name for the model, and the key."""

    name: str
    provider: Provider
    model: str
    key: Secret | None = None


def route(name: str, values: Mapping[str, str]) -> Route:
    """Resolve a model name. `values` holds the environment and the stored secrets by variable name.

    Under `HTTP_HOSTS` it holds the hosts, besides this machine, whose address may begin with `http://`.
    """
    prefix, _, model = name.partition("/")
    if prefix == PRESET:
        return _preset(model, values)
    if prefix not in PROVIDERS:
        names = f"one of {', '.join(PROVIDERS)}, or LLM_BASE_URL with llm/<model>"
        hint = did_you_mean(nearest(prefix, [*PROVIDERS, PRESET]), names)
        raise UserError(f"unknown provider {prefix!r}", hint)
    provider = PROVIDERS[prefix]
    if not model:
        raise UserError(f"{name!r} names no model of {prefix}", f"write it as {prefix}/<model>")
    for variable in provider.url_names:
        if values.get(variable, "").strip():
            provider = _moved(provider, _address(variable, values))
    _require_address(provider, provider.url_names)
    return Route(name, provider, _wire_model(provider, model), _key(provider, provider.key_names, values))


def _preset(model: str, values: Mapping[str, str]) -> Route:
    """Resolve `llm/` by LLM_PROVIDER, LLM_BASE_URL, LLM_API_KEY and LLM_MODEL; the default provider is groq."""
    provider_name = values.get("LLM_PROVIDER", "").strip().lower()
    address = values.get("LLM_BASE_URL", "").strip()
    provider = _preset_provider(provider_name or "groq")
    key_names = ("LLM_API_KEY", *provider.key_names)
    if address:
        url = _address("LLM_BASE_URL", values)
        listed = next(
            (entry for entry in PROVIDERS.values() if not entry.native and origin(entry.base_url) == origin(url)), None
        )
        if listed is not None:  # the address identifies a server better than its name
            provider, key_names = replace(listed, base_url=url), ("LLM_API_KEY", *listed.key_names)
        else:
            # Only the key set for this address is sent there, never the key of the provider that it replaces.
            own = provider if provider_name else Provider(PRESET, url, (), dialect=Dialect(), needs_key=False)
            provider, key_names = replace(_moved(own, url), needs_key=False, prices=None), ("LLM_API_KEY",)
    _require_address(provider, ("LLM_BASE_URL",))
    model = model or values.get("LLM_MODEL", "").strip() or provider.default_model
    if not model:
        raise UserError("no model is named", "set LLM_MODEL, or write llm/<model>")
    model = _wire_model(provider, model)
    name = PRESET if provider.name == PRESET else provider.name
    return Route(f"{name}/{model}", provider, model, _key(provider, key_names, values))


def _preset_provider(name: str) -> Provider:
    provider = PROVIDERS.get(f"{name}-chat") or PROVIDERS.get(name)
    if provider is None:
        hint = suggestion(name, PROVIDERS)
        raise UserError(f"LLM_PROVIDER is {name!r}, which is not a provider", hint)
    return provider


def _require_address(provider: Provider, variables: tuple[str, ...]) -> None:
    if not provider.base_url:
        raise UserError(
            f"{provider.name} has an address for each customer or region",
            f"set {variables[0]}, such as {provider.example_url}",
        )


def _moved(provider: Provider, url: str) -> Provider:
    return replace(provider, base_url=url, key_origin=origin(url))


def _address(variable: str, values: Mapping[str, str]) -> str:
    url = values[variable].strip().rstrip("/").removesuffix("/chat/completions")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or "@" in parts.netloc
        or parts.query
        or parts.fragment
    ):
        raise UserError(
            f"{variable} is not an address that can be asked",
            "write it as https://host/v1, without a user, a query or a key in it",
        )
    check_plain_http(parts.scheme, parts.hostname, variable, values.get(HTTP_HOSTS, ""))
    return url


def _wire_model(provider: Provider, model: str) -> str:
    # Anthropic's names have dashes where other providers write a dot.
    return _VERSION_DOT.sub("-", model) if provider.name.startswith("anthropic") else model


def _key(provider: Provider, names: tuple[str, ...], values: Mapping[str, str]) -> Secret | None:
    for name in names:
        value = values.get(name, "").strip()
        if not value:
            continue
        if not value.isascii() or not value.isprintable() or " " in value:
            raise UserError(f"{name} holds characters that no key has", f"set it again: `pitboss secrets set {name}`")
        return Secret(value)
    if provider.needs_key:
        raise KeyMissing(
            f"{provider.name} needs a key", f"set {names[0]} in the environment, or `pitboss secrets set {names[0]}`"
        )
    return None
