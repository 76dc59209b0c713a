"""`pitboss init` and `pitboss skill`."""

import json
import re
import shutil
from pathlib import Path

import pytest
from market_files import SKILL
from run_command import pitboss, pitboss_ok, pitboss_refused


def test_init_writes_three_skills_that_check_and_says_what_to_do_next(tmp_path: Path) -> None:
    said = pitboss_ok("init", tmp_path / "mine").out
    files = sorted((tmp_path / "mine").glob("*.yaml"))
    assert len(files) == 3
    assert "next:" in said
    assert (tmp_path / "mine" / ".pitboss" / "settings.toml").is_file()
    for file in files:
        answer = pitboss_ok("skill", "check", file, "--json", "--home", tmp_path / "home").json
        assert answer["ok"] is True
        assert answer["errors"] == []
        assert len(answer["digest"]) == 64
        assert "#" in file.read_text()
    assert not (tmp_path / "home").exists(), "checking a file leaves no trace"
    assert pitboss_ok("settings", "--json", "--home", tmp_path / "mine" / ".pitboss").json


def test_the_settings_that_init_writes_are_the_defaults_when_they_are_uncommented(tmp_path: Path) -> None:
    pitboss_ok("init", tmp_path)
    home = tmp_path / ".pitboss"
    defaults = pitboss_ok("settings", "--json", "--home", home).json
    file = home / "settings.toml"
    file.write_text("\n".join(re.findall(r"^# (\w+ = .*)$", file.read_text(), re.MULTILINE)))
    assert 'log_file = ""' in file.read_text()
    assert pitboss_ok("settings", "--json", "--home", home).json == defaults


def test_init_in_the_current_folder_names_no_change_of_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in (".", str(tmp_path)):
        lines = pitboss_ok("init", folder).out.partition("next:\n")[2].splitlines()
        assert lines[0].startswith("  pitboss skill check ")
        shutil.rmtree(tmp_path / ".pitboss")
        for file in tmp_path.glob("*.yaml"):
            file.unlink()


def test_init_overwrites_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "trend-thesis.yaml").write_text("mine")
    assert "trend-thesis.yaml" in pitboss_refused("init", folder)
    assert [path.name for path in folder.iterdir()] == ["trend-thesis.yaml"]
    assert (folder / "trend-thesis.yaml").read_text() == "mine"


@pytest.mark.parametrize(
    ("old", "new", "path", "hint"),
    [
        ("max_steps: 3", "max_stpes: 3", "max_stpes", "max_steps"),
        ("  avoid: Ranges.\n", "", "strategy.avoid", ""),
        ("mode: thesis", "mode: rules", "strategy.entry", ""),
        ("get_portfolio", "get_portfolios", "tools.built_in[1]", "get_portfolio"),
        ("[BTC, ETH]", "[BTC, ETHH]", "context.symbols[1]", "ETH"),
        ("every: 15m", "every: 7m", "schedule.every", "5m"),
        ("max_orders_per_hour: 100", "max_orders_per_hour: lots", "risk.max_orders_per_hour", ""),
    ],
    ids=[
        "unknown field",
        "missing for the mode",
        "another mode",
        "unknown tool",
        "unknown symbol",
        "bad choice",
        "not a number",
    ],
)
def test_a_mistake_in_a_skill_names_its_path_and_a_way_out(
    tmp_path: Path, old: str, new: str, path: str, hint: str
) -> None:
    file = tmp_path / "s.yaml"
    assert old in SKILL
    file.write_text(SKILL.replace(old, new))
    answer = pitboss("skill", "check", file, "--json", "--home", tmp_path / "home")
    assert answer.code == 2
    found = answer.json
    assert (found["ok"], found["digest"]) == (False, None)
    errors = {error["path"]: error for error in found["errors"]}
    assert path in errors
    assert hint in errors[path]["hint"]
    assert {"path", "message", "hint"} <= set(errors[path])
    shown = pitboss("skill", "check", file, "--home", tmp_path / "home")
    assert (shown.code, shown.out) == (2, "")
    assert path in shown.err


