"""Schemas in the subset that each provider accepts."""

from typing import Any

from pitboss.models.native.schemas import anthropic_output_schema, anthropic_tool_schema, google_schema

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Order",
    "type": "object",
    "properties": {
        "title": {"type": "string", "title": "Title", "maxLength": 10},
        "kind": {"const": "limit"},
        "size": {"type": "number", "exclusiveMinimum": 0, "description": "in USD"},
        "at": {"type": "string", "format": "date-time", "description": "when"},
        "stop": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": None},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/Tag"}, "minItems": 1, "maxItems": 3},
    },
    "required": ["kind"],
    "$defs": {"Tag": {"type": "object", "title": "Tag", "properties": {"name": {"type": "string"}}}},
}


def test_a_tool_of_anthropic_loses_its_titles_and_no_property_of_that_name() -> None:
    schema = anthropic_tool_schema(SCHEMA)
    assert "title" not in schema
    assert "$schema" not in schema
    assert schema["properties"]["title"] == {"type": "string", "maxLength": 10}
    assert schema["$defs"]["Tag"] == {"type": "object", "properties": {"name": {"type": "string"}}}
    assert SCHEMA["title"] == "Order"  # the original is not changed


def test_a_reply_of_anthropic_is_restricted_to_closed_objects_and_the_rest_is_described() -> None:
    assert anthropic_output_schema(SCHEMA) == {
        "$defs": {
            "Tag": {"type": "object", "properties": {"name": {"type": "string"}}, "additionalProperties": False},
        },
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "{maxLength: 10}"},
            "kind": {"enum": ["limit"]},
            "size": {"type": "number", "description": "in USD\n\n{exclusiveMinimum: 0}"},
            "at": {"type": "string", "description": "when", "format": "date-time"},
            "stop": {"anyOf": [{"type": "number"}, {"type": "null"}], "description": "{default: None}"},
            "tags": {
                "type": "array", "items": {"$ref": "#/$defs/Tag"}, "minItems": 1, "description": "{maxItems: 3}",
            },
        },
        "additionalProperties": False,
        "required": ["kind"],
    }  # fmt: skip


def test_google_gets_no_constraint_that_it_does_not_know() -> None:
    properties = google_schema(SCHEMA)["properties"]
    assert properties["kind"] == {"type": "string", "enum": ["limit"]}
    assert properties["size"] == {"type": "number", "description": "in USD"}
    assert properties["at"] == {"type": "string", "description": "when (format: date-time)"}
    assert properties["title"] == {"type": "string", "maxLength": 10}
