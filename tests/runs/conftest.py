"""A run and its bundle, made once for all tests of a file."""

import asyncio
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from bundle_files import END, FROM, KEY, TO
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core.ports import ModelReply
from pitboss.data.demo import write_demo
from pitboss.data.lake import Lake
from pitboss.runs.pack import write_bundle
from pitboss.runs.run import start
from pitboss.store.answers import Answers
from pitboss.store.runs import Run
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.testing import plain_skill


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    write_demo(Lake(folder / "lake"), days=6, end=END)
    return folder


@pytest.fixture(scope="module")
def workspace(home: Path) -> Iterator[Workspace]:
    with open_workspace(load_settings(home)) as opened:
        yield opened


@pytest.fixture(scope="module")
def run(workspace: Workspace) -> Run:
    skill = plain_skill(["BTC"], "1h", model="standin/analyst", tools={"built_in": ["get_portfolio"]})
    made = asyncio.run(start(workspace, PerpRequest(skill, FROM, TO)))
    reply = ModelReply("paid for and not used", cost_usd=Decimal("0.01"))
    asyncio.run(Answers(workspace.database, workspace.now).put(KEY, "groq/m", made.id, Decimal("0.01"), reply))
    return made


@pytest.fixture(scope="module")
def bundle_path(workspace: Workspace, run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return asyncio.run(write_bundle(workspace, run.id, tmp_path_factory.mktemp("bundle") / "run.pitboss.zip"))


@pytest.fixture
def other_workspace(tmp_path: Path) -> Iterator[Workspace]:
    with open_workspace(load_settings(tmp_path / "other")) as opened:
        yield opened