def test_a_file_that_cannot_be_parsed_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("pitboss: 1\nname: 'half\n")
    shown = pitboss("skill", "check", file, "--home", tmp_path / "home")
    assert shown.code == 2
    assert shown.err.startswith(f"error: {file}: line 3: not valid YAML")
    assert pitboss("skill", "check", tmp_path / "absent.yaml").err.startswith(
        f"error: {tmp_path / 'absent.yaml'}: no such"
    )


def test_a_file_that_is_not_there_is_reported_like_any_other_mistake(tmp_path: Path) -> None:
    answer = pitboss("skill", "check", tmp_path / "absent.yaml", "--json")
    assert answer.code == 2
    assert answer.json["ok"] is False
    assert "no such file" in answer.json["errors"][0]["message"]
    pitboss_refused("skill", "check", tmp_path / "absent.yaml")


def test_preview_is_byte_for_byte_what_the_first_tick_of_a_run_is_given(home: Path, skill: Path) -> None:
    start = "2025-06-03T12:00:00Z"
    shown = pitboss_ok("skill", "preview", skill, "--at", start, "--equity", "5000", "--json", "--home", home).json
    assert {"system", "user", "tools", "tokens_estimate"} <= set(shown)
    assert [tool["name"] for tool in shown["tools"]] == [
        "fetch_recent_bars",
        "get_portfolio",
        "simulate_action",
        "propose_order",
    ]
    assert shown["tokens_estimate"] > len(shown["user"]) / 8
    run = pitboss_ok(
        "backtest", skill, "--from", start, "--to", "2025-06-03T14:00:00Z", "--model", "standin/analyst",
        "--equity", "5000", "--json", "--home", home,
    ).json  # fmt: skip
    first = pitboss_ok("runs", "export", run["run_id"], "--what", "snapshots", "--home", home).lines[0]
    assert first["extra"]["prompt"] == [shown["system"], shown["user"]]


def test_preview_works_for_a_model_that_cannot_be_asked_here(home: Path, skill: Path) -> None:
    words = ["skill", "preview", skill, "--at", "2025-06-03", "--json", "--home", home]
    unknown, free = pitboss_ok(*words, "--set", "model=anthropic/some-model").json, pitboss_ok(*words).json
    assert (unknown.pop("cost_per_tick")["usd"], free.pop("cost_per_tick")["usd"]) == (None, 0)
    assert unknown == free


def test_preview_takes_the_newest_tick_with_data_unless_asked_otherwise(home: Path, skill: Path) -> None:
    shown = pitboss_ok("skill", "preview", skill, "--json", "--home", home).json
    assert shown["at"] == "2025-06-06T00:00:00Z"
    assert "2025-06-05 23:45" in shown["user"] or "23:45" in shown["user"]
    result = pitboss_ok("skill", "preview", skill, "--home", home)
    assert "USER" in result.out
    assert "tokens" in result.err


def test_preview_refuses_an_instant_that_is_not_a_tick_or_has_no_data(home: Path, skill: Path) -> None:
    assert "2025-06-03T12:15:00Z" in pitboss_refused(
        "skill", "preview", skill, "--at", "2025-06-03T12:07:00Z", "--home", home
    )
    assert "BTC" in pitboss_refused("skill", "preview", skill, "--at", "2024-06-03", "--home", home)
    pitboss_refused("skill", "preview", skill, "--at", "soon", "--home", home)


def test_the_schema_is_a_json_document() -> None:
    schema = json.loads(pitboss_ok("skill", "schema").out)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert "risk" in schema["properties"]


def test_a_tool_for_questions_about_a_run_is_refused_before_a_backtest_would(tmp_path: Path) -> None:
    pitboss_ok("init", tmp_path)
    file = tmp_path / "trend-thesis.yaml"
    checked = pitboss("skill", "check", file, "--set", "tools.built_in=[get_recent_decisions, get_portfolio]")
    assert checked.code == 2
    assert "get_recent_decisions" in checked.err
    assert "not for an agent that decides" in checked.err
    assert "get_portfolio" not in checked.err
