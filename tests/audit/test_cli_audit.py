"""`pitboss audit lookahead` as somebody types it."""

import json
from pathlib import Path
from typing import Any

import pytest

from pitboss.cli.main import main

RANGE = ("--from", "2025-03-28", "--to", "2025-03-29")
SKILL = """\
pitboss: 1
name: little
venue: perp
model: policy/sma_cross
schedule: {every: 15m}
strategy: {mode: thesis, thesis: Trends go on., avoid: Ranges.}
context: {symbols: [BTC, ETH], bars_interval: 15m, bars_lookback: 20}
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


def typed(capsys: pytest.CaptureFixture[str], *words: Any) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_audit_passes_and_says_what_it_compared(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = typed(capsys, "audit", "lookahead", "--cuts", 30, *RANGE, "--json", "--home", home)
    found = json.loads(out)
    assert code == 0
    assert found["passed"] is True
    assert found["cuts"] == 30
    assert found["covered"]["user message"]["compared"] == 60
    assert found["covered"]["tool get_open_interest"]["compared"] >= 2
    assert "tool propose_order" in found["not_covered"]


@pytest.mark.parametrize(("place", "expected"), [("closed - 1", 0), ("closed", 1)])
def test_a_tool_file_is_audited_and_a_leak_in_it_is_shown(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str, expected: int
) -> None:
    file, skill = tmp_path / "my_tool.py", tmp_path / "little.yaml"
    file.write_text(TOOL.format(place=place))
    skill.write_text(SKILL)
    words = ("--tool-file", file, "--tools", "my_tool", "--cuts", 10, *RANGE, "--home", home)
    code, out, _ = typed(capsys, "audit", "lookahead", skill, *words)
    assert code == expected
    assert "tool my_tool" in out
    assert ("LOOK-AHEAD" in out) is bool(expected)
    assert ("when the future was" in out) is bool(expected)


def test_a_stored_run_is_audited_with_its_own_decisions(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    skill = tmp_path / "little.yaml"
    skill.write_text(SKILL)
    code, out, _ = typed(capsys, "backtest", skill, *RANGE, "--json", "--home", home)
    assert code == 0
    run = json.loads(out)["run_id"]
    code, out, _ = typed(capsys, "audit", "lookahead", "--run", run, "--cuts", 25, "--json", "--home", home)
    found = json.loads(out)
    assert (code, found["differences"]) == (0, 0)
    assert found["symbols"] == ["BTC", "ETH"]
    late = ("--from", "2025-03-28T23:45:00Z", "--cuts", 2, "--tools", "get_portfolio")
    assert typed(capsys, "audit", "lookahead", "--run", run, *late, "--home", home)[0] == 0
    code, _, err = typed(capsys, "audit", "lookahead", "--run", run, "--to", "2025-03-30", "--home", home)
    assert (code, "not within the run" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--cuts", "0"), "--cuts: 0 is not from 1"),
        (("--seed", "-1"), "--seed: -1 is not from 0"),
        (("--tools", "fetch_recent_bar"), "did you mean fetch_recent_bars?"),
        (("--tool-file", "nowhere.py"), "nowhere.py is not a Python file"),
        (("--run", "0000", "--symbols", "BTC"), "a run has its own skill and symbols"),
        (("--set", "max_steps=1"), "--set needs a skill"),
    ],
)
def test_a_mistake_is_said_in_one_line(
    home: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    code, _, err = typed(capsys, "audit", "lookahead", *words, "--home", home)
    assert code == 2
    assert said in err
