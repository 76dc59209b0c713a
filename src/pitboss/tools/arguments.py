"""Validation of the arguments of a tool call against the tool's own JSON Schema.

A small strict subset of JSON Schema, so that one dictionary serves the model, the catalogue, the docs and the check: flat
objects of strings, integers, numbers and enumerations with their bounds. An unknown keyword is an error of the tool's
author and stops the program at import.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pitboss.core.errors import InvariantError, ToolFailed
from pitboss.core.suggestion import nearest

Schema = Mapping[str, Any]

_OBJECT = frozenset({"type", "properties", "required", "additionalProperties", "description", "title"})
_ANY = frozenset({"type", "description", "title", "enum", "examples"})
_KEYWORDS: Mapping[str, frozenset[str]] = {
    "string": _ANY | {"minLength", "maxLength"},
    "integer": _ANY | {"minimum", "maximum"},
    "number": _ANY | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
}


def check(schema: Schema, arguments: Any) -> dict[str, Any]:
    """The checked arguments, with whole numbers as `int`. Raises `ToolFailed` with one line that says how to correct them."""
    if not isinstance(arguments, Mapping):
        raise ToolFailed(f"the arguments must be a JSON object{_offer(schema)}")
    properties = schema["properties"]
    checked: dict[str, Any] = {}
    for name in arguments:
        if name not in properties:
            close = nearest(str(name), properties)
            raise ToolFailed(
                f"unknown argument {_show(name)}" + (f"; did you mean {close}?" if close else _offer(schema))
            )
    for name, part in properties.items():
        if name in arguments:
            checked[name] = _value(name, part, arguments[name])
        elif name in schema.get("required", ()):
            raise ToolFailed(f"argument {name} is missing{_offer(schema)}")
    return checked


def _offer(schema: Schema) -> str:
    names = ", ".join(schema["properties"])
    return f"; arguments: {names}" if names else "; this tool takes no arguments"


def _value(name: str, part: Schema, value: Any) -> Any:
    kind = part["type"]
    if kind == "string":
        if not isinstance(value, str):
            raise ToolFailed(f"{name} must be text, not {_show(value)}")
        if not part.get("minLength", 0) <= len(value) <= part.get("maxLength", len(value)):
            raise ToolFailed(f"{name} must have {part.get('minLength', 0)} to {part.get('maxLength')} characters")
    else:
        value = _number(name, part, value)
    if "enum" in part and value not in part["enum"]:
        raise ToolFailed(f"{name} must be one of {', '.join(map(str, part['enum']))}, not {_show(value)}")
    return value


def _number(name: str, part: Schema, value: Any) -> int | Decimal:
    # A bool is an int in Python but not in JSON; a float is refused because it is not exact.
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ToolFailed(f"{name} must be a number, not {_show(value)}")
    if isinstance(value, Decimal) and not value.is_finite():
        raise ToolFailed(f"{name} must be a finite number")
    # Bounds first: a short text can denote an integer of a billion digits, which must never be converted to `int`.
    for keyword, fails, relation in (
        ("minimum", lambda limit: value < limit, "at least"),
        ("maximum", lambda limit: value > limit, "at most"),
        ("exclusiveMinimum", lambda limit: value <= limit, "above"),
        ("exclusiveMaximum", lambda limit: value >= limit, "below"),
    ):
        if keyword in part and fails(part[keyword]):
            raise ToolFailed(f"{name} must be {relation} {part[keyword]}, not {_show(value)}")
    if part["type"] == "integer":
        if isinstance(value, Decimal) and value != value.to_integral_value():
            raise ToolFailed(f"{name} must be a whole number, not {_show(value)}")
        return int(value)
    return value


def _show(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping | list):
        return "an object" if isinstance(value, Mapping) else "a list"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:60] + "…"


def require_closed(name: str, schema: Schema) -> None:
    """Raise `InvariantError` unless the schema is a closed object that requires only properties it describes."""
    if schema.get("type") != "object" or schema.get("additionalProperties") is not False or "properties" not in schema:
        raise InvariantError(f"tool {name}: the schema must be an object with additionalProperties false")
    undescribed = [field for field in schema.get("required", ()) if field not in schema["properties"]]
    if undescribed:
        raise InvariantError(f"tool {name}: required but not described: {', '.join(undescribed)}")


def require_known(name: str, schema: Schema) -> None:
    """Raise `InvariantError` unless `check` supports every keyword and every argument is described and bounded."""
    require_closed(name, schema)
    unknown_keywords = set(schema) - _OBJECT
    for field, part in schema["properties"].items():
        unknown_keywords |= set(part) - _KEYWORDS.get(part.get("type", ""), frozenset())
        if not part.get("description"):
            raise InvariantError(f"tool {name}: argument {field} has no description")
        if not _bounded(part):
            raise InvariantError(f"tool {name}: argument {field} has no bounds")
    if unknown_keywords:
        raise InvariantError(f"tool {name}: unknown schema keywords {', '.join(sorted(unknown_keywords))}")


def _bounded(part: Schema) -> bool:
    if "enum" in part or part.get("type") not in _KEYWORDS:
        return True
    if part["type"] == "string":
        return "maxLength" in part
    return bool({"minimum", "exclusiveMinimum"} & set(part)) and bool({"maximum", "exclusiveMaximum"} & set(part))
