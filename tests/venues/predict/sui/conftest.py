"""Machines for tests: a chain each, and one database on the fastest disk there is, emptied for each of them."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pitboss.store.database import Database, open_database


@pytest.fixture(scope="session")
def sui_database() -> Iterator[Database]:
    """A database with its schema."""
    folder = Path(tempfile.mkdtemp())
    with open_database(folder / "pitboss.db") as database:
        yield database
    shutil.rmtree(folder)


@pytest.fixture
def start(sui_database: Database) -> Callable[..., Any]:
    """Makes a machine. The one before it is gone then."""
    from venues.predict.sui.lives import Machine  # not before: this file is read where the extra is missing, too

    def made(**chain: Any) -> Machine:
        return Machine(sui_database, **chain)

    return made
