"""`Secret`: a key that cannot be printed by accident. It has to be revealed explicitly, which only the clients do.

It also removes itself from text that came from outside: a provider may repeat a key in an error or a reply, and nothing
that is stored may hold it. `forms` lists the ways in which a key may be written; `ValueRedactor` also serves for all keys of a
process at once (`bootstrap.redact`). This is not encryption; keys at rest belong to the store.
"""

import base64
import html
import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

HIDDEN = "***"
SHORTEST = 8
"""Shorter values are not removed: they are words (`ollama`, `none`) that occur in ordinary messages."""

_ESCAPED = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|(/))")


class ValueRedactor:
    """Removes values from texts, in any of the forms in which they may be written. Values too short to be secrets are ignored."""

    __slots__ = ("_coded", "_lower", "_pattern")

    def __init__(self, values: Iterable[str]) -> None:
        variants = {form for value in values if len(value) >= SHORTEST for form in forms(value)}
        longest_first = sorted(variants, key=lambda form: (-len(form), form))
        self._lower = tuple(dict.fromkeys(form.lower() for form in longest_first))
        self._coded = tuple(form.encode("utf-8", "surrogatepass") for form in self._lower)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)), re.IGNORECASE)

    def hide(self, text: str) -> str:
        """The text without the values."""
        if self._holds(text):
            text = self._pattern.sub(HIDDEN, text)
        if "\\" in text:
            # Any letter may be written as a JSON escape, even escaped several times.
            plain = _ESCAPED.sub(_letter, text)
            if self._holds(plain):
                return self._hide_escaped(text, plain)
        return text

    def _hide_escaped(self, text: str, plain: str) -> str:
        """The text without values that only show once escapes are decoded; other escapes stay, so JSON stays valid."""
        starts: list[int] = []  # where in the text each letter of the plain one begins
        at = 0
        for escape in _ESCAPED.finditer(text):
            starts += [*range(at, escape.start()), escape.start()]
            at = escape.end()
        starts += range(at, len(text) + 1)
        pieces, at = list[str](), 0
        for match in self._pattern.finditer(plain):
            pieces += (text[at : starts[match.start()]], HIDDEN)
            at = starts[match.end()]
        return "".join((*pieces, text[at:]))

    def hide_bytes(self, content: bytes) -> bytes:
        """The same for a body as it was received."""
        lower = content.lower()
        if not any(form in lower for form in (*self._coded, rb"\u", rb"\/")):
            return content
        text = content.decode("utf-8", "surrogateescape")
        return self.hide(text).encode("utf-8", "surrogateescape")

    def _holds(self, text: str) -> bool:
        lower = text.lower()  # nearly always there is no match, and this is ten times faster than the pattern
        return any(form in lower for form in self._lower)


class Secret:
    """One key. It is printed as `***` in every representation."""

    __slots__ = ("_redactor", "_value")

    def __init__(self, value: str) -> None:
        self._value = value
        self._redactor = ValueRedactor((value,))

    def reveal(self) -> str:
        """The key itself, only for the header of a request."""
        return self._value

    def hide(self, text: str) -> str:
        """The text without the key, in whatever form it is written, JSON escapes included."""
        return self._redactor.hide(text)

    def hide_bytes(self, content: bytes) -> bytes:
        """The same for a body as it was received."""
        return self._redactor.hide_bytes(content)

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

    The search ignores case, because encodings differ in it (`%2F`, `%2f`).
    """
    data = value.encode("utf-8", "surrogateescape")
    escaped = json.dumps(value)[1:-1]
    variants = {
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
        encoded = encode(data).decode()
        variants |= {encoded, encoded.rstrip("="), quote(encoded, safe="")}
        variants |= {_inner(encode(b"\0" * shift + data).decode(), shift, len(data)) for shift in range(3)}
    return {form for form in variants if len(form) >= SHORTEST}


def _inner(encoded: str, shift: int, length: int) -> str:
    """The characters of an encoding that do not depend on what surrounds the value.

    A key inside a longer text that was encoded together (`user:key` of a basic authorization) appears like this.
    """
    first = -(-shift * 8 // 6)
    last = (shift + length) * 8 // 6
    return encoded[first:last]
