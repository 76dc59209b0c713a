"""`Secret`: a key that cannot be printed by accident. It has to be revealed explicitly, which only the clients do.

It also removes itself from text that came from outside: a provider may repeat a key in an error or a reply, and nothing
that is stored may hold it. How a key is recognised is in `core.redaction`. This is not encryption; keys at rest belong to
the store.
"""

from pitboss.core.redaction import HIDDEN, ValueRedactor


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
