"""The options that select the workspace, and the command lines that are suggested for it."""

import os
import sys
from pathlib import Path

import pytest
from market_files import FROM, TO
from run_command import pitboss_ok, pitboss_refused

from pitboss.terminal.workspace_options import WorkspaceOptions


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql+psycopg://me:s3cret@db.example:5432/pit", "'postgresql+psycopg://me:…@db.example:5432/pit'"),
        ("postgresql://me:p:w/@db/pit", "'postgresql://me:…@db/pit'"),
        ("postgresql://me@db/pit", "postgresql://me@db/pit"),
        ("sqlite:///runs.db", "sqlite:///runs.db"),
    ],
)
def test_a_suggested_command_line_never_contains_the_password_of_a_database(address: str, shown: str) -> None:
    assert (
        WorkspaceOptions(Path("here"), address).command_line("runs list")
        == f"pitboss runs list --home here --db {shown}"
    )


# Where the workspace is ------------------------------------------------------------------------------------------------


def test_the_workspace_is_found_upwards_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = tmp_path / "project" / "notes" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert WorkspaceOptions().settings().home == Path(".pitboss"), "there is none, so it is here"
    (tmp_path / "project" / ".pitboss").mkdir()
    (tmp_path / "project" / ".pitboss" / "settings.toml").write_text("max_gap = 7\n")
    assert WorkspaceOptions().settings().home == tmp_path / "project" / ".pitboss"
    assert WorkspaceOptions().settings().max_gap == 7
    assert str(tmp_path / "project" / ".pitboss") in pitboss_ok("runs", "list").out
    assert WorkspaceOptions(Path("mine")).settings().home == Path("mine")
    (below / ".pitboss").mkdir()
    assert WorkspaceOptions().settings().home == Path(".pitboss"), "the nearest one"


@pytest.mark.parametrize("home", [(), ("--home", "elsewhere")], ids=["default", "named"])
def test_reading_creates_no_workspace_and_names_the_one_that_it_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    name = home[1] if home else ".pitboss"
    assert (
        pitboss_ok("runs", "list", *home).out
        == f"there are no runs in the workspace {name}, which does not exist yet\n"
    )
    assert name in pitboss_ok("data", "list", *home).out
    assert pitboss_ok("jobs", "list", *home).code == 0
    for words in (("runs", "list"), ("study", "list"), ("data", "list")):
        assert pitboss_ok(*words, "--json", *home).json == []
    for words in (("runs", "show", "3f9a"), ("runs", "verify", "3f9a"), ("report", "3f9a"), ("jobs", "show", "3f9a")):
        said = pitboss_refused(*words, *home)
        assert "there is no run '3f9a'" in said
        assert f"there are no runs in {name}" in said
    assert list(tmp_path.iterdir()) == []


def test_a_workspace_that_is_a_file_is_refused_by_every_command(tmp_path: Path) -> None:
    file = tmp_path / "home"
    file.write_text("x")
    for words in (("runs", "list"), ("data", "list"), ("settings",), ("study", "list"), ("demo",)):
        assert pitboss_refused(*words, "--home", file).startswith(
            f"error: the workspace {file} is a file, not a folder\n"
        )


# Printed commands ------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shell finds the program, however the tests were started."""
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)


def test_a_printed_command_names_the_program_as_the_shell_here_must(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / ".venv" / "bin" / "pitboss"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [".venv/bin/pitboss", "demo"])
    monkeypatch.setenv("PATH", os.defpath)
    assert WorkspaceOptions(Path("demo")).command_line("runs list") == ".venv/bin/pitboss runs list --home demo"
    monkeypatch.setenv("PATH", str(program.parent))
    assert WorkspaceOptions().command_line("runs list") == "pitboss runs list"
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.setattr(sys, "argv", [str(program)])
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert WorkspaceOptions().command_line("runs list") == f"{program} runs list"


def test_the_commands_of_a_report_work_as_printed(home: Path, skill: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("backtest", skill, "--from", FROM, "--to", TO, "--model", "policy/hold", "--json")
    named = pitboss_ok(*words, "--home", "home").json
    page = Path(named["report"]).read_text("utf-8")
    command = f"pitboss runs verify {named['run_id']} --home home"
    assert f"<code>{command}</code>" in page
    assert pitboss_ok(*command.split()[1:]).out.startswith("OK ")
    home.rename(home.with_name(".pitboss"))
    page = Path(pitboss_ok(*words).json["report"]).read_text("utf-8")
    assert "--home" not in page


def test_the_first_make_demo_shows_what_it_installs() -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text("utf-8")
    installs = [line for line in makefile.splitlines() if "-r requirements.lock" in line]
    assert len(installs) == 2
    assert not [line for line in installs if " -q" in line], "pip names each package as it comes"
    for step in ("1 of 3", "2 of 3", "3 of 3"):
        assert step in makefile
