"""JSON Schemas in the subset that each provider accepts. What a provider does not accept moves into the description."""

from collections.abc import Callable, Mapping
from typing import Any

Schema = dict[str, Any]

_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)  # fmt: skip
_CHILDREN = ("properties", "$defs", "definitions", "patternProperties")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "contains", "propertyNames")


def anthropic_tool_schema(schema: Mapping[str, Any]) -> Schema:
    """The schema of a tool: without titles, which only cost tokens."""
    return _walk(schema, lambda node: _without(node, "title", "$schema"))


def anthropic_output_schema(schema: Mapping[str, Any]) -> Schema:
    """The schema that a reply is held to: objects are closed, and constraints that are not enforced are described."""
    return _strict(_walk(schema, lambda node: _const_as_enum(_without(node, "title", "$schema"))))


def google_schema(schema: Mapping[str, Any]) -> Schema:
    """The schema of a tool or a reply for Google."""
    return _walk(schema, _google_node)


def _walk(value: Any, change: Callable[[Schema], Schema]) -> Any:
    if not isinstance(value, Mapping):
        return value
    node = dict(value)
    for key in _CHILDREN:
        if isinstance(node.get(key), Mapping):
            node[key] = {name: _walk(child, change) for name, child in node[key].items()}
    for key in _LISTS:
        if isinstance(node.get(key), list | tuple):
            node[key] = [_walk(child, change) for child in node[key]]
    for key in _SINGLE:
        if key in node:
            node[key] = _walk(node[key], change)
    return change(node)


def _without(node: Schema, *names: str) -> Schema:
    return {name: value for name, value in node.items() if name not in names}


def _const_as_enum(node: Schema) -> Schema:
    """A scalar `const` as an `enum` of one value with its type."""
    if "const" not in node:
        return node
    value = node["const"]
    kinds = ((bool, "boolean"), (str, "string"), (int, "integer"), (float, "number"))
    kind = next((name for type_, name in kinds if isinstance(value, type_)), None)
    if kind is None:
        return node
    return {"type": kind} | _without(node, "const") | {"enum": [value]}


def _google_node(node: Schema) -> Schema:
    if node.get("const") is not None:
        node = _const_as_enum(node)
    node = _without(
        node, "title", "$schema", "const", "discriminator", "examples", "exclusiveMinimum", "exclusiveMaximum"
    )
    if node.get("type") == "string" and node.get("format"):
        text = node["format"]
        described = f"{node['description']} (format: {text})" if node.get("description") else f"Format: {text}"
        node = _without(node, "format") | {"description": described}
    return node


def _strict(schema: Mapping[str, Any]) -> Schema:
    remaining = dict(schema)
    strict: Schema = {}
    if isinstance(remaining.get("$defs"), Mapping):
        strict["$defs"] = {name: _strict(child) for name, child in remaining.pop("$defs").items()}
    if "$ref" in remaining:
        return strict | {"$ref": remaining["$ref"]}
    kind = remaining.pop("type", None)
    variants = {name: remaining.pop(name) for name in ("anyOf", "oneOf", "allOf") if name in remaining}
    if isinstance(remaining.get("enum"), list | tuple) and remaining["enum"]:
        strict["enum"] = list(remaining.pop("enum"))
    elif variants:
        name, children = next(iter(variants.items()))
        strict["allOf" if name == "allOf" else "anyOf"] = [_strict(child) for child in children]
    elif kind is not None:
        strict["type"] = kind
    if "description" in remaining:
        strict["description"] = remaining.pop("description")
    if kind == "object" and "type" in strict:
        strict["properties"] = {name: _strict(child) for name, child in remaining.pop("properties", {}).items()}
        remaining.pop("additionalProperties", None)
        strict["additionalProperties"] = False
        if "required" in remaining:
            strict["required"] = remaining.pop("required")
    elif kind == "array" and "type" in strict:
        if "items" in remaining:
            strict["items"] = _strict(remaining.pop("items"))
        if remaining.get("minItems") in (0, 1):
            strict["minItems"] = remaining.pop("minItems")
    elif kind == "string" and remaining.get("format") in _FORMATS:
        strict["format"] = remaining.pop("format")
    if remaining:
        note = "{" + ", ".join(f"{name}: {value}" for name, value in remaining.items()) + "}"
        strict["description"] = f"{strict['description']}\n\n{note}" if "description" in strict else note
    return strict
