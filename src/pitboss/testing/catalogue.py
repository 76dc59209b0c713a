"""The page `docs/tools.md`: every built-in tool, with its example called at a tick of a small run on the demo market.

The run is made anew in a temporary folder whenever the page is made, with the stand-in in the place of a model: same
code, same bytes. The other pages are `testing.pages`; this one is apart because it needs a market.
"""

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pitboss.bootstrap.backtest import Assembly, Request, assemble
from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import ToolFailed
from pitboss.core.instant import parse_instant
from pitboss.data.demo import VENUE, write_demo
from pitboss.data.lake import Lake
from pitboss.sim.past import RunPast
from pitboss.sim.perp import first_state
from pitboss.sim.replay import replay
from pitboss.sim.watch import Watch
from pitboss.testing.journal import MemoryJournal
from pitboss.testing.markdown import table
from pitboss.tools.define import Mode, ToolContext, ToolDefinition
from pitboss.tools.registry import catalogue, lookup
from pitboss.venues.perp.intents import TERMINAL

FROM, AT = "2025-02-26", "2025-03-02"
MOST_LINES, MOST_CHARS = 14, 1_600
"""Of an answer on the page."""

SKILL: dict[str, Any] = {
    "pitboss": 1,
    "name": "example",
    "venue": "perp",
    "model": "standin/analyst",
    "max_steps": 3,
    "schedule": {"every": "1h"},
    "strategy": {"mode": "thesis", "thesis": "Trends go on.", "avoid": "Ranges."},
    "tools": {"built_in": ["fetch_recent_bars", "get_portfolio", "simulate_action"]},
    "context": {"symbols": ["BTC", "ETH"], "bars_interval": "1h", "bars_lookback": 60},
    "risk": {"max_position_pct": 15},
}


def tools_page() -> str:
    """The catalogue of tools."""
    tools = catalogue()
    rows = [
        (f"[`{tool['name']}`](#{tool['name']})", tool["category"], ", ".join(tool["modes"]), tool["description"])
        for tool in tools
    ]
    parts = [
        "# Tools",
        "A tool looks and never changes anything. It reads the market through the view of its tick, so it cannot reach "
        "anything from later. A skill lists the tools its agent may call under `tools.built_in`; `propose_order` is the "
        "decision itself, always offered and never listed. `pitboss tools call NAME --run RUN` calls one as an agent "
        "would see it.",
        table(("tool", "category", "modes", "what it does"), rows),
        "*Modes*: `write` is an agent deciding at a tick, `read` is somebody asking about a run. *Reach*: `as_of` is "
        "computed from what was known at the tick, `recorded` replays what was recorded then, `live_only` knows only "
        "the present and is refused in a simulation.",
        f"The answers below are those at {AT} of a run on the market that `pitboss data demo` makes, which is "
        "synthetic. Long ones are cut here.",
    ]
    for tool in tools:
        parts += [f"## {tool['name']}", tool["description"]]
        if tool["ui_hint"]:
            parts.append(tool["ui_hint"])
        parts.append(f"Category `{tool['category']}` · modes {_codes(tool['modes'])} · reach `{tool['reach']}`")
        parts.append(_arguments(tool["input_schema"]))
        parts.append(f"Example:\n\n```json\n{json.dumps(tool['example'], indent=2, ensure_ascii=False)}\n```")
        if tool["name"] != TERMINAL:
            parts.append(f"Answer:\n\n```text\n{_cut(answer(lookup(tool['name'])))}\n```")
    return "\n\n".join(parts)


def answer(tool: ToolDefinition) -> str:
    """What a tool answers to its own example."""
    mode: Mode = "read" if "read" in tool.modes else "write"
    built = tool.build(replace(example_context(), mode=mode))
    try:
        return asyncio.run(_called(built, tool.example))
    except ToolFailed as error:
        return f"(told to the model as a failure) {error}"


async def _called(built: Any, arguments: Mapping[str, Any]) -> str:
    return await built.call(arguments)


@cache
def example_context() -> ToolContext:
    """A tick of a run on the demo market with some decisions behind it."""
    with TemporaryDirectory() as folder:
        lake = Lake(Path(folder) / "lake")
        write_demo(lake)
        request = Request(SKILL, parse_instant(FROM), parse_instant(AT), data_venue=VENUE)
        assembly = assemble(request, lake, Settings.model_construct())
    return asyncio.run(_played(assembly))


async def _played(assembly: Assembly) -> ToolContext:
    script, journal = assembly.script, MemoryJournal()
    at, ports = script.to_at, assembly.script.ports
    state = await replay(script, journal, first_state(script), Watch())
    past = script.past or RunPast()
    observation = ports.observe(state, at)
    return ToolContext(
        observation,
        "read",
        lambda intent: ports.guard(observation, state, intent, at).verdict,
        past,
    )


def _cut(text: str) -> str:
    """The beginning of an answer, safe inside a block of code."""
    lines = text.replace("```", "'''").splitlines()
    shown = "\n".join(lines[:MOST_LINES])
    if len(shown) > MOST_CHARS:
        return shown[:MOST_CHARS] + " …"
    return shown + (f"\n… {len(lines) - MOST_LINES} more lines" if len(lines) > MOST_LINES else "")


def _arguments(schema: Mapping[str, Any]) -> str:
    needed = schema.get("required", ())
    rows = [
        (f"`{name}`", _kind(part), "yes" if name in needed else "", part.get("description", ""))
        for name, part in schema["properties"].items()
    ]
    return table(("argument", "type", "required", "meaning"), rows) if rows else "It takes no arguments."


def _kind(part: Mapping[str, Any]) -> str:
    if "enum" in part:
        return ", ".join(map(str, part["enum"]))
    words = {"string": "text", "integer": "whole number", "number": "number"}[part["type"]]
    low = f"from {part['minimum']}" if "minimum" in part else ""
    low = f"above {part['exclusiveMinimum']}" if "exclusiveMinimum" in part else low
    high = f"to {part['maximum']}" if "maximum" in part else ""
    length = f"of {part.get('minLength', 0)} to {part['maxLength']} characters" if "maxLength" in part else ""
    return " ".join(word for word in (words, low, high, length) if word)


def _codes(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)
