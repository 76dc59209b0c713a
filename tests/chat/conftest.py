"""A workspace with a small demo market and two finished runs, made once for all tests of a file."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pitboss.bootstrap.settings import Settings, load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.chat.context import ReadContext, reading
from pitboss.core.instant import parse_instant
from pitboss.data.demo import write_demo
from pitboss.data.lake import Lake
from pitboss.runs.documents import check, read_document, store
from pitboss.runs.run import start
from pitboss.runs.venues import venue_named
from pitboss.store.runs import Run

FROM, TO = parse_instant("2025-03-27"), parse_instant("2025-03-30")
SKILL = "trend-thesis.yaml"


@pytest.fixture(scope="session")
def shared_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with two runs, created once. Copy it before writing to it."""
    home = tmp_path_factory.mktemp("chat") / "home"
    home.mkdir()
    write_demo(Lake(home / "lake"), days=12)
    perp = venue_named("perp")
    text = perp.examples()[SKILL]
    with open_workspace(load_settings(home)) as workspace:
        checked = check(text, ".yaml", workspace.settings)
        assert checked.skill is not None
        store(workspace, checked.skill)
        for overrides, model in ((("risk.max_total_exposure_pct=10",), "standin/analyst"), ((), "policy/sma_cross")):
            plain = read_document("skill", text, ".yaml", overrides, workspace.settings)
            request = perp.request_type()(
                skill=plain, from_at=FROM, to_at=TO, model=model, data_venue="demo", prompts=True
            )
            asyncio.run(start(workspace, request))
    return home


@pytest.fixture(scope="module")
def home(shared_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(shared_home, tmp_path_factory.mktemp("copy") / "home"))


@pytest.fixture(scope="module")
def settings(home: Path) -> Settings:
    return load_settings(home)


@pytest.fixture(scope="module")
def workspace(settings: Settings) -> Iterator[Workspace]:
    """The workspace as its owner has it, to know the true answers and to record what the chat costs."""
    with open_workspace(settings) as workspace:
        yield workspace


@pytest.fixture(scope="module")
def run(workspace: Workspace) -> Run:
    """The run of a stand-in for a model, with refusals."""
    return next(run for run in workspace.runs.listing().runs if run.model == "standin/analyst")


@pytest.fixture(scope="module")
def other_run(workspace: Workspace) -> Run:
    return next(run for run in workspace.runs.listing().runs if run.model == "policy/sma_cross")


@pytest.fixture
def context(settings: Settings, run: Run) -> Iterator[ReadContext]:
    with reading(settings, "local", run.id) as context:
        yield context
