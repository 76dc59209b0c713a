"""The page `docs/tools.md`: every built-in tool, with its example called at a tick of a small run on the demo market.

The run is made anew in a temporary folder whenever the page is made, with the stand-in in the place of a model: same
code, same bytes. The other pages are `testing.pages`; this one is apart because it needs a market.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from pitboss.bootstrap.settings import Settings
from pitboss.core.asof import Market
from pitboss.core.errors import ToolFailed
from pitboss.core.instant import MINUTE_MS, parse_instant
from pitboss.core.market import Bars, Floats
from pitboss.data.demo import VENUE, write_demo
from pitboss.data.lake import Lake
from pitboss.sim.course import ticks_between
from pitboss.sim.past import RunPast
from pitboss.sim.replay import replay
from pitboss.sim.watch import Watch
from pitboss.testing.journal import MemoryJournal
from pitboss.tools.define import Mode, ToolContext, ToolDefinition
from pitboss.tools.registry import catalogue, lookup
from pitboss.venues.perp.assembly import Assembly, PerpRequest, assemble
from pitboss.venues.perp.course import first_state
from pitboss.venues.perp.intents import TERMINAL
from pitboss.venues.predict.agent import read_predict_skill
from pitboss.venues.predict.assembly import make_script
from pitboss.venues.predict.course import first_state as betting_start
from pitboss.venues.predict.heuristics import heuristic
from pitboss.venues.predict.intents import TERMINAL as BETTING_TERMINAL
from pitboss.venues.predict.request import PredictRequest
from pitboss_dev.docs.markdown import table

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
    parts += _described(tools, example_context)
    betting = catalogue("predict")
    shown = [(f"[`{tool['name']}`](#{tool['name']})", tool["category"], tool["description"]) for tool in betting]
    parts += [
        "# Tools of the predict venue",
        "A predict skill lists those its agent may call under `tools.built_in`; all six unless it says otherwise. "
        "`submit_decision` is the decision itself, always offered and never listed. Asks that a tool shows count as shown "
        "to the model: the slippage rule compares with the last one. `pitboss tools list --venue predict` lists them.",
        table(("tool", "category", "what it does"), shown),
        *_described(betting, betting_context, "predict"),
    ]
    return "\n\n".join(parts)


def _described(
    tools: Iterable[Mapping[str, Any]], context: Callable[[], ToolContext], venue: str = "perp"
) -> list[str]:
    parts: list[str] = []
    for tool in tools:
        parts += [f"## {tool['name']}", tool["description"]]
        if tool["ui_hint"]:
            parts.append(tool["ui_hint"])
        parts.append(f"Category `{tool['category']}` · modes {_codes(tool['modes'])} · reach `{tool['reach']}`")
        parts.append(_arguments(tool["input_schema"]))
        parts.append(f"Example:\n\n```json\n{json.dumps(tool['example'], indent=2, ensure_ascii=False)}\n```")
        if tool["name"] not in (TERMINAL, BETTING_TERMINAL):
            parts.append(f"Answer:\n\n```text\n{_cut(answer(lookup(tool['name'], venue), context()))}\n```")
    return parts


def answer(tool: ToolDefinition, context: ToolContext | None = None) -> str:
    """What a tool answers to its own example."""
    mode: Mode = "read" if "read" in tool.modes else "write"
    built = tool.build(replace(context or example_context(), mode=mode))
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
        request = PerpRequest(SKILL, parse_instant(FROM), parse_instant(AT), data_venue=VENUE)
        assembly = assemble(request, lake, Settings.model_construct())
    return asyncio.run(_played(assembly))


async def _played(assembly: Assembly) -> ToolContext:
    script, journal = assembly.script, MemoryJournal()
    at, ports = script.to_at, assembly.script.ports
    state = await replay(script, journal, first_state(script), Watch())
    past = script.past or RunPast(TERMINAL)
    observation = ports.observe(state, at)
    return ToolContext(
        observation,
        "read",
        lambda intent: ports.guard(observation, state, intent, at).verdict,
        past,
    )


BETS_AT = "2026-05-27T12:25:00Z"


@cache
def betting_context() -> ToolContext:
    """A tick of a heuristic's run on a generated hour of prices."""
    at = parse_instant(BETS_AT)
    skill = read_predict_skill(
        {"name": "example", "venue": "predict", "model": "policy/alternate", "strategy": {"mandate": "momentum"}}
    )
    place = np.arange(90, dtype=np.int64)
    close = np.asarray(np.round(63_200 + 90 * np.sin(place / 9) + 25 * np.cos(place / 2), 2), np.float64)
    open_at = at - (90 - place) * MINUTE_MS
    opened: Floats = np.concatenate((close[:1], close[:-1]))
    high, low = np.maximum(opened, close) + 4, np.minimum(opened, close) - 4
    market = Market({("BTC", "1m"): Bars("BTC", "1m", MINUTE_MS, open_at, opened, high, low, close, np.ones(90))})
    request = PredictRequest({}, at - 5 * MINUTE_MS, at)
    ticks = ticks_between(request.from_at, at, MINUTE_MS)
    script = make_script(request, skill, market, ticks, 50, None, heuristic("alternate"))
    state = asyncio.run(replay(script, MemoryJournal(), betting_start(script), Watch()))
    observation = script.ports.observe(state, at)
    return ToolContext(observation, "write", lambda intent: script.ports.guard(observation, state, intent, at).verdict)  # pyright: ignore[reportArgumentType]  that venue's tools read it


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
