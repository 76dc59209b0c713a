"""Machines for tests: a new chain each, and one shared database that is emptied for each."""

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
def new_machine(sui_database: Database) -> Callable[..., Any]:
    """Creates a machine; the database of the one before is emptied."""
    from venues.predict.sui.writer_machine import (
        Machine,  # imported here: this file is also read where the extra is missing
    )

    def create(**chain: Any) -> Machine:
        return Machine(sui_database, **chain)

    return create
