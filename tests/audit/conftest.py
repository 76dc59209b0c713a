"""A generated market, made once."""

from pathlib import Path

import pytest

from pitboss.data.demo import write_demo
from pitboss.data.lake import Lake


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("audited")
    write_demo(Lake(home / "lake"), 7, 12)
    return home
