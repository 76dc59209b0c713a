"""Secrets leave no text: every value that was ever used as a key is taken out, in whatever form it got there.

A redactor knows values, not patterns, so it needs no guess of what a key looks like. It is the last thing before a text
goes to a log, a terminal or the database; whoever cuts a text to a length must do so after it, or half a key stays.
It is a net below code that does not put keys into texts in the first place, not a permission to do so.
"""

import re
from collections.abc import Iterable, Mapping
from threading import Lock
from urllib.parse import urlsplit

from pitboss.models.secret import HIDDEN as GONE
from pitboss.models.secret import SHORTEST as LEAST
from pitboss.models.secret import Veil

NAMES = re.compile(r"(?:^|_)(?:API_?KEY|TOKEN|SECRET|PASSWORD|SECRET_KEY|PRIVATE_KEY|ACCESS_KEY)$", re.IGNORECASE)
"""Variables of the environment whose values are secrets, whoever reads them."""

__all__ = ["GONE", "LEAST", "REDACTOR", "Redactor", "secrets_of"]


class Redactor:
    """Knows secret values and takes them out of texts. How a value may be written is `models.secret`'s knowledge."""

    def __init__(self) -> None:
        self._values: frozenset[str] = frozenset()
        self._veil: Veil | None = None
        self._lock = Lock()

    def add(self, *values: str | None) -> None:
        """From now on these are taken out. Values that are too short to be secrets are passed over."""
        fresh = {value.strip() for value in values if value and len(value.strip()) >= LEAST}
        with self._lock:
            if not fresh <= self._values:
                self._values |= fresh
                self._veil = Veil(self._values)

    def redact(self, text: str) -> str:
        """The text without any of the values."""
        veil = self._veil
        return text if veil is None else veil.hide(text)

    def forget(self) -> None:
        """Know nothing again, for a program that is run several times in one process."""
        with self._lock:
            self._values, self._veil = frozenset(), None


REDACTOR = Redactor()
"""The one of this process: a secret that any part of it used is kept out of what every part of it says."""


def secrets_of(environment: Mapping[str, str]) -> Iterable[str]:
    """The values of an environment that are secret by the name of their variable, and passwords within addresses."""
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
