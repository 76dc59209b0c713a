"""Where the examples on `docs/tools.md` are called: a tick of a small run for each venue that has one here.

The runs are executed whenever the page is generated, by a stand-in and a heuristic: the same code gives the same answers.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from pitboss.bootstrap.settings import Settings
from pitboss.core.asof import Market
from pitboss.core.instant import MINUTE_MS, parse_instant
from pitboss.core.market import Bars, Floats
from pitboss.data.demo import VENUE as DEMO_VENUE
from pitboss.data.demo import write_demo
from pitboss.data.lake import Lake
from pitboss.runs.venues import venue_named
from pitboss.sim.course import ticks_between
from pitboss.sim.past import RunPast
from pitboss.sim.prepared_run import PreparedRun
from pitboss.sim.replay import replay
from pitboss.sim.watch import Watch
from pitboss.testing.journal import MemoryJournal
from pitboss.tools.define import Mode, ToolContext
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.predict.agent import read_predict_skill
from pitboss.venues.predict.assembly import PredictRun
from pitboss.venues.predict.request import PredictRequest

PERP_SKILL: dict[str, Any] = {
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
PREDICT_SKILL: dict[str, Any] = {
    "name": "example",
    "venue": "predict",
    "model": "policy/alternate",
    "strategy": {"mandate": "momentum"},
}


@cache
def perp_context() -> ToolContext:
    """A tick on the demo market after four days of decisions by the stand-in."""
    with TemporaryDirectory() as folder:
        lake = Lake(Path(folder) / "lake")
        write_demo(lake)
        request = PerpRequest(
            PERP_SKILL, parse_instant("2025-02-26"), parse_instant("2025-03-02"), data_venue=DEMO_VENUE
        )
        prepared = venue_named("perp").prepare(request, lake, Settings.model_construct())
    return _context_at_end(prepared, "read")


@cache
def predict_context() -> ToolContext:
    """A tick after five minutes of a heuristic's run on generated prices."""
    at = parse_instant("2026-05-27T12:25:00Z")
    minutes = np.arange(90, dtype=np.int64)
    close = np.asarray(np.round(63_200 + 90 * np.sin(minutes / 9) + 25 * np.cos(minutes / 2), 2), np.float64)
    open_at = at - (90 - minutes) * MINUTE_MS
    opened: Floats = np.concatenate((close[:1], close[:-1]))
    high, low = np.maximum(opened, close) + 4, np.minimum(opened, close) - 4
    bars = Bars("BTC", "1m", MINUTE_MS, open_at, opened, high, low, close, np.ones(90))
    request = PredictRequest(PREDICT_SKILL, at - 5 * MINUTE_MS, at)
    settings = Settings.model_construct()
    prepared = PredictRun(
        request=request,
        skill=read_predict_skill(PREDICT_SKILL),
        data_venue="",
        data_digest="",
        synthetic=True,
        tick_at=ticks_between(request.from_at, at, MINUTE_MS),
        market=Market({("BTC", "1m"): bars}),
        surfaces=None,
        commit_records=settings.commit_records,
        most_errors=settings.model_errors,
    )
    return _context_at_end(prepared, "write")


CONTEXTS: Mapping[str, Callable[[], ToolContext]] = {"perp": perp_context, "predict": predict_context}
"""By name of the venue. The tools of other venues are shown without answers."""


def _context_at_end(prepared: PreparedRun, mode: Mode) -> ToolContext:
    """The context of a tool call at the end of a run."""
    venue, course = venue_named(str(prepared.request.skill["venue"])), prepared.course()
    state = asyncio.run(replay(course, MemoryJournal(), venue.first_state(course), Watch()))
    ports, at = course.ports, course.to_at
    observation = ports.observe(state, at)
    past = course.past or RunPast(venue.decision().tool)
    return ToolContext(observation, mode, lambda intent: ports.guard(observation, state, intent, at).verdict, past)
