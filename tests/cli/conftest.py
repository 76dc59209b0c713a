"""A workspace with a small market in it, and a skill to run there."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from market_files import FROM, SKILL, TO, rows, write_bars, write_funding
from run_command import pitboss_ok
from table_widths import checked_tables

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace


@pytest.fixture(autouse=True)
def table_headings() -> Iterator[list[Sequence[str]]]:
    """Check that every printed table fits into 80 and 120 columns; gives the headings of each."""
    with checked_tables() as seen:
        yield seen


@pytest.fixture(scope="session")
def stored_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake that is filled once; tests get copies."""
    files = tmp_path_factory.mktemp("files")
    for symbol in ("BTC", "ETH"):
        write_bars(files, symbol, rows(symbol))
        write_funding(files, symbol)
    home = tmp_path_factory.mktemp("stock")
    pitboss_ok("data", "import", files, "--home", home)
    return home / "lake"


@pytest.fixture
def home(tmp_path: Path, stored_lake: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh workspace with the market in it; the folder above it is the current one."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(stored_lake, tmp_path / "home" / "lake")
    return tmp_path / "home"


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    """A skill that needs no language model."""
    path = tmp_path / "little.yaml"
    path.write_text(SKILL)
    return path


@pytest.fixture(scope="session")
def model_run(
    tmp_path_factory: pytest.TempPathFactory, stored_lake: Path
) -> Callable[[str], tuple[Path, dict[str, Any]]]:
    """Executes one run by a model, once, in a workspace of its own; gives the workspace and the run's document."""
    made: dict[str, tuple[Path, dict[str, Any]]] = {}

    def work(model: str) -> tuple[Path, dict[str, Any]]:
        if model not in made:
            folder = tmp_path_factory.mktemp("worked")
            shutil.copytree(stored_lake, folder / "home" / "lake")
            (folder / "little.yaml").write_text(SKILL)
            words = ("backtest", folder / "little.yaml", "--from", FROM, "--to", TO, "--model", model, "--json")
            made[model] = folder / "home", pitboss_ok(*words, "--home", folder / "home").json
        return made[model]

    return work


@pytest.fixture
def finished_run(
    home: Path, model_run: Callable[[str], tuple[Path, dict[str, Any]]]
) -> Callable[[str], dict[str, Any]]:
    """Puts a run of three days by a model into the workspace and gives its document."""

    def place(model: str) -> dict[str, Any]:
        source, run = model_run(model)
        shutil.copytree(source, home, dirs_exist_ok=True, ignore=shutil.ignore_patterns("lake"))
        report = str(home / "reports" / Path(run["report"]).name)
        with open_workspace(load_settings(home)) as workspace:
            workspace.runs.set_report(run["run_id"], report)
        return {**run, "report": report}

    return place
