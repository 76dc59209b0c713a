"""`docs/skill.md`: every field of the skill documents of every venue."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pitboss.runs.venue import Venue
from pitboss.skill.document import FieldNote, describe_fields, json_schema
from pitboss_dev.docs.markdown import codes, table
from pitboss_dev.docs.venue_notes import documented_venues, notes_of


def skill_page(venues: Sequence[Venue] | None = None) -> str:
    """The documents of the first venue by section, those of the others in one table each."""
    first, *other_venues = documented_venues() if venues is None else venues
    parts = [
        "# The skill document",
        "A skill is one YAML or JSON file that says what an agent is to do, what it sees, and how far it may go. Nothing "
        f"in it is executable. `pitboss init my-skills` writes {len(first.examples())} commented examples, `pitboss skill "
        "check FILE` says what is wrong with one, `pitboss skill preview FILE` shows what the model would be given, and "
        "`pitboss skill schema` prints JSON Schema for editors.",
        "Keys may be written in snake_case or camelCase. An unknown key is an error, with the nearest known one as a "
        "hint. `null` is a value only where the default says so; elsewhere a key has a value or is left out.",
        f"First come the fields of documents with `venue: {first.name}` or without `venue`, then those of "
        f"{' and '.join(f'[{venue.name}](#{_anchor(venue)})' for venue in other_venues)}."
        if other_venues
        else "",
        *_sections(first),
    ]
    for venue in other_venues:
        name = venue.name
        parts += [
            f"## {_heading(venue)}",
            f"A document with `venue: {name}` has these fields instead; the rules above about spelling, unknown keys and "
            f"`null` hold for it too. `pitboss init my-skills --venue {name}` writes a commented example, and `pitboss skill "
            f"schema --venue {name}` prints its JSON Schema. How the venue works is in [{name}.md]({name}.md).",
            notes_of(venue).skill,
            fields_table(describe_fields(venue.skill_type())),
        ]
    return "\n\n".join(part for part in parts if part)


def _heading(venue: Venue) -> str:
    return f"Skills of the {venue.name} venue"


def _anchor(venue: Venue) -> str:
    return _heading(venue).lower().replace(" ", "-")


def _sections(venue: Venue) -> Iterator[str]:
    """The top level, then one section for each map."""
    notes = describe_fields(venue.skill_type())
    maps = [note for note in notes if note.type == "map" and "." not in note.path]
    names = {note.path for note in maps}
    yield "## Top level"
    yield fields_table(note for note in notes if note.path.partition(".")[0] not in names)
    schema = json_schema(venue.skill_type())
    for section in maps:
        yield f"## {section.path}"
        yield section.description
        yield from _conditions(schema, section.path)
        yield fields_table(note for note in notes if note.path.startswith(f"{section.path}."))


def _conditions(schema: Mapping[str, Any], name: str) -> Iterator[str]:
    """Which fields of a map are required for which value of another, from the conditions of the JSON Schema."""
    part = schema["properties"][name]
    definition = schema["$defs"].get(str(part.get("$ref", "")).rpartition("/")[2], part)
    required: dict[str, list[tuple[str, str]]] = {}
    for condition in definition.get("allOf", ()):
        for key, value in condition.get("if", {}).get("properties", {}).items():
            required.setdefault(key, []).append((f"`{value['const']}`", codes(condition["then"]["required"])))
    for key, rows in required.items():
        yield f"Fields that each `{key}` requires:"
        yield table((key, "required"), rows)


def fields_table(notes: Iterable[FieldNote]) -> str:
    """Fields with type, default and meaning."""
    rows = [(f"`{note.path}`", note.type, default_text(note), note.description) for note in notes]
    return table(("field", "type", "default", "meaning"), rows)


def default_text(note: FieldNote) -> str:
    """The default of a field as a page shows it."""
    if note.default in ("required", "left out"):
        return note.default
    return f"`{note.default}`" if note.default else ("see below" if note.type == "map" else "empty")
