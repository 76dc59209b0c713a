"""Tools look: in read mode nothing in the workspace changes, and nothing from after the tick reaches an answer.

Every registered tool is tried, whoever wrote it, with arguments drawn from its own schema.
"""

import asyncio
import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core.errors import ToolFailed
from pitboss.core.instant import DAY_MS, Instant, parse_instant
from pitboss.data.demo import VENUE as DEMO
from pitboss.data.demo import write_demo
from pitboss.data.lake import Lake
from pitboss.runs import tool_context as ask
from pitboss.runs.run import start
from pitboss.tools.define import ToolContext
from pitboss.tools.registry import hydrate
from pitboss.venues.perp.intents import TERMINAL
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.venue import VENUE
from venues.perp.tools.demo_market import market_until
from venues.perp.tools.drawn_arguments import valid

END = parse_instant("2025-06-05")
FROM = END - 5 * DAY_MS
MIDDLE = END - DAY_MS
SKILL: dict[str, Any] = {
    "pitboss": 1,
    "name": "contained",
    "venue": "perp",
    "model": "standin/analyst",
    "max_steps": 3,
    "schedule": {"every": "1h"},
    "strategy": {"mode": "thesis", "thesis": "Trends go on.", "avoid": "Ranges."},
    "tools": {"built_in": ["fetch_recent_bars", "get_pnl_summary", "read_my_prior_decisions"]},
    "context": {"symbols": ["BTC", "ETH"], "bars_interval": "1h", "bars_lookback": 60},
    "risk": {"max_position_pct": 15},
}
LOOKS = [name for name in VENUE.tools() if name != TERMINAL]
READS = [name for name in LOOKS if "read" in VENUE.tools()[name].modes]


def settings_of(home: Path) -> Settings:
    return Settings.model_construct(home=home)


def run_to(workspace: Workspace, to_at: Instant) -> str:
    return asyncio.run(start(workspace, PerpRequest(SKILL, FROM, to_at, data_venue=DEMO))).id


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a market of two weeks and a run of some days in it."""
    home = tmp_path_factory.mktemp("contained")
    write_demo(Lake(home / "lake"), days=14, end=END)
    with open_workspace(settings_of(home)) as workspace:
        run_to(workspace, END)
    return home


@pytest.fixture(scope="module")
def workspace(home: Path) -> Iterator[Workspace]:
    with open_workspace(settings_of(home)) as opened:
        yield opened


@pytest.fixture(scope="module")
def context(workspace: Workspace) -> ToolContext:
    """The context of a question in the middle of the run."""
    (run,) = workspace.runs.listing(5).runs
    return asyncio.run(ask.of_run(workspace, run.id, MIDDLE))


def answer(name: str, context: ToolContext, arguments: dict[str, Any]) -> str:
    mode = "read" if name in READS else "write"
    context = replace(context, mode=mode)
    try:
        return asyncio.run(hydrate(VENUE.tools(), [name], context)[name].call(arguments))  # type: ignore[arg-type]
    except ToolFailed as error:
        return f"failed: {error}"


def fingerprint(home: Path) -> dict[str, str]:
    """Every file of the workspace by its content; SQLite's own notes about its readers are not content."""
    return {
        str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(home.rglob("*"))
        if path.is_file() and not path.name.endswith("-shm")
    }


@pytest.fixture
def initial_fingerprint(home: Path, context: ToolContext) -> dict[str, str]:
    """The files before any question of a test."""
    del context  # which opens the workspace
    return fingerprint(home)


@pytest.mark.parametrize("name", READS)
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_tool_changes_anything_in_read_mode(
    name: str, home: Path, context: ToolContext, initial_fingerprint: dict[str, str], data: st.DataObject
) -> None:
    assert any(file.endswith("pitboss.db") for file in initial_fingerprint)
    assert sum(file.startswith("lake") for file in initial_fingerprint) > 3
    arguments = data.draw(valid(VENUE.tools()[name].schema, FROM))
    result = answer(name, context, arguments)
    assert result
    assert answer(name, context, arguments) == result
    assert fingerprint(home) == initial_fingerprint


@pytest.fixture(scope="module")
def ended_context(home: Path, tmp_path_factory: pytest.TempPathFactory, context: ToolContext) -> Iterator[ToolContext]:
    """The context of the same question in a workspace whose run and data end at that tick."""
    other = tmp_path_factory.mktemp("ended")
    shutil.copytree(home / "lake", other / "lake")
    with open_workspace(settings_of(other)) as workspace:
        found = asyncio.run(ask.of_run(workspace, run_to(workspace, MIDDLE), MIDDLE))
        view = market_until(found.observation.view._market, MIDDLE).view(MIDDLE)  # pyright: ignore[reportPrivateUsage]
        yield replace(found, observation=replace(found.observation, view=view))


def test_the_account_in_the_middle_of_a_run_is_that_of_a_run_that_ended_there(
    context: ToolContext, ended_context: ToolContext
) -> None:
    assert context.observation.portfolio() == ended_context.observation.portfolio()
    assert context.past.decisions(MIDDLE, 500) == ended_context.past.decisions(MIDDLE, 500)
    assert context.past.receipts(MIDDLE, 500) == ended_context.past.receipts(MIDDLE, 500)
    assert context.past.receipts(MIDDLE, 500)
    assert all(one.at < MIDDLE for one in context.past.decisions(MIDDLE, 500))


@pytest.mark.parametrize("name", LOOKS)
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_answer_is_the_same_when_everything_after_it_is_cut_off(
    name: str, context: ToolContext, ended_context: ToolContext, data: st.DataObject
) -> None:
    arguments = data.draw(valid(VENUE.tools()[name].schema, FROM))
    assert answer(name, context, arguments) == answer(name, ended_context, arguments)


@pytest.mark.proof
@pytest.mark.parametrize("name", LOOKS)
@settings(max_examples=800, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_proof_no_tool_changes_anything_or_sees_what_comes_after(
    name: str, home: Path, context: ToolContext, ended_context: ToolContext, data: st.DataObject
) -> None:
    initial_fingerprint = fingerprint(home)
    arguments = data.draw(valid(VENUE.tools()[name].schema, FROM))
    assert answer(name, context, arguments) == answer(name, ended_context, arguments)
    assert fingerprint(home) == initial_fingerprint
