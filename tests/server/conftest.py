"""Workspaces for the tests of our own server."""

from pathlib import Path

import pytest

from pitboss.data.demo import write_demo
from pitboss.data.lake import Lake
from pitboss.server.mcp import write_tools
from pitboss.server.mcp.workspace import ServerWorkspace
from pitboss.server.tool_server import BackgroundWork
from server.workspaces import RANGE, make_server_workspace


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("market") / "lake"
    write_demo(Lake(root), days=20)
    return root


@pytest.fixture(scope="module")
def prepared_folder(tmp_path_factory: pytest.TempPathFactory, market: Path) -> Path:
    """A folder with a skill and a workspace with the demo market and two runs in it."""
    folder = tmp_path_factory.mktemp("furnished")
    server_workspace = make_server_workspace(folder, market)
    assert not write_tools.run_backtest(server_workspace, {"skill": "crossing.yaml", **RANGE}, BackgroundWork()).failed
    assert not write_tools.run_backtest(
        server_workspace, {"skill": "crossing.yaml", "set": "risk.max_total_exposure_pct=50", **RANGE}, BackgroundWork()
    ).failed
    return folder


@pytest.fixture
def server_workspace(tmp_path: Path, market: Path) -> ServerWorkspace:
    """A fresh workspace that may be changed."""
    return make_server_workspace(tmp_path, market)
