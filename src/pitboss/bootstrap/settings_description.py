"""Describes the settings of a workspace for people and for `--json`, without the secrets in them."""

import re
from typing import Any

from pydantic.fields import FieldInfo

from pitboss.bootstrap.settings import Settings, setting_fields, variable_name
from pitboss.core.redaction import HIDDEN

_PASSWORD = re.compile(r"(://[^/?#@:]*):.*@", re.DOTALL)


def describe(settings: Settings) -> list[dict[str, Any]]:
    """Every setting with its value, default and description; those of venues last.

    The value of a setting that may hold a key, declared with `repr=False`, is not shown, nor are the password and the values of
    query parameters in an address.
    """
    return [
        {
            "key": name,
            "variable": variable_name(name),
            "value": _shown(field, getattr(settings, name, field.default)),
            "default": _text(field.default),
            "meaning": field.description,
        }
        for name, field in setting_fields()
    ]


def _shown(field: FieldInfo, value: object) -> str:
    if value and not field.repr:
        return HIDDEN
    text = _text(value)
    return _without_credentials(text) if "://" in text else text


def _without_credentials(address: str) -> str:
    """An address without its password and without the values of its query parameters.

    A password may hold any character, also `/` and `@`: what lies before the last `@` is hidden.
    """
    base, mark, rest = _PASSWORD.sub(rf"\1:{HIDDEN}@", address).partition("?")
    query, number_sign, fragment = rest.partition("#")
    hidden = "&".join(map(_without_value, query.split("&"))) if query else ""
    return f"{base}{mark}{hidden}{number_sign}{fragment}"


def _without_value(parameter: str) -> str:
    name, sign, _ = parameter.partition("=")
    return f"{name}={HIDDEN}" if sign else HIDDEN


def _text(value: object) -> str:
    return "" if value is None else str(value)
