"""Which news items were met before, by link or id, and when first: what the lake's own rows cannot tell.

A small file beside the lake's folders. Losing it costs no rows: an item whose headline is stored is known by that.
"""

import hashlib
import os
import re
import unicodedata
from pathlib import Path

import orjson

from pitboss.core.instant import Instant
from pitboss.data.staging import write_error

FOLDER = ".seen"
MOST = 50_000
"""More are not kept; the oldest go first. No feed shows an item for that long."""


class SeenItems:
    """The items of one venue that were met before."""

    def __init__(self, root: Path, venue: str) -> None:
        self._root = root
        self._path = root / FOLDER / f"{venue}.json"
        self._at = self._read()

    def __contains__(self, key: str) -> bool:
        return _short(key) in self._at

    def add(self, keys: dict[str, Instant]) -> None:
        """Remember these and write it down. The first sight of an item stays."""
        new = {_short(key): at for key, at in keys.items()}
        if not new.keys() - self._at.keys():
            return
        merged = sorted((new | self._at).items(), key=lambda pair: (pair[1], pair[0]))[-MOST:]
        self._at = dict(merged)
        part = self._path.with_suffix(".part")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(orjson.dumps(self._at))
            os.replace(part, self._path)
        except OSError as error:
            raise write_error(self._root, error) from error

    def _read(self) -> dict[str, Instant]:
        try:
            value = orjson.loads(self._path.read_bytes())
        except (OSError, orjson.JSONDecodeError):
            return {}
        return {key: at for key, at in value.items() if isinstance(at, int)} if isinstance(value, dict) else {}


def normalised_title(title: str) -> str:
    """A headline without what changes between two copies of it: case, punctuation, spaces, forms of letters."""
    folded = unicodedata.normalize("NFKC", title).casefold()
    return " ".join(re.findall(r"\w+", folded))


def _short(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:24]
