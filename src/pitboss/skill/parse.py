"""Parse the text of a skill document into plain values with exact numbers, and the line number of each.

The text is untrusted. YAML is read event by event (1.2 core schema, of which JSON is a subset): no constructor can
build anything but maps, lists, text, numbers, true, false and null; tags, repeated keys, deep nesting and alias bombs
are refused. This module sits between files and the schema, and knows nothing about skills.
"""

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from pitboss.core.errors import UserError

Path = tuple[str | int, ...]

MAX_BYTES = 1_000_000
MAX_DEPTH = 20
MAX_VALUES = 20_000
"""Limit of values, far above any real skill; an alias counts with everything it expands to."""

_NULL = re.compile(r"(?:|~|null|Null|NULL)")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_BASED = re.compile(r"0o[0-7]{1,30}|0x[0-9a-fA-F]{1,30}")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_NAN = Decimal("NaN")


@dataclass(frozen=True, slots=True)
class Parsed:
    """Plain values and, for YAML, the line of each path."""

    value: Any
    lines: dict[Path, int] = field(default_factory=dict[Path, int])


def parse(text: str, suffix: str = ".yaml") -> Parsed:
    """Parse JSON if the suffix says so, else YAML (of which JSON is a subset). Raises `UserError` with the line."""
    if len(text) > MAX_BYTES:
        raise UserError("the document is larger than 1 MB", "a skill is a page of text")
    parsed = _document(text, suffix.lower())
    if parsed.value is None:
        raise UserError("the document is empty", "`pitboss init DIR` writes examples to start from")
    return Parsed(deepcopy(parsed.value), parsed.lines)


@lru_cache(maxsize=4)
def _document(text: str, suffix: str) -> Parsed:
    """Parsing takes milliseconds, and a command parses a document twice: first for its venue, then for its values."""
    return _json(text) if suffix == ".json" else _yaml(text)


def parse_value(text: str) -> Any:
    """Parse one YAML value from a command line, such as `5`, `null` or `[BTC, ETH]`."""
    return _yaml(text).value


def number(text: str) -> int | Decimal:
    """Parse a number: whole ones as `int`, all others exact. Extremely long ones stay decimals, to be refused later."""
    if len(text) <= 40 and text.lstrip("+-").isdigit():
        return int(text)
    value = Decimal(text) if len(text) <= 400 else _NAN
    return value if value.is_finite() else _NAN


# JSON -----------------------------------------------------------------------------------------------------------


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key, value in pairs:
        if key in mapping:
            raise UserError(f"the key {key!r} is given twice", "keep one of them")
        mapping[key] = value
    return mapping


def _nan(_: str) -> Decimal:
    return _NAN


