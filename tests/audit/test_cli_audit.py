"""`pitboss audit lookahead` on the command line."""

import json
from pathlib import Path
from typing import Any

import pytest

from example_counts import cases
from pitboss.cli.main import main
from pitboss.core.asof import Market, View
from pitboss.core.instant import HOUR_MS

RANGE = ("--from", "2025-03-28", "--to", "2025-03-28T12:00:00Z")
DAY = ("--from", "2025-03-28", "--to", "2025-03-29")
SKILL = """\
pitboss: 1
name: little
venue: perp
model: policy/sma_cross
schedule: {every: 1h}
strategy: {mode: thesis, thesis: Trends go on., avoid: Ranges.}
context: {symbols: [BTC, ETH], bars_interval: 1h, bars_lookback: 20}
"""
TOOL = """\
from pitboss.tools.define import define_tool


async def look(context, arguments):
    bars, closed = context.observation.view.series("BTC", "5m")
    return str(bars.close[{place}])


TOOL = define_tool(
    name="my_tool",
    category="market_data",
    description="Mine.",
    schema={{"type": "object", "additionalProperties": False, "required": [], "properties": {{}}}},
    example={{}},
    look=look,
)
"""


def run_command(capsys: pytest.CaptureFixture[str], *words: Any) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_audit_passes_and_says_what_it_compared(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    skill = tmp_path / "little.yaml"
    skill.write_text(SKILL)
    code, out, _ = run_command(capsys, "audit", "lookahead", skill, "--cuts", 2, *RANGE, "--json", "--home", home)
    found = json.loads(out)
    assert code == 0
    assert (found["cuts"], found["differences"], found["examples"]) == (2, 0, [])
    assert found["runs"] == ["policy/sma_cross", "standin/analyst"]
    assert found["covered"]["prompt"]["compared"] >= 4
    assert "tool propose_order" in found["not_covered"]
    assert any("the model itself" in text for text in found["not_proved"])


@pytest.mark.parametrize(("place", "expected"), [("closed - 1", 0), ("closed", 1)])
def test_a_tool_file_is_audited_and_a_leak_in_it_is_shown(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str, expected: int
) -> None:
    file, skill = tmp_path / "my_tool.py", tmp_path / "little.yaml"
    file.write_text(TOOL.format(place=place))
    skill.write_text(SKILL)
    words = ("--tool-file", file, "--tools", "my_tool", "--cuts", 2, *RANGE, "--home", home)
    code, out, _ = run_command(capsys, "audit", "lookahead", skill, *words)
    assert code == expected
    assert "tool my_tool" in out
    assert ("LOOK-AHEAD" in out) is bool(expected)
    assert ("when the future was" in out) is bool(expected)


@pytest.mark.parametrize("model", cases(("policy/momentum", "standin/analyst"), ("standin/analyst",)))
def test_a_stored_run_is_audited_with_its_own_decisions(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], model: str
) -> None:
    run = stored_run_id(home, tmp_path, capsys, model)
    code, out, _ = run_command(capsys, "audit", "lookahead", "--run", run, "--cuts", 2, "--json", "--home", home)
    found = json.loads(out)
    assert (code, found["cuts"], found["differences"]) == (0, 2, 0)
    assert found["runs"] == [f"run {run}"]
    assert ("prompt" in found["covered"]) is (model == "standin/analyst")
    if model == "standin/analyst":
        fork = ("--at", "2025-03-28T12:00:00Z", "--model", "policy/momentum", "--json", "--home", home)
        code, out, _ = run_command(capsys, "runs", "fork", run, *fork)
        forked = json.loads(out)["run_id"]
        code, out, _ = run_command(capsys, "audit", "lookahead", "--run", forked, "--cuts", 2, "--json", "--home", home)
        found = json.loads(out)
        assert (code, found["cuts"], found["differences"], found["from"]) == (0, 2, 0, "2025-03-28T12:00:00Z")
    late = ("--from", "2025-03-28T23:00:00Z", "--cuts", 1)
    assert run_command(capsys, "audit", "lookahead", "--run", run, *late, "--home", home)[0] == 0
    code, _, err = run_command(capsys, "audit", "lookahead", "--run", run, "--to", "2025-03-30", "--home", home)
    assert (code, "not within the run" in err) == (2, True)


def test_a_stored_run_with_a_prompt_from_the_future_is_found_by_its_digest(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recorded by a program with a leak, and audited by one without: no prompt of it can be rebuilt."""
    with monkeypatch.context() as leaky:
        leaky.setattr(Market, "view", lambda self, at: View(self, at + HOUR_MS))
        run = stored_run_id(home, tmp_path, capsys, "standin/analyst")
    code, out, _ = run_command(capsys, "audit", "lookahead", "--run", run, "--cuts", 2, "--json", "--home", home)
    found = json.loads(out)
    assert code == 1
    assert ("prompt", "stored") in {(example["what"], example["future"]) for example in found["examples"]}
    monkeypatch.setattr(Market, "view", lambda self, at: View(self, at + HOUR_MS))
    code, out, _ = run_command(capsys, "audit", "lookahead", "--run", run, "--cuts", 2, "--json", "--home", home)
    futures = {example["future"] for example in json.loads(out)["examples"] if example["what"] == "prompt"}
    assert (code, futures) == (1, {"deleted", "changed"})


def stored_run_id(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], model: str) -> str:
    """The id of a run of the skill."""
    skill = tmp_path / "little.yaml"
    skill.write_text(SKILL)
    code, out, _ = run_command(capsys, "backtest", skill, *DAY, "--model", model, "--json", "--home", home)
    assert code == 0
    return json.loads(out)["run_id"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--cuts", "0"), "--cuts: 0 is not from 1"),
        (("--seed", "-1"), "--seed: -1 is not from 0"),
        (("little.yaml", *RANGE, "--tools", "fetch_recent_bar"), "did you mean fetch_recent_bars?"),
        (("little.yaml", *RANGE, "--tool-file", "nowhere.py"), "nowhere.py is not a Python file"),
        (("--run", "0000", "--tools", "get_portfolio"), "a run has its own tools"),
        ((), "name a skill"),
        (("--set", "max_steps=1"), "--set needs a skill"),
    ],
)
def test_a_mistake_is_said_in_one_line(
    home: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("little.yaml").write_text(SKILL)
    code, _, err = run_command(capsys, "audit", "lookahead", *words, "--home", home)
    assert code == 2
    assert said in err
