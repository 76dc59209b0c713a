"""A workspace with a small market in it, and a skill to run there."""

import shutil
from pathlib import Path

import pytest
from answers import done
from market import SKILL, rows, write_bars, write_funding


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
