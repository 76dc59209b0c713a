"""Predict skills on the command line: what is there for them works, and everything else says so in one line."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from pitboss.cli.main import main
from pitboss.skill.document import json_schema_text
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.predict.skill import PredictSkill
from pitboss.venues.predict.venue import VENUE


def pitboss(*words: object) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(word) for word in words])
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def brain_skill(tmp_path: Path) -> Path:
    file = tmp_path / "btc-brain.yaml"
    file.write_text(VENUE.examples()[file.name])
    return file


def test_a_predict_skill_is_checked_by_the_same_command(brain_skill: Path):
    code, out, err = pitboss("skill", "check", brain_skill, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["ok"] is True
    brain_skill.write_text(brain_skill.read_text().replace("min_edge", "min_egde"))
    code, out, err = pitboss("skill", "check", brain_skill)
    assert (code, out) == (2, "")
    assert "risk.min_egde: unknown key" in err
    assert "did you mean min_edge?" in err


def test_a_mandate_is_read_next_to_the_file_that_is_checked(brain_skill: Path):
    (brain_skill.parent / "mine.md").write_text("Words.")
    code, out, _ = pitboss("skill", "check", brain_skill, "--set", "strategy.mandate=mine.md", "--json")
    assert (code, json.loads(out)["errors"]) == (0, [])
    code, _, err = pitboss("skill", "check", brain_skill, "--set", "strategy.mandate=../mine.md")
    assert code == 2
    assert "outside the folder" in err


def test_the_backtest_of_another_venue_refuses_a_predict_skill_in_one_line(brain_skill: Path, tmp_path: Path):
    span = ("--from", "2025-02-10", "--to", "2025-02-11")
    code, out, err = pitboss("perp", "backtest", brain_skill, *span, "--home", tmp_path / "home")
    assert (code, out) == (2, "")
    first, hint = err.splitlines()
    assert first.endswith("btc-brain.yaml is a skill of the predict venue")
    assert "`pitboss backtest`, which takes skills of every venue" in hint


def test_the_schema_of_either_venue_is_printed():
    assert pitboss("skill", "schema", "--venue", "predict") == (0, json_schema_text(PredictSkill), "")
    assert pitboss("skill", "schema") == (0, json_schema_text(PerpSkill), "")


def test_init_writes_the_skill_of_the_venue_that_is_asked_for(tmp_path: Path):
    code, out, _ = pitboss("init", tmp_path / "bets", "--venue", "predict")
    assert code == 0
    assert [file.name for file in (tmp_path / "bets").glob("*.yaml")] == ["btc-brain.yaml"]
    assert "pitboss skill check btc-brain.yaml" in out
    assert "pitboss backtest btc-brain.yaml" in out
    assert pitboss("skill", "check", tmp_path / "bets" / "btc-brain.yaml")[0] == 0
