"""Write a skill as a document: plain values, JSON text, JSON Schema, field list.

The reverse of `skill.load`. All information about a field comes from the venue's document class.
"""

import types
import typing
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, Literal, cast

import orjson
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from pitboss.core import codec, money
from pitboss.skill.schema import Part, SkillDocument
from pitboss.skill.spelling import dotted, fields

SCHEMA_ID = "urn:pitboss:skill:1"


def to_plain(skill: Part) -> dict[str, Any]:
    """The complete document with defaults, as `skill.load` reads it: exact numbers, nulls only where allowed."""
    nullable = skill.nullable if isinstance(skill, SkillDocument) else frozenset[str]()
    return cast("dict[str, Any]", _listed(skill.model_dump(), (), nullable))


def to_json(skill: SkillDocument) -> bytes:
    """The complete document as canonical JSON with numbers as numbers; reading it back gives an equal skill."""
    return codec.dumps(codec.number_fragments(to_plain(skill)))


def _listed(value: Any, path: tuple[str, ...], nullable: frozenset[str]) -> Any:
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {
            key: _listed(item, (*path, key), nullable)
            for key, item in items
            if item is not None or dotted((*path, key)) in nullable
        }
    if isinstance(value, tuple | list):
        return [_listed(item, path, nullable) for item in cast("list[Any]", value)]
    return value


@dataclass(frozen=True, slots=True)
class FieldNote:
    """One field for documentation: path, type, default as written in YAML ("required" if none), and description."""

    path: str
    type: str
    default: str
    description: str


def describe_fields(root: type[SkillDocument]) -> list[FieldNote]:
    """Every field of a skill in document order, for `docs/skill.md` and the editor."""
    notes: list[FieldNote] = []
    for path, info in fields(root):
        default = "required" if info.is_required() else _default_text(info.default, dotted(path) in root.nullable)
        notes.append(
            FieldNote(dotted(path), _type_text(info.annotation, info.metadata), default, info.description or "")
        )
    return notes


def _default_text(value: Any, nullable: bool) -> str:
    if isinstance(value, Part):
        return ""
    if value is None:
        return "null" if nullable else "left out"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, cast('tuple[Any, ...]', value)))}]"
    return money.text(value) if isinstance(value, Decimal) else str(value)


def _type_text(annotation: Any, metadata: list[Any]) -> str:
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        inner, *more = typing.get_args(annotation)
        return _type_text(inner, [*more, *metadata])
    if origin is Literal:
        return " | ".join(str(choice) for choice in typing.get_args(annotation))
    if origin in (typing.Union, types.UnionType):
        arms = [arm for arm in typing.get_args(annotation) if arm is not type(None)]
        return " | ".join(_type_text(arm, metadata) for arm in arms)
    if origin is tuple:
        return f"list of {_type_text(typing.get_args(annotation)[0], [])}"
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return "map"
    names: dict[Any, str] = {str: "text", int: "whole number", bool: "true | false", Decimal: "number"}
    return names[annotation] + (_range_text(metadata) if annotation in (int, Decimal) else "")


def _range_text(metadata: list[Any]) -> str:
    bounds: dict[str, Any] = {}
    for item in metadata:
        for holder in (item, *getattr(item, "metadata", ())):
            bounds |= {
                key: getattr(holder, key) for key in ("gt", "ge", "le") if getattr(holder, key, None) is not None
            }
    low = f"above {bounds['gt']}" if "gt" in bounds else f"from {bounds['ge']}" if "ge" in bounds else ""
    high = f"to {bounds['le']}" if "le" in bounds else ""
    return f" {low} {high}".rstrip().replace("  ", " ") if low or high else ""


_BOUNDS = {"gt": "exclusiveMinimum", "ge": "minimum", "le": "maximum"}


class _Schema(GenerateJsonSchema):
    """Generates a JSON Schema for documents as users write them: decimals are plain numbers."""

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        return {"type": "number"}

    def encode_default(self, dft: Any) -> Any:
        if isinstance(dft, Decimal):
            return _number(dft)
        return _plain_numbers(to_plain(cast("Any", dft))) if isinstance(dft, Part) else super().encode_default(dft)


def _number(value: Decimal | int) -> int | float:
    return int(value) if value == int(value) else float(value)


def _plain_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain_numbers(item) for key, item in cast("dict[str, Any]", value).items()}
    return _number(value) if isinstance(value, Decimal) else value


@cache
def json_schema(root: type[SkillDocument]) -> dict[str, Any]:
    """JSON Schema (2020-12) of a venue's skill document in snake_case, with a description on every field.

    All callers get the same object, because it takes long to make; they must not change it.
    """
    schema = cast("dict[str, Any]", _bounds_named(root.model_json_schema(schema_generator=_Schema)))
    nullable = {path.rpartition(".")[2] for path in root.nullable}
    for part in (schema, *schema["$defs"].values()):
        for name, prop in part.get("properties", {}).items():
            if "anyOf" in prop and name not in nullable:
                _without_null(prop)
    root.complete_schema(schema)
    venue, is_default = venue_name(root), not root.model_fields["venue"].is_required()
    identity = SCHEMA_ID if is_default else f"urn:pitboss:skill:{venue}:1"
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": identity}
    kind = "pitboss skill" if is_default else f"pitboss skill of the {venue} venue"
    return {**head, **schema, "title": kind, "description": f"A {kind}. Keys may also be written in camelCase."}


def venue_name(root: type[SkillDocument]) -> str:
    """The name that documents of this type give as their `venue`."""
    return str(typing.get_args(root.model_fields["venue"].annotation)[0])


def _bounds_named(value: Any) -> Any:
    # Bounds after a custom validator appear under pydantic's names; rename them to JSON Schema's.
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {_BOUNDS.get(key, key): _bounds_named(item) for key, item in items}
    if isinstance(value, list):
        return [_bounds_named(item) for item in cast("list[Any]", value)]
    return _number(value) if isinstance(value, Decimal) else value


def _without_null(prop: dict[str, Any]) -> None:
    """Remove null from the type and the default: optional fields are left out, not null."""
    arms = [arm for arm in prop.pop("anyOf") if arm != {"type": "null"}]
    prop.pop("default", None)
    prop.update(arms[0] if len(arms) == 1 else {"anyOf": arms})


def json_schema_text(root: type[SkillDocument]) -> str:
    """The schema as indented JSON text, keys in order."""
    return orjson.dumps(json_schema(root), option=orjson.OPT_INDENT_2).decode() + "\n"
