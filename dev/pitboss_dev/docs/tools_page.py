"""`docs/tools.md`: the built-in tools of every venue, each with its example called at a tick of a small run."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pitboss.core.errors import ToolFailed
from pitboss.runs.venue import Venue
from pitboss.tools.define import Mode, ToolContext, ToolDefinition
from pitboss.tools.registry import catalogue
from pitboss_dev.docs.markdown import codes, table
from pitboss_dev.docs.tool_examples import CONTEXTS
from pitboss_dev.docs.venue_notes import documented_venues, notes_of

MOST_LINES, MOST_CHARS = 14, 1_600
"""Of an answer on the page."""


def tools_page(venues: Sequence[Venue] | None = None) -> str:
    """The tools of the first venue with an introduction to tools, then those of the others."""
    first, *other_venues = documented_venues() if venues is None else venues
    parts = [
        "# Tools",
        "A tool looks and never changes anything. It reads the market through the view of its tick, so it cannot reach "
        "anything from later. A skill lists the tools its agent may call under `tools.built_in`; "
        f"{_decision_sentence(first)} `pitboss tools call NAME --run RUN` calls one as an agent would see it.",
        notes_of(first).tools,
        _tools_table(first),
        "*Modes*: `write` is an agent deciding at a tick, `read` is a question about a run. *Reach*: `as_of` is "
        "computed from what was known at the tick, `recorded` replays what was recorded then, `live_only` knows only "
        "the present and is refused in a simulation.",
        notes_of(first).example,
        *_sections(first),
    ]
    for venue in other_venues:
        parts += [
            f"# Tools of the {venue.name} venue",
            f"A {venue.name} skill lists those its agent may call under `tools.built_in`; {_decision_sentence(venue)} "
            f"`pitboss tools list --venue {venue.name}` lists them.",
            notes_of(venue).tools,
            _tools_table(venue),
            notes_of(venue).example,
            *_sections(venue),
        ]
    return "\n\n".join(part for part in parts if part)


def _decision_sentence(venue: Venue) -> str:
    names = [name for name, tool in venue.tools().items() if tool.decides]
    return f"{codes(names)} is the decision itself, always offered and never listed."


def _tools_table(venue: Venue) -> str:
    rows = [
        (f"[`{tool['name']}`](#{tool['name']})", tool["category"], ", ".join(tool["modes"]), tool["description"])
        for tool in catalogue(venue.tools())
    ]
    return table(("tool", "category", "modes", "what it does"), rows)


def _sections(venue: Venue) -> Iterator[str]:
    """One section for each tool of a venue."""
    registry, make_context = venue.tools(), CONTEXTS.get(venue.name)
    for tool in catalogue(registry):
        yield f"## {tool['name']}"
        yield tool["description"]
        yield tool["ui_hint"]
        yield f"Category `{tool['category']}` · modes {codes(tool['modes'])} · reach `{tool['reach']}`"
        yield _arguments(tool["input_schema"])
        yield f"Example:\n\n```json\n{json.dumps(tool['example'], indent=2, ensure_ascii=False)}\n```"
        definition = registry[tool["name"]]
        if make_context is not None and not definition.decides:
            yield f"Answer:\n\n```text\n{_shortened(answer(definition, make_context()))}\n```"


def answer(tool: ToolDefinition, context: ToolContext) -> str:
    """The answer of a tool to its own example."""
    mode: Mode = "read" if "read" in tool.modes else "write"
    bound_tool = tool.build(replace(context, mode=mode))

    async def call() -> str:
        return await bound_tool.call(tool.example)

    try:
        return asyncio.run(call())
    except ToolFailed as error:
        return f"(a failure, shown to the model) {error}"


def _shortened(text: str) -> str:
    """The beginning of an answer, safe inside a block of code."""
    lines = text.replace("```", "'''").splitlines()
    beginning = "\n".join(lines[:MOST_LINES])
    if len(beginning) > MOST_CHARS:
        return beginning[:MOST_CHARS] + " …"
    return beginning + (f"\n… {len(lines) - MOST_LINES} more lines" if len(lines) > MOST_LINES else "")


def _arguments(schema: Mapping[str, Any]) -> str:
    required = schema.get("required", ())
    rows = list[tuple[str, str, str, str]]()
    for name, part in schema["properties"].items():
        rows.append((f"`{name}`", _type(part), "yes" if name in required else "", part.get("description", "")))
        items = part.get("items", {})
        rows += [
            (f"`{name}[].{key}`", _type(each), "yes" if key in items.get("required", ()) else "", each["description"])
            for key, each in items.get("properties", {}).items()
        ]
    return table(("argument", "type", "required", "meaning"), rows) if rows else "It takes no arguments."


def _type(part: Mapping[str, Any]) -> str:
    if "enum" in part:
        return ", ".join(map(str, part["enum"]))
    kind = {"string": "text", "integer": "whole number", "number": "number", "array": "list"}[part["type"]]
    low = f"from {part['minimum']}" if "minimum" in part else ""
    low = f"above {part['exclusiveMinimum']}" if "exclusiveMinimum" in part else low
    high = f"to {part['maximum']}" if "maximum" in part else ""
    length = f"of {part.get('minLength', 0)} to {part['maxLength']} characters" if "maxLength" in part else ""
    length = f"of at most {part['maxItems']}" if "maxItems" in part else length
    return " ".join(text for text in (kind, low, high, length) if text)
