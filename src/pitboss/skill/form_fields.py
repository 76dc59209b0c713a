"""The fields of a skill as a form shows them: what kind of control each needs, its bounds, choices and help text.

Derived from the JSON Schema of a venue's documents, so that a new field of a venue appears in the editor without a change here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, cast

from pitboss.skill.document import json_schema
from pitboss.skill.schema import SkillDocument
from pitboss.skill.spelling import dotted

Kind = Literal[
    "line", "prose", "number", "whole", "flag", "choice", "suggestion", "choices", "names", "tools", "servers", "yaml"
]
"""`suggestion` is a text with usual values, `choices` are several of a fixed set, `names` is a list of words, `yaml` is anything else."""

PROSE_LENGTH = 1_000
_UNITS = {"pct": "%", "usd": "USD", "mcp": "MCP", "s": "(s)", "bps": "(bps)"}
"""Words of field names that are written otherwise in labels."""
TOOLS, SERVERS = "tools.built_in", "tools.mcp_servers"


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of the form. `default` is its default as JSON, None if it has none."""

    path: str
    kind: Kind
    help: str
    required: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    max_length: int | None = None

    @property
    def label(self) -> str:
        """The last part of the path in words."""
        return _words(self.path)


@dataclass(frozen=True, slots=True)
class FormSection:
    """A part of the document with its own fields and the parts within it. The path of the document itself is empty."""

    path: str
    help: str
    fields: tuple[FormField, ...]
    sections: tuple["FormSection", ...] = ()

    @property
    def label(self) -> str:
        """The last part of the path in words."""
        return _words(self.path) or "General"

    def all_fields(self) -> Iterator[FormField]:
        """The fields of this section and of those within it."""
        yield from self.fields
        for section in self.sections:
            yield from section.all_fields()


def _words(path: str) -> str:
    words = [_UNITS.get(word, word) for word in path.rpartition(".")[2].split("_")]
    first, *rest = words
    return " ".join([first if first.isupper() else first.capitalize(), *rest])


@cache
def form_of(root: type[SkillDocument]) -> FormSection:
    """The form of a venue's documents."""
    schema = json_schema(root)
    return _section(schema, schema["$defs"], (), str(schema.get("description", "")))


def _section(part: Mapping[str, Any], definitions: Mapping[str, Any], path: tuple[str, ...], about: str) -> FormSection:
    fields: list[FormField] = []
    sections: list[FormSection] = []
    required = part.get("required", ())
    for name, prop in part.get("properties", {}).items():
        at, resolved = (*path, name), _resolved(prop, definitions)
        text = str(prop.get("description", resolved.get("description", "")))
        if resolved.get("type") == "object" and "properties" in resolved:
            sections.append(_section(resolved, definitions, at, text))
        elif "const" not in resolved:
            fields.append(_field(dotted(at), resolved, definitions, text, name in required, prop.get("default")))
    return FormSection(dotted(path), about, tuple(fields), tuple(sections))


def _resolved(prop: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """A property without references; of several kinds, null does not count."""
    if "$ref" in prop:
        return {**definitions[str(prop["$ref"]).rpartition("/")[2]], **{k: v for k, v in prop.items() if k != "$ref"}}
    arms = [arm for arm in cast("list[dict[str, Any]]", prop.get("anyOf", [])) if arm.get("type") != "null"]
    return {**prop, **_resolved(arms[0], definitions)} if len(arms) == 1 else prop


def _field(
    path: str, prop: Mapping[str, Any], definitions: Mapping[str, Any], about: str, required: bool, default: Any
) -> FormField:
    kind, choices = _kind(path, prop, definitions)
    low, high = prop.get("minimum", prop.get("exclusiveMinimum")), prop.get("maximum")
    return FormField(path, kind, about, required, default, choices, low, high, prop.get("maxLength"))


def _kind(path: str, prop: Mapping[str, Any], definitions: Mapping[str, Any]) -> tuple[Kind, tuple[str, ...]]:
    if path == TOOLS:
        return "tools", ()
    if path == SERVERS:
        return "servers", ()
    if "enum" in prop:
        return "choice", tuple(str(choice) for choice in prop["enum"])
    arms = cast("list[dict[str, Any]]", prop.get("anyOf", []))
    if any(arm.get("type") == "string" for arm in arms):
        return "suggestion", tuple(str(choice) for arm in arms for choice in arm.get("enum", ()))
    kinds: dict[str, Kind] = {"boolean": "flag", "integer": "whole", "number": "number"}
    name = str(prop.get("type", ""))
    if name == "string":
        length = prop.get("maxLength")
        return ("prose" if length is not None and length >= PROSE_LENGTH else "line"), ()
    if name == "array":
        items = _resolved(prop.get("items", {}), definitions)
        if "enum" in items:
            return "choices", tuple(str(choice) for choice in items["enum"])
        return ("names" if items.get("type") == "string" else "yaml"), ()
    return kinds.get(name, "yaml"), ()
