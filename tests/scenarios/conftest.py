"""A workspace with the demo market in it, and a skill for the stand-in."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pitboss_process import provider_environment, run_in_process

from pitboss.data.demo import write_demo
from pitboss.data.lake import Lake
from pitboss.testing.provider import FakeProvider

RANGE = ("--from", "2025-03-20", "--to", "2025-03-21T12:00:00Z")
SKILL = """\
pitboss: 1
name: story
venue: perp
model: standin/analyst
schedule: {every: 15m}
strategy: {mode: thesis, thesis: Trends go on., avoid: Ranges.}
tools: {built_in: [fetch_recent_bars, get_portfolio, simulate_action]}
context: {symbols: [SOL, BTC, ETH], bars_interval: 15m, bars_lookback: 40}
"""


@pytest.fixture(scope="session")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo market, generated once."""
    root = tmp_path_factory.mktemp("market") / "lake"
    write_demo(Lake(root), days=20)
    return root


@pytest.fixture
def home(tmp_path: Path, market: Path) -> Path:
    """A fresh workspace."""
    shutil.copytree(market, tmp_path / "home" / "lake")
    return tmp_path / "home"


@pytest.fixture(scope="session")
def uninterrupted_digest(tmp_path_factory: pytest.TempPathFactory, market: Path) -> str:
    """The digest of the backtest of `SKILL` when it is not interrupted."""
    folder = tmp_path_factory.mktemp("undisturbed")
    shutil.copytree(market, folder / "home" / "lake")
    (folder / "story.yaml").write_text(SKILL)
    return run_in_process("backtest", folder / "story.yaml", *RANGE, "--json", "--home", folder / "home").json["digest"]


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    """A skill that asks the stand-in every quarter of an hour."""
    path = tmp_path / "story.yaml"
    path.write_text(SKILL)
    return path


@pytest.fixture
def lend_credentials(monkeypatch: pytest.MonkeyPatch) -> Callable[[FakeProvider], None]:
    """Sets the variables of a provider for commands that run in the process of the test."""

    def lend(server: FakeProvider) -> None:
        for name, value in provider_environment(server).items():
            monkeypatch.setenv(name, value)

    return lend
