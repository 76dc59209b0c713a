"""`docs/limits.md`: every limit of the program, of its venues and of their skill documents."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pitboss.runs.venue import Venue
from pitboss.runs.venues import default_venue
from pitboss.skill.document import describe_fields, json_schema
from pitboss.skill.schema import SkillDocument
from pitboss_dev.docs.bound import Bound
from pitboss_dev.docs.markdown import table
from pitboss_dev.docs.skill_page import default_text
from pitboss_dev.docs.venue_notes import documented_venues, notes_of

BOUNDS = (
    Bound("skill file", "skill.parse", "MAX_BYTES", "bytes", "refused"),
    Bound("nesting of a skill file", "skill.parse", "MAX_DEPTH", "levels", "refused"),
    Bound("values in a skill file, aliases expanded", "skill.parse", "MAX_VALUES", "values", "refused"),
    Bound("arguments of one tool call", "agent.terminal", "MAX_ARGUMENT_CHARS", "characters", "an error to the model"),
    Bound("result of one tool call", "agent.loop", "MAX_RESULT_CHARS", "characters", "cut, and marked as cut"),
    Bound("calls in one reply of a model", "agent.loop", "MAX_CALLS", "", "further calls fail with that reason"),
    Bound("nesting of a stored proposal", "core.codec", "MAX_DEPTH", "levels", "replaced by a note"),
    Bound("significant figures of a price", "core.asset", "MAX_SIGNIFICANT_FIGURES", "figures", "rounded"),
    Bound(
        "decimals of a price",
        "core.asset",
        "MAX_PRICE_DECIMALS",
        "less the asset's size decimals",
        "rounded; whole numbers are always allowed",
    ),
    Bound("failures of the model in a row", "sim.course", "MAX_MODEL_ERRORS", "ticks", "the run ends, resumable"),
    Bound("daily returns for a Sharpe", "sim.statistics.returns", "MIN_RETURNS", "returns", "none with fewer"),
    Bound(
        "daily returns for an interval",
        "sim.statistics.bootstrap",
        "MIN_BOOTSTRAP_RETURNS",
        "returns",
        "none with fewer",
    ),
    Bound("draws of the bootstrap", "sim.statistics.bootstrap", "DRAWS", "draws", ""),
    Bound("wait for a busy SQLite database", "store.sqlite", "BUSY_TIMEOUT_MS", "milliseconds", "an error"),
    Bound("records read at a time", "store.journal", "PAGE", "records", ""),
    Bound("repeats of a backtest", "terminal.options", "MOST_REPEATS", "runs", "refused"),
    Bound("digits of an amount on the command line", "terminal.options", "MOST_DIGITS", "digits", "refused"),
    Bound(
        "digits before or after the decimal point of an amount",
        "terminal.options",
        "MOST_PLACES",
        "digits",
        "refused",
    ),
)
"""Bounds that are neither a field of a skill nor a setting, nor of one venue."""


def limits_page(venues: Sequence[Venue] | None = None) -> str:
    """The bounds of the program, of the fields of every kind of skill, and of what can be set."""
    venues = documented_venues() if venues is None else venues
    bounds = [*BOUNDS, *(limit for venue in venues for limit in notes_of(venue).bounds)]
    rows = [
        (limit.subject, f"{_grouped(limit.value())} {limit.unit}".strip(), limit.beyond, f"`{limit.module}`")
        for limit in bounds
    ]
    parts = [
        "# Limits",
        "Every limit of the program and what happens when it is exceeded. The caps of an account are not here: those are the "
        "skill's `risk` section and the [rules](rules.md).",
        "## Of the program",
        table(("limit", "value", "when exceeded", "module"), rows),
    ]
    for venue in venues:
        is_default = venue is default_venue()
        parts += [
            "## Of the skill's fields" if is_default else f"## Of a {venue.name} skill's fields",
            "A value outside its range is refused when the skill is read." if is_default else "",
            notes_of(venue).limits,
            *_field_bounds(venue.skill_type()),
        ]
    parts += [
        "## That can be set",
        "See [settings.md](settings.md): `max_gap` (missing bars in a row that a run tolerates) and `commit_records` "
        "(free ticks that share a transaction). The first can also be given to one run as `--max-gap`.",
    ]
    return "\n\n".join(part for part in parts if part)


def _field_bounds(root: type[SkillDocument]) -> list[str]:
    """The bounds of a kind of document: those of numbers, and those of texts and lists."""
    notes = [note for note in describe_fields(root) if re.search(r"\b(from|above|to) -?\d", note.type)]
    schema = json_schema(root)
    return [
        table(("field", "type", "default"), [(f"`{note.path}`", note.type, default_text(note)) for note in notes]),
        "Texts and lists have a maximum length:",
        table(("field", "at most"), [(f"`{path}`", most) for path, most in _lengths(schema, "", schema["$defs"])]),
    ]


def _lengths(schema: Mapping[str, Any], path: str, definitions: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Every field of the schema with a maximum length, in document order. An entry of a list is `field[]`."""
    lengths: list[tuple[str, str]] = []
    properties: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
    for name, part in properties.items():
        field = f"{path}.{name}".removeprefix(".")
        for node_path, node in ((field, part), (f"{field}[]", part.get("items", {}))):
            for keyword, unit in (("maxLength", "characters"), ("maxItems", "entries")):
                if keyword in node:
                    lengths.append((node_path, f"{node[keyword]:,} {unit}"))
            if "$ref" in node:
                lengths += _lengths(definitions[node["$ref"].rpartition("/")[2]], node_path, definitions)
    return lengths


def _grouped(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
