"""Where a command works, and how that is told."""

from pathlib import Path

import pytest

from pitboss.terminal.workspace_options import WorkspaceOptions


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql+psycopg://me:s3cret@db.example:5432/pit", "'postgresql+psycopg://me:…@db.example:5432/pit'"),
        ("postgresql://me:p:w/@db/pit", "'postgresql://me:…@db/pit'"),
        ("postgresql://me@db/pit", "postgresql://me@db/pit"),
        ("sqlite:///runs.db", "sqlite:///runs.db"),
    ],
)
def test_what_to_type_never_repeats_the_password_of_a_database(address: str, shown: str) -> None:
    assert WorkspaceOptions(Path("here"), address).typed("runs list") == f"pitboss runs list --home here --db {shown}"
