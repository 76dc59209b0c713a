"""JSON that others have sent: parsing and writing it back as text, without ever raising."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import orjson

from pitboss.core import codec

MOST_TOKENS = 10**12
TWICE = "key given twice"
_KEYS = json.JSONDecoder(object_pairs_hook=codec.distinct_keys, parse_int=len, parse_float=len)
"""Finds keys that are given twice. It reads no numbers, which may be longer than Python reads."""


def parse_body(raw: bytes | str) -> object:
    """A body as plain values; the text itself where it is not readable JSON.

    An object that gives a key twice gets `TWICE` with that key: a proposal in it is then malformed, the rest is as it was.
    """
    text = (raw if isinstance(raw, str) else raw.decode("utf-8", "replace")).removeprefix("\ufeff")
    hook = None
    try:
        _KEYS.decode(text)
    except codec.DuplicateKey:
        hook = _marked
    except ValueError:
        return text
    except RecursionError:
        pass  # the faster reader reads deeper, and arguments that deep are malformed anyway
    if hook is None:
        with suppress(ValueError):
            return orjson.loads(raw)
    try:
        return json.loads(text, object_pairs_hook=hook)  # accepts half surrogate pairs, which some servers send
    except (ValueError, RecursionError):
        return text


def _marked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    try:
        return codec.distinct_keys(pairs)
    except codec.DuplicateKey as error:
        return {**dict(pairs), TWICE: str(error)}


def as_text(value: object) -> str:
    """A value as JSON text; empty for None."""
    if value is None:
        return ""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError):
        pass
    try:
        return codec.printable(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    except (TypeError, ValueError, RecursionError):
        return codec.TOO_DEEP  # stays malformed: empty text would pass for no arguments


def encode_json(document: dict[str, Any]) -> bytes:
    """The body of a request as it is sent."""
    return orjson.dumps(document, default=_plain)


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else codec.plain(value)


def as_dict(value: object) -> dict[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_str(value: object) -> str:
    """The value where it is text, in a form that can be stored, else an empty text."""
    return codec.printable(value) if isinstance(value, str) else ""


def token_count(value: object) -> int:
    """A number of tokens; 0 for what cannot be one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TOKENS:
        return 0
    return int(value)
