"""Secrets leave no text: every value that was ever used as a key is taken out, in whatever form it got there.

A redactor knows values, not patterns, so it needs no guess of what a key looks like. It is the last thing before a text
goes to a log, a terminal or the database; whoever cuts a text to a length must do so after it, or half a key stays.
It is a net below code that does not put keys into texts in the first place, not a permission to do so.
"""

import base64
import html
import json
import re
from collections.abc import Iterable, Mapping
from threading import Lock
from urllib.parse import quote, quote_plus, urlsplit

GONE = "***"
LEAST = 8
"""Shorter values are not taken out: they are words (`ollama`, `none`) that would tear holes into every message."""

NAMES = re.compile(r"(?:^|_)(?:API_?KEY|TOKEN|SECRET|PASSWORD|SECRET_KEY|PRIVATE_KEY|ACCESS_KEY)$", re.IGNORECASE)
"""Variables of the environment whose values are secrets, whoever reads them."""


class Redactor:
    """Knows secret values and takes them out of texts."""

    def __init__(self) -> None:
        self._values: set[str] = set()
        self._forms: set[str] = set()
        self._lower: tuple[str, ...] = ()
        self._pattern: re.Pattern[str] | None = None
        self._lock = Lock()

    def add(self, *values: str | None) -> None:
        """From now on these are taken out. Values that are too short to be secrets are passed over."""
        fresh = {value.strip() for value in values if value and len(value.strip()) >= LEAST} - self._values
        if not fresh:
            return
        with self._lock:
            self._values |= fresh
            self._forms |= {form for value in fresh for form in forms(value)}
            longest_first = sorted(self._forms, key=lambda form: (-len(form), form))
            self._lower = tuple(dict.fromkeys(form.lower() for form in longest_first))
            self._pattern = re.compile("|".join(map(re.escape, longest_first)), re.IGNORECASE)

    def redact(self, text: str) -> str:
        """The text without any of the values."""
        if self._pattern is None:
            return text
        lower = text.lower()
        if not any(form in lower for form in self._lower):  # nearly always, and ten times quicker than the pattern
            return text
        return self._pattern.sub(GONE, text)

    def forget(self) -> None:
        """Know nothing again, for a program that is run several times in one process."""
        with self._lock:
            self._values, self._forms, self._lower, self._pattern = set(), set(), (), None


REDACTOR = Redactor()
"""The one of this process: a secret that any part of it used is kept out of what every part of it says."""


def forms(value: str) -> set[str]:
    """A value as it may appear in a text: plain, base64 and base64url, url-encoded, JSON-escaped, hex, in HTML.

    Upper and lower case of what was encoded (`%2F`, `%2f`) are not told apart when looking for them.
    """
    data = value.encode("utf-8", "surrogateescape")
    escaped = json.dumps(value)[1:-1]
    found = {
        value,
        escaped,
        escaped.replace("/", "\\/"),
        json.dumps(value, ensure_ascii=False)[1:-1],
        quote(data, safe=""),
        quote(data),
        quote_plus(data),
        html.escape(value),
        html.escape(value, quote=False),
        data.hex(),
    }
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = encode(data).decode()
        found |= {whole, whole.rstrip("="), quote(whole, safe="")}
        found |= {_inner(encode(b"\0" * shift + data).decode(), shift, len(data)) for shift in range(3)}
    return {form for form in found if len(form) >= LEAST}


def _inner(encoded: str, shift: int, length: int) -> str:
    """The characters of an encoding that stay the same whatever stands before and behind the value.

    A key inside a longer text that was encoded as a whole (`user:key` of a basic authorization) shows up like this.
    """
    first = -(-shift * 8 // 6)
    last = (shift + length) * 8 // 6
    return encoded[first:last]


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