def _json(text: str) -> Parsed:
    if not text.strip():
        return Parsed(None)
    try:
        value = json.loads(text, parse_float=number, parse_int=number, parse_constant=_nan, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise UserError(
            f"line {error.lineno}: not valid JSON: {error.msg}", "check commas, quotes and brackets"
        ) from None
    except RecursionError:
        raise _too_deep() from None
    _bound(value, MAX_DEPTH)
    return Parsed(value)


def _bound(value: Any, depth: int) -> None:
    if isinstance(value, dict | list):
        if not depth:
            raise _too_deep()
        inner = cast("dict[str, Any] | list[Any]", value)
        for item in inner.values() if isinstance(inner, dict) else inner:
            _bound(item, depth - 1)


def _too_deep() -> UserError:
    return UserError(f"the document is nested more than {MAX_DEPTH} levels deep", "a skill needs four")


# YAML -----------------------------------------------------------------------------------------------------------


_BRACKET = re.compile(r"[\[{\]}]")


def _open_brackets(text: str) -> int:
    """The most brackets that are open at once, wherever they stand: within texts they are usually closed again."""
    most = depth = 0
    for match in _BRACKET.finditer(text):
        depth = depth + 1 if match[0] in "[{" else max(depth - 1, 0)
        most = max(most, depth)
    return most


def _yaml(text: str) -> Parsed:
    # The scanner looks at every open bracket again for each token, so thousands of them would take minutes.
    if _open_brackets(text) > 10 * MAX_DEPTH:
        raise _too_deep()
    events = cast("Iterator[Any]", YAML(typ="safe", pure=True).parse(text))  # pyright: ignore[reportUnknownMemberType]
    try:
        return _Reader(events).document()
    except MarkedYAMLError as error:
        problem = cast("Any", error)
        mark = problem.problem_mark or problem.context_mark
        prefix = f"line {mark.line + 1}: " if mark else ""
        message = f"{prefix}not valid YAML: {problem.problem or problem.context}"
        raise UserError(message, "check indentation, quotes and colons") from None
    except (ValueError, OverflowError, AssertionError):  # the library does not check the range of these numbers
        raise UserError(
            "not valid YAML: an escape such as \\U0001F600, or the version in a %YAML line, is out of range",
            "escapes end at \\U0010FFFF; the %YAML line can be left out",
        ) from None
    except YAMLError as error:
        raise UserError(f"not valid YAML: {str(error).splitlines()[0]}", "remove control characters") from None


class _Reader:
    """Builds plain values from YAML events. `size` counts values, including those repeated by an alias."""

    def __init__(self, events: Iterator[Any]) -> None:
        self._events = events
        self._lines: dict[Path, int] = {}
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._open: set[str] = set()
        self._size = 0

    def document(self) -> Parsed:
        value, documents = None, 0
        for event in self._events:
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise _at(event, "a second document starts here", "one file holds one skill")
                value = self._value(next(self._events), (), MAX_DEPTH)
            elif isinstance(event, StreamEndEvent):
                break
        return Parsed(value, self._lines)

    def _value(self, event: Any, path: Path, depth: int) -> Any:
        self._lines[path] = _line(event)
        if isinstance(event, AliasEvent):
            return self._alias(event)
        self._count(event, 1)
        if event.tag is not None:
            raise _at(event, f"the tag {str(event.tag)!r} is not allowed", "a skill holds plain values only")
        anchor, before = cast("str | None", event.anchor), self._size
        if anchor:
            self._open.add(anchor)
        if isinstance(event, ScalarEvent):
            value = _scalar(event)
        elif not depth:
            raise _too_deep()
        elif isinstance(event, MappingStartEvent):
            value = self._mapping(path, depth)
        else:
            assert isinstance(event, SequenceStartEvent)
            value = self._sequence(path, depth)
        if anchor:
            self._open.discard(anchor)
            self._anchors[anchor] = (value, self._size - before + 1)
        return value

    def _mapping(self, path: Path, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for event in self._events:
            if isinstance(event, MappingEndEvent):
                break
            if not isinstance(event, ScalarEvent):
                raise _at(event, "a key must be plain text", "write `key: value`")
            key = cast("str", event.value)
            if key in mapping:
                raise _at(event, f"the key {key!r} is given twice", "keep one of them")
            mapping[key] = self._value(next(self._events), (*path, key), depth - 1)
            self._lines[(*path, key)] = _line(event)
        return mapping

    def _sequence(self, path: Path, depth: int) -> list[Any]:
        items: list[Any] = []
        for event in self._events:
            if isinstance(event, SequenceEndEvent):
                break
            items.append(self._value(event, (*path, len(items)), depth - 1))
        return items

    def _alias(self, event: Any) -> Any:
        name = cast("str", event.anchor)
        if name in self._open or name not in self._anchors:
            raise _at(event, f"the alias *{name} refers to nothing before it", f"define &{name} first")
        value, size = self._anchors[name]
        self._count(event, size)
        return value

    def _count(self, event: Any, size: int) -> None:
        self._size += size
        if self._size > MAX_VALUES:
            raise _at(event, f"the document holds more than {MAX_VALUES} values", "a skill is a page of text")


def _scalar(event: Any) -> Any:
    text = cast("str", event.value)
    if event.style is not None:
        return text
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text):
        return True
    if _FALSE.fullmatch(text):
        return False
    if _NUMBER.fullmatch(text):
        return number(text)
    if _BASED.fullmatch(text):
        return int(text[2:], 8 if text[1] == "o" else 16)
    return _NAN if _NOT_FINITE.fullmatch(text) else text


def _line(event: Any) -> int:
    return event.start_mark.line + 1


def _at(event: Any, message: str, hint: str) -> UserError:
    return UserError(f"line {_line(event)}: {message}", hint)
