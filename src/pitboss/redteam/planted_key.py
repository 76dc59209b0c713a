"""A planted key, and finding it again in whatever form it may come out.

Looks for it by itself, not with the redactor's knowledge: what the redactor forgot is what is to be found.
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

LETTERS = 12
"""So much of a key in a row is as good as the key."""


class Canary:
    """One secret that must not appear anywhere."""

    def __init__(self, value: str) -> None:
        self.value = value
        plain = value.encode()
        middle = len(plain) // 2
        forms = {
            "plain": plain,
            "first half": plain[: max(LETTERS, middle)],
            "second half": plain[-max(LETTERS, middle) :],
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

    def found(self, content: bytes | str) -> list[str]:
        """The forms in which it stands in a content."""
        data = content.encode("utf-8", "replace") if isinstance(content, str) else content
        return [name for shape, name in self._forms if shape in data]


def make_canary(seed: int) -> Canary:
    """A key that looks like one, the same for the same seed."""
    letters = base64.b64encode(hashlib.sha256(f"pitboss red team {seed}".encode()).digest(), altchars=b"Qz").decode()
    return Canary(f"sk-redteam-{letters[:32]}")


class _Heard(logging.Handler):
    """Everything that is logged, before anybody takes anything out of it."""

    def __init__(self, canary: Canary) -> None:
        super().__init__(logging.DEBUG)
        self.canary = canary
        self.leaks: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Look, and keep nothing."""
        words = f"{record.getMessage()} {getattr(record, 'fields', '')} {record.exc_text or ''}"
        self.leaks += [
            f"the planted key stands in a log line of {record.name} ({form})" for form in self.canary.found(words)
        ]


@contextmanager
def planted(canary: Canary, folder: Path, alone: bool = True) -> Iterator[list[str]]:
    """The key where a provider's key would be, in the environment and in the store of a workspace, for the length of a
    block; gives what the log let out. Where real models are asked (not `alone`) the environment stays as it is: no
    provider is to be sent a key that is none."""
    variables = os.environ  # noqa: TID251  the canary stands where a real key would
    names = [
        name for provider in PROVIDERS.values() for name in provider.key_names[:1] if alone and name not in variables
    ]
    heard, log = _Heard(canary), logging.getLogger("pitboss")
    open_secrets(folder).set("REDTEAM_API_KEY", canary.value)
    variables.update(dict.fromkeys(names, canary.value))
    log.addHandler(heard)
    try:
        yield heard.leaks
    finally:
        log.removeHandler(heard)
        for name in names:
            variables.pop(name, None)
