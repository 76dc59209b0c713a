"""Fixtures of tests with a live agent: a database, a forum server, and a chain whose contracts the forum lists."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sns.forum_server import RunningForum, serving
from vault_chain import VaultAccount, VaultChain, vault_chain

from pitboss.store.database import Database, open_database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with open_database(tmp_path / "pitboss.db", "several") as database:
        yield database


@pytest.fixture(scope="module")
def forum_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningForum]:
    with serving(tmp_path_factory.mktemp("forum")) as server:
        yield server


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VaultChain]:
    with vault_chain(tmp_path_factory.mktemp("forum")) as made:
        yield made


@pytest.fixture
def account(scene: VaultChain, tmp_path: Path) -> VaultAccount:
    """A new funded account of the chain."""
    return scene.account(tmp_path)
