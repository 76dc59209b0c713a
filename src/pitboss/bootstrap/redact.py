"""The secrets of this process: every value that was ever used as a key is removed from text that enters or leaves it.

How a value is recognised is in `core.redaction`. Text of an MCP server or another untrusted source passes `redact` as it
comes in; what goes to a log, a terminal or the database passes it as the last step. A text must be cut after redaction, or half
a key may remain.
"""

import re
from collections.abc import Iterable, Mapping
from threading import Lock
from urllib.parse import urlsplit

from pitboss.core.redaction import SHORTEST, ValueRedactor

NAMES = re.compile(r"(?:^|_)(?:API_?KEY|TOKEN|SECRET|PASSWORD|SECRET_KEY|PRIVATE_KEY|ACCESS_KEY)$", re.IGNORECASE)
"""Environment variables whose values are treated as secrets."""


class Redactor:
    """Holds secret values and removes them from texts."""

    def __init__(self) -> None:
        self._values: frozenset[str] = frozenset()
        self._redactor: ValueRedactor | None = None
        self._lock = Lock()

    def add(self, *values: str | None) -> None:
        """Add values to remove. Values that are too short to be secrets are ignored."""
        fresh = {value.strip() for value in values if value and len(value.strip()) >= SHORTEST}
        with self._lock:
            if not fresh <= self._values:
                self._values |= fresh
                self._redactor = ValueRedactor(self._values)

    def redact(self, text: str) -> str:
        """The text without any of the values."""
        redactor = self._redactor
        return text if redactor is None else redactor.hide(text)

    def forget(self) -> None:
        """Forget all values, for a program that is run several times in one process."""
        with self._lock:
            self._values, self._redactor = frozenset(), None


REDACTOR = Redactor()
"""The redactor of this process: a secret used by any part of it is removed from the output of every part."""


def secrets_of(environment: Mapping[str, str]) -> Iterable[str]:
    """The values of variables whose names mark them as secret, and the passwords in addresses."""
    for name, value in environment.items():
        if NAMES.search(name):
            yield value
        elif "://" in value and "@" in value:
            yield from _password(value)


def _password(address: str) -> Iterable[str]:
    try:
        password = urlsplit(address).password
    except ValueError:
        return
    if password:
        yield password


def keys_in(address: str) -> Iterable[str]:
    """What may be a key in the address of a service: the whole, its password, and long words behind the host."""
    yield address
    yield from _password(address)
    yield from re.findall(r"[A-Za-z0-9_~-]{16,}", address.partition("://")[2].partition("/")[2])
