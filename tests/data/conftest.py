"""An empty lake, and one that is generated once for all tests of a file."""

from pathlib import Path

import pytest
from object_lakes import make_lake

from pitboss.data.lake import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """A lake that tests only read."""
    return make_lake(tmp_path_factory.mktemp("stock") / "lake")
