"""`.env`: which values are read, which take precedence, and what is reported."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pitboss.bootstrap.env_file import load_env_file
from pitboss.bootstrap.settings import load_settings
from pitboss.cli.main import main

CONTENT = """\
# a comment
PITBOSS_MAX_GAP=7
export PITBOSS_SCAN_S="3"
PITBOSS_LOG_LEVEL=
GROQ_API_KEY='gsk_from$FILE'
LLM_BASE_URL=http://127.0.0.1:1/v1
PATH=/nowhere
OTHER=1
"""


@pytest.fixture(autouse=True)
def restored_environment() -> Iterator[None]:
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def env_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / ".env"
    path.write_text(CONTENT)
    path.chmod(0o600)
    return path


def test_settings_and_keys_are_taken_and_nothing_else(env_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GROQ_API_KEY", "LLM_BASE_URL", "PITBOSS_LOG_LEVEL"):
        monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    assert load_env_file(env_file.parent) == ""
    added = {name: value for name, value in os.environ.items() if before.get(name) != value}
    assert added == {
        "PITBOSS_MAX_GAP": "7",
        "PITBOSS_SCAN_S": "3",
        "GROQ_API_KEY": "gsk_from$FILE",
        "LLM_BASE_URL": "http://127.0.0.1:1/v1",
    }


def test_the_environment_takes_precedence_over_the_file_and_that_over_the_settings(
    env_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (env_file.parent / "settings.toml").write_text("max_gap = 1\nscan_s = 1\nworker_runs = 1\n")
    monkeypatch.setenv("PITBOSS_SCAN_S", "9")
    load_env_file(env_file.parent)
    settings = load_settings(env_file.parent)
    assert (settings.max_gap, settings.scan_s, settings.worker_runs) == (7, 9.0, 1)


def test_a_file_that_every_user_can_read_is_named_and_its_values_are_not(
    env_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["settings"]) == 0
    assert "chmod" not in capsys.readouterr().err
    env_file.chmod(0o644)
    assert main(["settings"]) == 0
    answer = capsys.readouterr()
    assert "warning: .env can be read by every user of this machine; run: chmod 600 .env" in answer.err
    assert "gsk_from" not in answer.out + answer.err


def test_without_a_file_nothing_is_said(tmp_path: Path) -> None:
    assert load_env_file(tmp_path) == ""


def test_a_value_that_no_environment_can_hold_is_named_with_its_file(env_file: Path) -> None:
    env_file.write_text("PITBOSS_MAX_GAP='7\0'\n")
    env_file.chmod(0o600)
    assert "NUL" in load_env_file(env_file.parent)
