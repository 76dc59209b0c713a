"""A workspace with a small generated market and a queue on it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from job_workspace import END, JobWorkspace

from forked_process import forked_command
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.data.demo import write_demo
from pitboss.data.lake import Lake
from pitboss.jobs import children
from pitboss.jobs.executors import local
from pitboss.jobs.worker_settings import open_queue


@pytest.fixture(scope="session")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jobs")
    write_demo(Lake(folder / "lake"), days=5, end=END)
    return folder


@pytest.fixture
def forked_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers and children are forked. What their own start takes is the subject of other tests."""
    for module in (children, local):
        monkeypatch.setattr(module, "program", lambda *words: forked_command("-m", *words))


@pytest.fixture
def home(market: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "lake").symlink_to(market / "lake", target_is_directory=True)
    return folder


@pytest.fixture
def job_workspace(home: Path) -> Iterator[JobWorkspace]:
    settings = load_settings(home).model_copy(update={"commit_records": 4, "log_commits": True})
    with open_workspace(settings) as workspace:
        yield JobWorkspace(workspace, open_queue(workspace))
