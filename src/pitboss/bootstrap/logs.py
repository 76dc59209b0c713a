"""Structured logs on standard error or in a file.

JSON lines for programs, `key=value` lines on a terminal. Secrets are removed by value as the last step, tracebacks
included. Logs never go to standard output, which is reserved for results. A line is an ordinary `logging` record;
`extra={"fields": {...}}` adds fields to it.
"""

import json
import logging
import os
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from pitboss.bootstrap.redact import REDACTOR, Redactor, secrets_of
from pitboss.core.errors import UserError

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL + 10,
}
LOGGER_NAME = "pitboss"


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object per line."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line, without secrets."""
        return self._redactor.redact(json.dumps(_fields(record), default=_text, ensure_ascii=False))


class Pairs(logging.Formatter):
    """Formats a record as `time level message key=value …`.

    Values other than plain words are quoted, line ends escaped.
    """

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line, and its traceback on lines below."""
        fields = _fields(record)
        head = f"{fields.pop('at')} {fields.pop('level')} {_printable(fields.pop('message'))}"
        below = fields.pop("traceback", "")
        pairs = [f"{name}={_quoted(value)}" for name, value in fields.items()]
        line = " ".join([head, *pairs])
        return self._redactor.redact(f"{line}\n{below.rstrip()}" if below else line)


def start_logs(
    level: str = "warning",
    file: Path | None = None,
    *,
    redactor: Redactor = REDACTOR,
    environment: Mapping[str, str] = os.environ,
    stream: TextIO | None = None,
) -> None:
    """Start logging, or restart it with other settings.

    Messages of libraries are kept from `warning` on, so that they too are redacted and never reach the terminal
    directly.
    """
    if level not in LEVELS:
        raise UserError(f"log_level: {level!r} is not a level", f"one of {', '.join(LEVELS)}")
    redactor.add(*secrets_of(environment))
    handler = _to_file(file) if file is not None else _Screen(stream)
    plain = file is None and (stream or sys.stderr).isatty()
    handler.setFormatter(Pairs(redactor) if plain else JsonLines(redactor))
    stop_logs()
    root = logging.getLogger()
    handler.set_name(LOGGER_NAME)
    root.addHandler(handler)
    logging.getLogger(LOGGER_NAME).setLevel(LEVELS[level])
    if LEVELS[level] > logging.CRITICAL:
        handler.setLevel(LEVELS[level])


def stop_logs() -> None:
    """Stop logging and close the file."""
    root = logging.getLogger()
    for handler in [item for item in root.handlers if item.get_name() == LOGGER_NAME]:
        root.removeHandler(handler)
        handler.close()
    logging.getLogger(LOGGER_NAME).setLevel(logging.NOTSET)


class _Screen(logging.StreamHandler[TextIO]):
    """Writes to the current `sys.stderr`, so that a redirection also receives the lines."""

    def __init__(self, stream: TextIO | None) -> None:
        super().__init__(stream)
        self._fixed_stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = self._fixed_stream or sys.stderr
        super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """Ignore a line that cannot be written."""


def _to_file(path: Path) -> logging.Handler:
    """Append to a file that only its owner can read."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise UserError(f"log_file: {path}: {error.strerror}", "choose a file in an existing folder") from None
    return _Owned(os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace"))


class _Owned(logging.StreamHandler[TextIO]):
    """A stream that is closed with its handler."""

    def close(self) -> None:
        super().close()
        with suppress(OSError):  # flushing fails again on a full disk
            self.stream.close()

    def handleError(self, record: logging.LogRecord) -> None:
        """Ignore the error: a full disk must not end a run, nor print a traceback with the line's content."""


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    fields: dict[str, Any] = {
        "at": moment,
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": record.getMessage(),
    }
    extra_fields = getattr(record, "fields", None)
    if isinstance(extra_fields, Mapping):
        fields |= {str(name): value for name, value in extra_fields.items() if name not in fields}
    if record.exc_info and record.exc_info[1] is not None:
        fields["traceback"] = "".join(traceback.format_exception(record.exc_info[1]))
    return fields


def _text(value: object) -> str:
    return str(value)


def _quoted(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=_text, ensure_ascii=False)
    plain = text.isprintable() and text and not any(sign in text for sign in ' "=')
    return text if plain else json.dumps(text, ensure_ascii=not text.isprintable())


def _printable(text: str) -> str:
    return text if text.isprintable() else json.dumps(text)[1:-1]
