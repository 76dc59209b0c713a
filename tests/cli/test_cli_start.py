"""The modules that each command imports: most of a short command's time is imports, so each loads only its own.

Also the help lines that are printed without importing their commands.
"""

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from market_files import FROM, TO

from pitboss.cli.commands import COMMANDS, complete_app
from pitboss.runs.venues import installed

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


def command_modules() -> set[str]:
    """The modules that the commands of pitboss itself are imported from."""
    modules = {f"pitboss.cli.{entry.target.partition(':')[0]}" for entry in COMMANDS.values()}
    assert len(modules) > 20
    return modules


@cache
def loaded_by_descriptions() -> dict[str, set[str]]:
    """The modules that are loaded by what only describes the program; each line loads more than the one before."""
    return loaded_by_each(["--version"], ["--help"], ["runs", "--help"], ["backtest", "--help"])


def test_what_only_describes_the_program_loads_no_library_of_its_work() -> None:
    found = loaded_by_descriptions()
    assert {words: modules & {*LIBRARIES, "asyncio"} for words, modules in found.items()} == {
        words: set() for words in found
    }


def test_a_command_loads_the_module_of_no_other() -> None:
    found = loaded_by_descriptions()["runs --help"]
    assert "pitboss.cli.runs" in found
    assert not found & (command_modules() - {"pitboss.cli.runs"})


def test_the_help_of_the_program_loads_no_command_of_pitboss_and_of_venues_only_their_definitions() -> None:
    found = loaded_by_descriptions()["--help"]
    assert not found & command_modules()
    assert {name for name in found if name.startswith("pitboss.venues.")} == {
        f"pitboss.venues.{name}" for venue in ("community", "perp", "predict") for name in (venue, f"{venue}.venue")
    }


def test_the_version_loads_nothing_that_commands_share() -> None:
    shared = {"importlib.metadata", "pitboss.bootstrap.logs", "pitboss.runs", "pitboss.terminal.screen"}
    found = loaded_by_descriptions()["--version"]
    assert not found & {*command_modules(), *shared}


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


def test_the_help_line_of_every_command_is_the_first_paragraph_of_its_own_help() -> None:
    commands = complete_app().resolved_commands()
    own = {name: inspect.cleandoc(commands[name].help).split("\n\n")[0].replace("\n", " ") for name in COMMANDS}
    assert {name: entry.help_line for name, entry in COMMANDS.items()} == own


IMPORTED_LATER = """
import contextlib, io, json, sys
from pitboss.cli.commands import complete_app
from pitboss.cli.main import main

def printed(*words):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(words) == 0
    return out.getvalue()

before = printed("--help")
imported = "pitboss.cli.demo" in sys.modules
command = printed("demo", "--help")
complete_app().resolved_commands()
print(json.dumps([before, imported, command, printed("--help")]))
"""


def output(code: str, **environment: str) -> str:
    """What a program prints in a process of its own."""
    command = [sys.executable, "-c", code]
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True, env={**os.environ, **environment}
    )
    return result.stdout


def test_the_help_is_the_same_before_and_after_all_commands_are_imported() -> None:
    before, imported, command, after = json.loads(output(IMPORTED_LATER))
    assert not imported
    assert before == after
    assert not [name for name in (*COMMANDS, *installed(), "bench") if f"\n│ {name} " not in before]
    assert "For example:" in command  # its own help, not only its line in that of the program


def test_a_venue_that_cannot_be_loaded_is_listed_with_the_reason(tmp_path: Path) -> None:
    metadata = tmp_path / "half-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: half\nVersion: 1\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text("[pitboss.venues]\nhalf = half_venue:VENUE\n", encoding="utf-8")
    program = "import sys; from pitboss.cli.main import main; sys.exit(main(['--help']))"
    shown = output(program, PYTHONPATH=str(tmp_path), COLUMNS="200")
    assert "half         Not available: the venue half cannot be loaded: No module named 'half_venue'." in shown
    assert "perp         Commands of the perp venue" in shown


def test_the_end_of_the_program_looks_for_no_garbage() -> None:
    code = "import atexit, gc, sys; from pitboss.cli.main import run; sys.argv[1:] = ['--version']"
    assert int(output(f"{code}; atexit.register(lambda: print(gc.get_freeze_count())); run()").split()[-1]) > 1_000
