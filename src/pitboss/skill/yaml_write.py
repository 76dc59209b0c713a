"""Write plain values as YAML text that `skill.parse` reads back unchanged.

For the text of a document that was stored without one, and for single values that `skill.edit` puts into a text. Authored
text goes into block scalars, short lists into one line. Nothing is checked against a schema here.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, cast

from pitboss.core import money
from pitboss.core.errors import UserError
from pitboss.skill.parse import parse_value

WIDTH = 100
"""The longest list that is written in one line."""
STEP = 2
MOST_DIGITS = 400
"""Numbers with more digits before or after the point are written with an exponent: few characters can mean a billion digits."""
_PLAIN = re.compile(r"[A-Za-z0-9_./$(][A-Za-z0-9_./$()+*%@ -]*(?:[:'][A-Za-z0-9_./$()+*%@ -]+)*")
"""Texts that need no quotes outside of `[]` and `{}`, unless they read as another kind of value."""
_PLAIN_INSIDE = re.compile(r"[A-Za-z0-9_./$][A-Za-z0-9_./$@+-]*")
_ESCAPED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_SHORT = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def yaml_text(document: Mapping[str, Any]) -> str:
    """A whole document, one top-level key after another, a blank line before each section."""
    parts: list[str] = []
    for key, value in document.items():
        is_section = isinstance(value, dict) and bool(cast("dict[str, Any]", value))
        parts.append(("\n" if is_section and parts else "") + entry(key, value, 0))
    return "\n".join(parts) + "\n"


def entry(key: str, value: Any, column: int) -> str:
    """`key: value` with its lines indented by `column`, without a line end."""
    indent = " " * column
    head = f"{indent}{scalar(key)}:"
    if isinstance(value, dict) and value:
        items = cast("dict[str, Any]", value).items()
        return "\n".join([head, *(entry(name, item, column + STEP) for name, item in items)])
    return f"{head} {written(value, column)}"


def written(value: Any, column: int) -> str:
    """A value that follows `key: ` where the key stands in `column`; further lines are indented beyond it."""
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        lines = [entry(name, item, column + STEP) for name, item in items.items()]
        return "\n" + "\n".join(lines) if lines else "{}"
    if isinstance(value, list | tuple):
        items = cast("Sequence[Any]", value)
        line = inline(items)
        if len(line) <= WIDTH:
            return line
        indent = " " * (column + STEP)
        return "\n" + "\n".join(f"{indent}- {inline(item)}" for item in items)
    if isinstance(value, str) and "\n" in value:
        return _block(value, column + STEP)
    return scalar(value)


def inline(value: Any) -> str:
    """A value in one line, as it stands inside `[]` or `{}`."""
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return "{" + ", ".join(f"{scalar(name, inside=True)}: {inline(item)}" for name, item in items) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(inline(item) for item in cast("Sequence[Any]", value)) + "]"
    return scalar(value, inside=True)


def scalar(value: Any, *, inside: bool = False) -> str:
    """One value without parts: in quotes only where it would read as something else."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float | Decimal):
        return _number_text(value if isinstance(value, Decimal) else money.decimal(value))
    text = str(value)
    plain = _PLAIN_INSIDE if inside else _PLAIN
    if plain.fullmatch(text) and len(text.strip()) == len(text) and _reads_back(text):
        return text
    return quoted(text)


def _number_text(number: Decimal) -> str:
    if not number.is_finite():
        return ".nan"  # all that is no finite number reads back as the same value
    return money.text(number) if abs(number.adjusted()) <= MOST_DIGITS else str(number)


def quoted(text: str) -> str:
    """Text in double quotes with every character that YAML does not print escaped."""
    escaped = "".join(_SHORT.get(char, char) for char in text)
    return '"' + _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", escaped) + '"'


def _reads_back(text: str) -> bool:
    try:
        return parse_value(text) == text
    except UserError:
        return False


def _block(text: str, column: int) -> str:
    """A literal block scalar; quotes where the text has what a block cannot hold."""
    body = text.rstrip("\n")
    ends = len(text) - len(body)
    lines = body.split("\n")
    if not body or _ESCAPED.search(text) or any(char in text for char in "\r\x85") or lines[0][:1] in (" ", "\t", ""):
        return quoted(text)
    chomping = "-" if ends == 0 else "" if ends == 1 else "+"
    indent = " " * column
    return (
        "|"
        + chomping
        + "\n"
        + "\n".join(indent + line if line else "" for line in lines)
        + "\n" * (ends - 1 if ends > 1 else 0)
    )
