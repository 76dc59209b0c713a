"""`pitboss doctor` and `pitboss completion`."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from run_command import pitboss, pitboss_ok

from pitboss.runs import doctor
from pitboss.store.migrations import HEAD


def states(answer: Any) -> dict[str, str]:
    return {check["name"]: check["state"] for check in answer.json["checks"]}


def test_a_working_workspace_is_all_right_and_keys_are_named_but_not_shown(
    home: Path, finished_run: Callable[[str], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    finished_run("policy/sma_cross")
    monkeypatch.setenv("GROQ_API_KEY", "gsk-not-to-be-shown")
    words = ("doctor", "--model", "policy/hold", "--home", home)
    answer = pitboss_ok(*words, "--json")
    details = {check["name"]: check["detail"] for check in answer.json["checks"]}
    assert list(details) == ["versions", "extras", "venues", "settings", "keys", "database", "data", "disk", "model"]
    assert set(states(answer).values()) == {"ok"}
    assert answer.json["ok"] is True
    assert f"migration {HEAD} (the newest), 1 run" in details["database"]
    assert "GROQ_API_KEY (environment)" in details["keys"]
    assert "4 series" in details["data"]
    shown = pitboss_ok(*words).out
    assert "not-to-be-shown" not in answer.out + shown
    assert "versions  ok" in shown


def test_what_is_broken_is_named_with_a_hint_and_ends_with_1(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    without_key = pitboss("doctor", "--model", "groq/some-model", "--home", home, "--json")
    model = without_key.json["checks"][-1]
    assert (without_key.code, model["state"]) == (1, "fail")
    assert "GROQ_API_KEY" in model["detail"] + model["hint"]

    bad = next(home.glob("lake/bars/**/*.parquet"))
    bad.write_bytes(b"no parquet")
    (home / "pitboss.db").write_bytes(b"no database at all, but long enough to be read as one" * 50)
    monkeypatch.setattr(doctor, "NO_SPACE", 1 << 70)
    monkeypatch.setattr(doctor, "LITTLE_SPACE", 1 << 71)
    answer = pitboss("doctor", "--home", home, "--json")
    assert answer.code == 1
    assert answer.json["ok"] is False
    found = states(answer)
    assert {name for name, state in found.items() if state == "fail"} == {"database", "data", "disk"}
    hints = {check["name"]: check["hint"] for check in answer.json["checks"]}
    assert hints["data"] == "`pitboss data check`"
    assert "FAIL" in pitboss("doctor", "--home", home).out


def test_nothing_is_made_and_settings_that_cannot_be_read_are_the_last_check(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert states(pitboss_ok("doctor", "--home", home, "--json"))["data"] == "warn"
    assert not home.exists()
    home.mkdir()
    (home / "settings.toml").write_text("max_gap = 'many'\n")
    answer = pitboss("doctor", "--home", home, "--json")
    assert (answer.code, list(states(answer).items())[-1]) == (1, ("settings", "fail"))


def test_completion_knows_the_commands_of_venues(tmp_path: Path) -> None:
    script = pitboss_ok("completion", "show", "bash").out
    file = tmp_path / "folder" / "pitboss"
    assert pitboss_ok("completion", "install", "bash", "--out", file).out.strip() == str(file)
    assert file.read_text() == script.removesuffix("\n")
    ask = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _pitboss; echo "${COMPREPLY[@]}"'

    def completed(*words: str) -> list[str]:
        command = ["bash", "-c", ask, "bash", str(file), "pitboss", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    assert completed("run") == ["runs"]
    assert "list" in completed("runs", "")
    assert completed("predict", "ba") == ["backtest"]
    assert "--from" in completed("backtest", "--fr")
    assert pitboss("completion", "show", "tcsh").code == 2
