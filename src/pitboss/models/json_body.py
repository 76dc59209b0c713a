"""JSON that others have sent: parsing and writing it back as text, without ever raising."""

import json
from collections.abc import Mapping
from typing import Any

import orjson

from pitboss.core import codec

MOST_TOKENS = 10**12


def parse_body(raw: bytes | str) -> object:
    """A body as plain values; the text itself where it is not readable JSON."""
    try:
        return orjson.loads(raw)
    except ValueError:
        pass
    text = (raw if isinstance(raw, str) else raw.decode("utf-8", "replace")).removeprefix("\ufeff")
    try:
        return json.loads(text)  # accepts half surrogate pairs, which some servers send
    except (ValueError, RecursionError):
        return text


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
