"""A workspace with a small market in it, and a skill to run there."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from answers import done
from fitting_tables import checked_tables
from market import FROM, SKILL, TO, rows, write_bars, write_funding

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace


@pytest.fixture(autouse=True)
def checked() -> Iterator[list[Sequence[str]]]:
    """The headings of the tables that were printed; each table fits into windows of 80 and 120 columns."""
    with checked_tables() as seen:
        yield seen


@pytest.fixture(scope="session")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake that was filled once; tests get copies."""
    files = tmp_path_factory.mktemp("files")
    for symbol in ("BTC", "ETH"):
        write_bars(files, symbol, rows(symbol))
        write_funding(files, symbol)
    home = tmp_path_factory.mktemp("stock")
    done("data", "import", files, "--home", home)
    return home / "lake"


@pytest.fixture
def home(tmp_path: Path, stock: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh workspace with the market in it; the folder above it is the current one."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(stock, tmp_path / "home" / "lake")
    return tmp_path / "home"


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    """A skill that needs no model."""
    path = tmp_path / "little.yaml"
    path.write_text(SKILL)
    return path


@pytest.fixture(scope="session")
def worked(tmp_path_factory: pytest.TempPathFactory, stock: Path) -> Callable[[str], tuple[Path, dict[str, Any]]]:
    """Workspaces in which a model's run was made once, with its document; tests get copies."""
    made: dict[str, tuple[Path, dict[str, Any]]] = {}

    def work(model: str) -> tuple[Path, dict[str, Any]]:
        if model not in made:
            folder = tmp_path_factory.mktemp("worked")
            shutil.copytree(stock, folder / "home" / "lake")
            (folder / "little.yaml").write_text(SKILL)
            words = ("backtest", folder / "little.yaml", "--from", FROM, "--to", TO, "--model", model, "--json")
            made[model] = folder / "home", done(*words, "--home", folder / "home").json
        return made[model]

    return work


@pytest.fixture
def finished(home: Path, worked: Callable[[str], tuple[Path, dict[str, Any]]]) -> Callable[[str], dict[str, Any]]:
    """The document of a run of three days by a model, which is in the workspace then."""

    def place(model: str) -> dict[str, Any]:
        source, run = worked(model)
        shutil.copytree(source, home, dirs_exist_ok=True, ignore=shutil.ignore_patterns("lake"))
        report = str(home / "reports" / Path(run["report"]).name)
        with open_workspace(load_settings(home)) as workspace:
            workspace.runs.set_report(run["run_id"], report)
        return {**run, "report": report}

    return place
