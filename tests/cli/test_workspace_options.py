"""The options that select the workspace, and the command lines that are suggested for it."""

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
def test_a_suggested_command_line_never_contains_the_password_of_a_database(address: str, shown: str) -> None:
    assert (
        WorkspaceOptions(Path("here"), address).command_line("runs list")
        == f"pitboss runs list --home here --db {shown}"
    )
