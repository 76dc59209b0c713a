"""`Secret`: a key that cannot be shown by accident. It has to be revealed on purpose, and only the clients do that.

It also knows how to take itself out of text that came from outside: a provider may repeat a key in an error or an answer,
and nothing that is stored may hold it. It is not encryption; keys at rest are the store's business.
"""

import base64
import re
from collections.abc import Iterable
from urllib.parse import quote

HIDDEN = "***"
SHORTEST = 6
"""Anything shorter occurs in ordinary text; it is no key worth the damage of cutting it out of every word."""

_ESCAPED = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|(/))")


class Secret:
    """One key. Shown as `***` in every way there is of showing it."""

    __slots__ = ("_coded", "_forms", "_value")

    def __init__(self, value: str) -> None:
        self._value = value
        self._forms = _forms(value)
        self._coded = tuple(form.encode() for form in self._forms)

    def reveal(self) -> str:
        """The key itself, for the header of a request and nothing else."""
        return self._value

    def hide(self, text: str) -> str:
        """The text without the key, however it is written in there, escapes of JSON included."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, HIDDEN)
        if "\\" in text:
            plain = _ESCAPED.sub(_letter, text)
            if any(form in plain for form in self._forms):
                return self.hide(plain)
        return text

    def hide_bytes(self, content: bytes) -> bytes:
        """The same for a body as it was received."""
        for form in self._coded:
            if form in content:
                content = content.replace(form, HIDDEN.encode())
        return content

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


def _forms(value: str) -> tuple[str, ...]:
    if len(value) < SHORTEST:
        return ()
    coded = value.encode()
    return tuple(
        dict.fromkeys(
            (
                value,
                quote(value, safe=""),
                base64.b64encode(coded).decode().rstrip("="),
                base64.urlsafe_b64encode(coded).decode().rstrip("="),
                coded.hex(),
                coded.hex().upper(),
                value[::-1],
            )
        )
    )


def hide_all(text: str, secrets: Iterable[Secret]) -> str:
    """The text without any of these keys."""
    for secret in secrets:
        text = secret.hide(text)
    return text
