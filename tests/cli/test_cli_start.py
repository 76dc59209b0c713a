"""The modules that each command imports: most of a short command's time is imports, so each loads only its own."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from market_files import FROM, TO

from pitboss.cli.commands import COMMANDS, complete_app

LIBRARIES = {"aiohttp", "mcp", "numpy", "obstore", "polars", "pydantic", "pydantic_ai", "ray", "sqlalchemy", "talib"}
POSTGRES = "sqlalchemy.dialects.postgresql"

PROGRAM = """
import json, sys
from pitboss.cli.main import run
loaded = {}
for words in json.loads(sys.argv[1]):
    sys.argv[1:] = words
    try:
        run()
    except SystemExit as ended:
        assert not ended.code
    loaded[" ".join(words)] = sorted(sys.modules)
print(json.dumps(loaded), file=sys.stderr)
"""


def loaded(*words: object) -> set[str]:
    """The modules that a command has loaded by its end, in a process of its own."""
    return loaded_by_each(list(map(str, words)))[" ".join(map(str, words))]


def loaded_by_each(*commands: list[str]) -> dict[str, set[str]]:
    """The modules that are loaded by the end of each of several commands, one after the other in one process."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(commands)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return {words: set(modules) for words, modules in json.loads(result.stderr.splitlines()[-1]).items()}


@cache
def loaded_by_descriptions() -> dict[str, set[str]]:
    """The modules that are loaded by what only describes the program; each line loads more than the one before."""
    return loaded_by_each(["--version"], ["runs", "--help"], ["backtest", "--help"], ["--help"])


def test_what_only_describes_the_program_loads_no_library_of_its_work() -> None:
    found = loaded_by_descriptions()
    assert {words: modules & {*LIBRARIES, "asyncio"} for words, modules in found.items()} == {
        words: set() for words in found
    }


def test_a_command_loads_the_module_of_no_other() -> None:
    others = {f"pitboss.cli.{where.partition(':')[0]}" for name, where in COMMANDS.items() if name != "runs"}
    assert others
    found = loaded_by_descriptions()
    assert not found["runs --help"] & others
    assert not found["--version"] & {*others, "pitboss.cli.runs"}


def test_looking_at_runs_loads_no_market_and_no_agent(
    home: Path, finished_run: Callable[[str], dict[str, Any]]
) -> None:
    run = finished_run("policy/hold")["run_id"]
    empty = ["runs", "list", "--home", str(home.parent / "empty")]
    commands = (["runs", "list"], ["runs", "show", run], ["jobs", "list"])
    loaded = loaded_by_each(empty, *([*words, "--home", str(home)] for words in commands))
    assert not [name for name in loaded.pop(" ".join(empty)) if name.startswith("pitboss.venues.")]
    for words, found in loaded.items():
        assert "sqlalchemy" in found, words
        assert not found & {*LIBRARIES - {"pydantic", "sqlalchemy"}, POSTGRES}, words
        parts = ("pitboss.agent", "pitboss.engine", "pitboss.tools")
        assert not [name for name in found if name.startswith(parts)], words


def test_a_setting_of_a_venue_loads_no_more_of_venues_than_declares_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PITBOSS_PREDICT_ID", "0x1")
    declaring = {"perp", "perp.venue"}
    for venue in ("community", "predict"):
        declaring |= {venue, f"{venue}.venue", f"{venue}.settings"}
    found = loaded("runs", "list", "--home", home)
    assert {name for name in found if name.startswith("pitboss.venues.")} == {
        f"pitboss.venues.{name}" for name in declaring
    }


def test_a_backtest_loads_neither_the_other_venue_nor_what_reaches_out(home: Path, skill: Path) -> None:
    found = loaded("backtest", skill, "--from", FROM, "--to", TO, "--model", "policy/hold", "--home", home)
    assert {"polars", "sqlalchemy"} <= found
    assert not found & {"aiohttp", "mcp", "obstore", "pydantic_ai", "ray", POSTGRES}
    unused = ("pitboss.venues.predict", "pitboss.audit", "pitboss.jobs", "pitboss.bootstrap.model_stack")
    options = {"pitboss.venues.predict", "pitboss.venues.predict.venue", "pitboss.venues.predict.options"}
    assert not [name for name in found - options if name.startswith(unused)]


def test_every_command_is_found_under_the_name_it_gives_itself() -> None:
    assert {name: below.name[0] for name, below in complete_app().resolved_commands().items() if name in COMMANDS} == {
        name: name for name in COMMANDS
    }
