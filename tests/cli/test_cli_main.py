"""The program as a whole: help, exit codes, the two options that go anywhere."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclopts import App
from run_command import pitboss, pitboss_ok, pitboss_refused

from pitboss import __version__
from pitboss.cli.commands import complete_app
from pitboss.runs import first_steps, model_list
from pitboss.runs import run as runner

app = complete_app()


def commands(node: App, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command that can be typed, groups included."""
    for name, below in node.resolved_commands().items():
        if not name.startswith("-"):
            yield (*words, name)
            yield from commands(below, (*words, name))


ALL = sorted(commands(app))
GROUPS = {words[:-1] for words in ALL}


def test_every_promised_command_is_there() -> None:
    names = {" ".join(words) for words in ALL}
    runs = ["list", "show", "cancel", "resume", "verify", "export", "compare", "diff", "delete"]
    promised = ["backtest", "report", "demo", "init", "settings", "models list", "tools list", "tools show"]
    promised += [f"data {name}" for name in ("import", "list", "check", "demo")]
    promised += [f"skill {name}" for name in ("check", "preview", "schema")] + [f"runs {name}" for name in runs]
    assert set(promised) <= names


@pytest.mark.parametrize("words", [words for words in ALL if words not in GROUPS], ids=" ".join)
def test_help_of_every_command_has_an_example_of_that_command(words: tuple[str, ...]) -> None:
    answer = pitboss_ok(*words, "--help")
    _, marker, rest = answer.out.partition("For example:")
    assert marker
    assert f"pitboss {' '.join(words)}" in rest
    assert "--home" in answer.out


def test_help_loads_no_heavy_library() -> None:
    heavy = ["numpy", "polars", "sqlalchemy", "alembic", "talib", "pydantic"]
    code = f"import sys, pitboss.cli.commands; print([name for name in {heavy} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_the_version_is_printed_alone() -> None:
    assert pitboss_ok("--version").out.strip() == __version__


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["backtset"], "backtest"),
        (["runs", "lst"], "list"),
        (["data", "list", "--jsn"], "--json"),
        (["backtest", "x.yaml", "--form", "2025-06-01", "--to", "2025-06-02"], "--from"),
        (["runs", "list", "--hme", "x"], "--home"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_a_mistyped_word_gets_the_nearest_right_one(words: list[str], hint: str, tmp_path: Path) -> None:
    said = pitboss_refused(*words, "--home", tmp_path / "home")
    assert "did you mean" in said
    assert hint in said
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["backtest"],
        ["backtest", "x.yaml", "--from", "2025-06-01"],
        ["runs", "show"],
        ["runs", "export", "abc", "--what", "everything"],
        ["runs", "list", "--limit", "many"],
        ["runs", "list", "--status", "finished"],
        ["runs", "list", "extra"],
        ["--home"],
        ["tools", "show", "fetch_recent_bar"],
    ],
    ids=" ".join,
)
def test_a_mistake_in_what_was_typed_is_one_line_and_a_hint(words: list[str]) -> None:
    assert "hint: " in pitboss_refused(*words)


def test_the_workspace_may_be_named_before_or_after_the_command(home: Path) -> None:
    before = pitboss_ok("--home", home, "data", "list", "--json")
    assert before.json
    assert (
        before.out
        == pitboss_ok("data", "list", "--json", "--home", home).out
        == pitboss_ok("data", "--home", home, "list", "--json").out
    )


def test_the_database_may_be_elsewhere(home: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.db"
    assert pitboss_ok("runs", "list", "--json", "--home", home, "--db", f"sqlite:///{elsewhere}").json == []
    assert elsewhere.exists()
    assert not (home / "pitboss.db").exists()


def test_a_fault_of_the_program_is_one_line_and_exit_1(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("gears")

    monkeypatch.delenv("PITBOSS_TRACEBACK", raising=False)
    monkeypatch.setattr(model_list, "venues", broken)
    answer = pitboss("models", "list")
    assert (answer.code, answer.out) == (1, "")
    assert "RuntimeError: gears" in answer.err
    assert "Traceback" not in answer.err


def test_a_demo_that_does_not_verify_is_a_failure_and_not_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_steps, "TO", "2025-01-21")
    monkeypatch.setattr(runner, "verify", lambda workspace, run_id: ["record 3 is not as it was written"])
    answer = pitboss("demo", "--home", tmp_path)
    assert answer.code == 1
    assert "does not verify: record 3" in answer.err


def test_ctrl_c_outside_of_a_run_is_130_and_one_word(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(model_list, "venues", interrupted)
    answer = pitboss("models", "list")
    assert (answer.code, answer.out, answer.err) == (130, "", "stopped\n")


def test_ctrl_c_that_a_library_calls_its_own_failure_is_130_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def garbled() -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise SystemError("loading failed") from None

    monkeypatch.setattr(model_list, "venues", garbled)
    answer = pitboss("models", "list")
    assert (answer.code, answer.out, answer.err) == (130, "", "stopped\n")


def test_a_workspace_that_cannot_be_made_is_a_mistake_of_the_person(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "--home" in pitboss_refused("data", "demo", "--home", tmp_path / "file" / "below")


def test_settings_are_listed_with_their_meaning(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PITBOSS_MAX_GAP", "24")
    found = {one["key"]: one for one in pitboss_ok("settings", "--json", "--home", home).json}
    assert (found["max_gap"]["value"], found["max_gap"]["default"]) == ("24", "12")
    assert found["max_gap"]["variable"] == "PITBOSS_MAX_GAP"
    assert all(one["meaning"] for one in found.values())
    assert "max_gap" in pitboss_ok("settings", "--home", home).out


def test_a_bad_value_of_a_variable_is_one_line_whatever_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PITBOSS_MAX_GAP", "many")
    for words in (("settings",), ("data", "list"), ("runs", "list")):
        assert "PITBOSS_MAX_GAP: " in pitboss_refused(*words, "--home", tmp_path / "home")
    pitboss_ok("init", tmp_path / "mine")  # which needs no setting, and writes down the defaults
    assert "# max_gap = 12" in (tmp_path / "mine" / ".pitboss" / "settings.toml").read_text()


def test_an_empty_variable_counts_as_not_set(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PITBOSS_HOME", "PITBOSS_MAX_GAP"):
        monkeypatch.setenv(name, "")
    found = {one["key"]: one for one in pitboss_ok("settings", "--json").json}
    assert (found["home"]["value"], found["max_gap"]["value"]) == (".pitboss", "12")


def test_a_setting_that_does_not_exist_is_refused(home: Path) -> None:
    (home / "settings.toml").write_text("max_gab = 3\n")
    assert "max_gab" in pitboss_refused("data", "list", "--home", home)


def test_models_and_tools_are_listed() -> None:
    names = {one["name"] for one in pitboss_ok("models", "list", "--json").json}
    assert {"policy/sma_cross", "policy/hold", "policy/random", "standin/analyst"} <= names
    assert "not a language model" in pitboss_ok("models", "list").out
    tools = {one["name"]: one for one in pitboss_ok("tools", "list", "--json").json}
    assert {"fetch_recent_bars", "get_portfolio", "propose_order", "simulate_action"} <= set(tools)
    assert pitboss_ok("tools", "show", "get_portfolio", "--json").json == tools["get_portfolio"]
    assert "get_portfolio" in pitboss_ok("tools", "show", "get_portfolio").out
