"""What a command loads before it works: most of a short one's time is spent on importing, so each loads only its own."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from market import FROM, TO

from pitboss.cli.commands import COMMANDS, complete_app

LIBRARIES = {"aiohttp", "mcp", "numpy", "obstore", "polars", "pydantic", "pydantic_ai", "ray", "sqlalchemy", "talib"}
POSTGRES = "sqlalchemy.dialects.postgresql"

PROGRAM = """
import json, sys
from pitboss.cli.main import run
try:
    run()
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def loaded(*words: object) -> set[str]:
    """The modules that a command has loaded by its end, in a process of its own."""
    command = [sys.executable, "-c", PROGRAM, *map(str, words)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return set(json.loads(result.stderr.splitlines()[-1]))


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["runs", "--help"], ["backtest", "--help"]], ids=" ".join)
def test_what_only_describes_the_program_loads_no_library_of_its_work(words: list[str]) -> None:
    assert not loaded(*words) & {*LIBRARIES, "asyncio"}


def test_a_command_loads_the_module_of_no_other() -> None:
    others = {f"pitboss.cli.{where.partition(':')[0]}" for name, where in COMMANDS.items() if name != "runs"}
    assert others
    assert not loaded("runs", "--help") & others
    assert not loaded("--version") & {*others, "pitboss.cli.runs"}


@pytest.mark.parametrize("words", [["runs", "list"], ["runs", "show"], ["jobs", "list"]], ids=" ".join)
def test_looking_at_runs_loads_no_market_and_no_agent(
    home: Path, finished: Callable[[str], dict[str, Any]], words: list[str]
) -> None:
    run = finished("policy/hold")["run_id"]
    found = loaded(*words, *([run] if words[-1] == "show" else []), "--home", home)
    assert "sqlalchemy" in found
    assert not found & {*LIBRARIES - {"pydantic", "sqlalchemy"}, POSTGRES}
    assert not [name for name in found if name.startswith(("pitboss.agent", "pitboss.engine", "pitboss.tools"))]


def test_a_setting_of_a_venue_loads_no_more_of_venues_than_declares_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def modules() -> set[str]:
        return {name for name in loaded("runs", "list", "--home", home) if name.startswith("pitboss.venues.")}

    assert modules() == set()
    monkeypatch.setenv("PITBOSS_PREDICT_ID", "0x1")
    declaring = {"perp", "perp.venue"}
    for venue in ("community", "predict"):
        declaring |= {venue, f"{venue}.venue", f"{venue}.settings"}
    assert modules() == {f"pitboss.venues.{name}" for name in declaring}


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
