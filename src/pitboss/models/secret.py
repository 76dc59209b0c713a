"""`Secret`: a key that cannot be shown by accident. It has to be revealed on purpose, and only the clients do that.

It also knows how to take itself out of text that came from outside: a provider may repeat a key in an error or an answer,
and nothing that is stored may hold it. `forms` is the one list of how a key may be written; `Veil` is used for all keys of
a process at once as well (`bootstrap.redact`). None of it is encryption; keys at rest are the store's business.
"""

import base64
import html
import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

HIDDEN = "***"
SHORTEST = 8
"""Shorter values are not taken out: they are words (`ollama`, `none`) that would tear holes into every message."""

_ESCAPED = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|(/))")


class Veil:
    """Takes values out of texts, in whatever form they stand there. Values too short to be secrets are passed over."""

    __slots__ = ("_coded", "_lower", "_pattern")

    def __init__(self, values: Iterable[str]) -> None:
        found = {form for value in values if len(value) >= SHORTEST for form in forms(value)}
        longest_first = sorted(found, key=lambda form: (-len(form), form))
        self._lower = tuple(dict.fromkeys(form.lower() for form in longest_first))
        self._coded = tuple(form.encode("utf-8", "surrogatepass") for form in self._lower)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)), re.IGNORECASE)

    def hide(self, text: str) -> str:
        """The text without the values."""
        if self._holds(text):
            text = self._pattern.sub(HIDDEN, text)
        if "\\" in text:
            # Any letter may stand as an escape of JSON, more than once escaped at that.
            plain = _ESCAPED.sub(_letter, text)
            if self._holds(plain):
                return self._hide_escaped(text, plain)
        return text

    def _hide_escaped(self, text: str, plain: str) -> str:
        """The text without what only shows once its escapes are read; the other escapes stay, so JSON stays JSON."""
        starts: list[int] = []  # where in the text each letter of the plain one begins
        at = 0
        for escape in _ESCAPED.finditer(text):
            starts += [*range(at, escape.start()), escape.start()]
            at = escape.end()
        starts += range(at, len(text) + 1)
        kept, at = list[str](), 0
        for found in self._pattern.finditer(plain):
            kept += (text[at : starts[found.start()]], HIDDEN)
            at = starts[found.end()]
        return "".join((*kept, text[at:]))

    def hide_bytes(self, content: bytes) -> bytes:
        """The same for a body as it was received."""
        lower = content.lower()
        if not any(form in lower for form in (*self._coded, rb"\u", rb"\/")):
            return content
        text = content.decode("utf-8", "surrogateescape")
        return self.hide(text).encode("utf-8", "surrogateescape")

    def _holds(self, text: str) -> bool:
        lower = text.lower()  # nearly always there is nothing, and this is ten times quicker than the pattern
        return any(form in lower for form in self._lower)


class Secret:
    """One key. Shown as `***` in every way there is of showing it."""

    __slots__ = ("_value", "_veil")

    def __init__(self, value: str) -> None:
        self._value = value
        self._veil = Veil((value,))

    def reveal(self) -> str:
        """The key itself, for the header of a request and nothing else."""
        return self._value

    def hide(self, text: str) -> str:
        """The text without the key, however it is written in there, escapes of JSON included."""
        return self._veil.hide(text)

    def hide_bytes(self, content: bytes) -> bytes:
        """The same for a body as it was received."""
        return self._veil.hide_bytes(content)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return HIDDEN

    def __reduce__(self) -> str:
        raise TypeError("a secret is never pickled or copied")


def _letter(escape: "re.Match[str]") -> str:
    return escape[2] or chr(int(escape[1], 16))


def forms(value: str) -> set[str]:
    """A value as it may appear in a text: plain, base64 and base64url, url-encoded, JSON-escaped, hex, in HTML, backwards.

    Upper and lower case of what was encoded (`%2F`, `%2f`) are not told apart when looking for them.
    """
    data = value.encode("utf-8", "surrogateescape")
    escaped = json.dumps(value)[1:-1]
    found = {
        value,
        value[::-1],
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
    return {form for form in found if len(form) >= SHORTEST}


def _inner(encoded: str, shift: int, length: int) -> str:
    """The characters of an encoding that stay the same whatever stands before and behind the value.

    A key inside a longer text that was encoded as a whole (`user:key` of a basic authorization) shows up like this.
    """
    first = -(-shift * 8 // 6)
    last = (shift + length) * 8 // 6
    return encoded[first:last]
