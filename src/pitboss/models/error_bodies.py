"""Reads the body of an error response, whatever envelope the provider uses: its error object, message and codes.

Pure. What the error means for a call is decided in `failures`.
"""

import re
from collections.abc import Mapping
from typing import Any

from pitboss.core import codec

MAX_MESSAGE_CHARS = 300
_MESSAGES = ("message", "detail", "Message")
"""Fields that hold the message of an error; the last is that of Amazon's gateways."""


def error_of(body: object) -> Mapping[str, Any]:
    """The error object of a body; empty where there is none."""
    if isinstance(body, list) and body:
        body = body[0]  # Google wraps errors of streams in an array
    if not isinstance(body, dict):
        return {}
    error = body.get("error")
    if isinstance(error, dict):
        return error
    if isinstance(error, str):
        return {"message": error, "code": body.get("code"), "type": body.get("type")}
    return body if any(name in body for name in _MESSAGES) else {}


def error_message(body: object) -> str:
    """The provider's message, as one line of bounded length."""
    error = error_of(body)
    message = next((error[name] for name in _MESSAGES if error.get(name)), None)
    if not isinstance(message, str):
        if message is not None:
            try:
                message = _field_errors(message) or str(message)[: MAX_MESSAGE_CHARS * 2]
            except RecursionError:
                message = codec.TOO_DEEP
        else:
            message = body[: MAX_MESSAGE_CHARS * 4] if isinstance(body, str) else ""
    if message.lstrip()[:1] == "<":
        message = re.sub(r"<[^>]*>", " ", message)  # an HTML page of a proxy
    line = codec.printable(" ".join(message.split()))
    return line if len(line) <= MAX_MESSAGE_CHARS else line[: MAX_MESSAGE_CHARS - 1] + "…"


def error_codes(error: Mapping[str, Any]) -> list[int | str]:
    """The codes of an error object, numeric ones as numbers."""
    codes: list[int | str] = []
    for name in ("code", "status_code", "status", "type", "reason"):
        value = error.get(name)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == 3:
            value = int(value)
        if isinstance(value, int | str) and not isinstance(value, bool):
            codes.append(value)
    return codes


def _field_errors(value: object) -> str:
    """The list of errors per field that many Python servers return (`loc`, `msg`), as text."""
    value = value.get("detail") if isinstance(value, dict) else value
    rows = [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
    return "; ".join(
        f"{'.'.join(map(str, path)) if isinstance(path := row.get('loc'), list) else ''} {row.get('msg', '')}".strip()
        for row in rows[:5]
    )
