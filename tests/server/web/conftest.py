"""The web server over a workspace with the demo market and one finished run, and clients that talk to it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from pitboss.bootstrap.machine import random_hex
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.server.access.sign_in import SignIn, digest
from pitboss.server.api import run_access
from pitboss.server.app import create_app

TOKEN = "a" * 48
ADDRESS = "http://127.0.0.1:8700"


@pytest.fixture(autouse=True)
def long_page_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages wait until they are composed, however long that takes on a busy machine."""
    monkeypatch.setattr(run_access, "PATIENCE_S", 300.0)


@pytest.fixture
def no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is started for queued runs and deployments. Ask for it before the workspace, which reads the setting."""
    monkeypatch.setenv("PITBOSS_EXECUTOR", "none")


@pytest.fixture
def home(demo_home: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(demo_home, tmp_path / "home"))


@pytest.fixture
def workspace(home: Path) -> Iterator[Workspace]:
    with open_workspace(load_settings(home)) as workspace:
        yield workspace


@pytest.fixture
def anonymous(home: Path) -> Iterator[TestClient]:
    """A client without credentials."""
    app = create_app(open_workspace(load_settings(home)), SignIn(digest(TOKEN), random_hex))
    with TestClient(app, base_url=ADDRESS, follow_redirects=False) as client:
        yield client


@pytest.fixture
def client(anonymous: TestClient) -> TestClient:
    """A client of the API with the start token."""
    anonymous.headers["Authorization"] = f"Bearer {TOKEN}"
    return anonymous


@pytest.fixture
def browser_session(anonymous: TestClient) -> TestClient:
    """A client with the session that the one-time link gives."""
    assert anonymous.get(f"/start?token={TOKEN}").status_code == 303
    return anonymous
