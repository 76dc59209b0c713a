"""The provider keys of a workspace as lists show them, and setting and removing them. A value goes in and never comes out."""

from typing import Any

from pitboss.bootstrap.keys import open_secrets, owners, variable_of
from pitboss.bootstrap.machine import environment
from pitboss.bootstrap.mcp_servers import key_users
from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.settings import Settings
from pitboss.core.instant import iso

NOTIFICATION_KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "NOTIFY_EMAIL_PASSWORD": (("notifications",), ("notify_email_host",)),
    "NOTIFY_TELEGRAM_TOKEN": (("notifications",), ("api.telegram.org",)),
    "NOTIFY_WEBHOOK_SECRET": (("notifications",), ()),
}
"""The secrets of notification channels: who uses them, and where they are sent. The webhook's only signs."""


def stored_keys(settings: Settings) -> list[dict[str, Any]]:
    """The stored keys: name, who uses them, the hosts they are sent to, since when. Never their values."""
    return [_row(settings, name, iso(at)) for name, at in open_secrets(settings.home).names().items()]


def known_keys(settings: Settings) -> list[dict[str, Any]]:
    """Every key that a provider or server can use or that is stored, by name; `set_at` is None for those that are not stored."""
    stored = {row["name"]: row for row in stored_keys(settings)}
    return [stored.get(name) or _row(settings, name, None) for name in sorted({*_users(settings), *stored})]


def set_key(settings: Settings, name: str, value: str) -> tuple[str, bool]:
    """Store a key under a provider's name or a variable; returns the variable, and whether another value was replaced."""
    variable = variable_of(name)
    REDACTOR.add(value)
    return variable, open_secrets(settings.home).set(variable, value)


def remove_key(settings: Settings, name: str) -> str:
    """Remove a stored key; returns its variable."""
    variable = variable_of(name)
    open_secrets(settings.home).remove(variable)
    return variable


def in_environment(variable: str) -> bool:
    """Whether the environment has a value, which takes precedence over the stored one."""
    return bool((environment(variable) or "").strip())


def _users(settings: Settings) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    return {**key_users(settings), **owners(), **NOTIFICATION_KEYS}


def _row(settings: Settings, name: str, set_at: str | None) -> dict[str, Any]:
    providers, hosts = _users(settings).get(name, ((), ()))
    return {
        "name": name,
        "providers": list(providers),
        "hosts": list(hosts),
        "set_at": set_at,
        "in_environment": in_environment(name),
    }
