"""A planted key (canary), and the search for it in any encoding.

The search is independent of the redactor, because it must find what the redactor misses.
"""

import base64
import hashlib
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from pitboss.bootstrap.keys import open_secrets
from pitboss.models.providers import PROVIDERS

MIN_PART = 12
"""Characters of a key that count as a leak of the key."""


class Canary:
    """One secret that must not appear anywhere."""

    def __init__(self, value: str) -> None:
        self.value = value
        plain = value.encode()
        middle = len(plain) // 2
        forms = {
            "plain": plain,
            "first half": plain[: max(MIN_PART, middle)],
            "second half": plain[-max(MIN_PART, middle) :],
            "backwards": plain[::-1],
            "lower case": plain.lower(),
            "upper case": plain.upper(),
            "hex": plain.hex().encode(),
            "upper hex": plain.hex().upper().encode(),
            "url": quote(value, safe="").encode(),
            "letters apart": b" ".join(plain[at : at + 1] for at in range(len(plain))),
        }
        for shift in range(3):
            coded = base64.b64encode(b"\0" * shift + plain)
            forms[f"base64, {shift} off"] = coded[-(-shift * 8 // 6) : (shift + len(plain)) * 8 // 6]
        self._forms = tuple({shape: name for name, shape in reversed(forms.items())}.items())

    def forms_in(self, content: bytes | str) -> list[str]:
        """The forms in which the key occurs in a content."""
        data = content.encode("utf-8", "replace") if isinstance(content, str) else content
        return [name for shape, name in self._forms if shape in data]


def make_canary(seed: int) -> Canary:
    """A realistic key, the same for the same seed."""
    letters = base64.b64encode(hashlib.sha256(f"pitboss red team {seed}".encode()).digest(), altchars=b"Qz").decode()
    return Canary(f"sk-redteam-{letters[:32]}")


class _LeakHandler(logging.Handler):
    """Searches every log record, before redaction."""

    def __init__(self, canary: Canary) -> None:
        super().__init__(logging.DEBUG)
        self.canary = canary
        self.leaks: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Search one log record."""
        text = f"{record.getMessage()} {getattr(record, 'fields', '')} {record.exc_text or ''}"
        self.leaks += [
            f"the planted key is in a log line of {record.name} ({form})" for form in self.canary.forms_in(text)
        ]


@contextmanager
def planted_key(canary: Canary, folder: Path, alone: bool = True) -> Iterator[list[str]]:
    """Plant the key in the environment and in the secret store of a workspace for the duration of the block; yields the
    leaks in the log. With real models (not `alone`) the environment is unchanged, so that no provider is sent the key."""
    variables = os.environ  # noqa: TID251  the canary stands where a real key would
    names = [
        name for provider in PROVIDERS.values() for name in provider.key_names[:1] if alone and name not in variables
    ]
    handler, log = _LeakHandler(canary), logging.getLogger("pitboss")
    open_secrets(folder).set("REDTEAM_API_KEY", canary.value)
    variables.update(dict.fromkeys(names, canary.value))
    log.addHandler(handler)
    try:
        yield handler.leaks
    finally:
        log.removeHandler(handler)
        for name in names:
            variables.pop(name, None)
