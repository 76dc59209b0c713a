"""`pitboss users`, `pitboss tokens`, and the address that `pitboss serve` refuses."""

import io
import sys
from pathlib import Path

import pytest
from run_command import CommandResult, pitboss, pitboss_ok, pitboss_refused

from pitboss.bootstrap.accounts import Accounts, digest_of
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.store.audit_log import AuditLog
from pitboss.store.passwords import is_password

PASSWORD = "four plain words here"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def pipe(monkeypatch: pytest.MonkeyPatch, text: str, *words: object) -> CommandResult:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    return pitboss(*words)


def test_a_user_is_added_with_a_piped_password_and_changed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = pipe(monkeypatch, PASSWORD + "\n", "users", "add", "anna", "--role", "admin", "--home", home)
    assert (said.code, said.out) == (0, "")
    assert "anna is added as admin" in said.err
    pitboss_ok("users", "role", "anna", "viewer", "--home", home)
    pitboss_ok("users", "disable", "anna", "--home", home)
    (row,) = pitboss_ok("users", "list", "--json", "--home", home).json
    assert {**row, "created_at": ""} == {
        "name": "anna",
        "owner": "anna",
        "role": "viewer",
        "disabled": True,
        "created_at": "",
    }
    with open_workspace(load_settings(home)) as workspace:
        user = Accounts(workspace).users.get("anna")
        assert user is not None
        assert is_password(PASSWORD, user.password)
        entries = AuditLog(workspace.database, workspace.now).listing()
    assert [(entry.action, entry.object, entry.address) for entry in entries] == [
        ("users disable", "anna", "terminal"),
        ("users role", "anna", "terminal"),
        ("users add", "anna", "terminal"),
    ]


def test_a_password_on_the_command_line_is_refused_and_never_repeated(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (
        ("users", "add", "anna", PASSWORD, "--role", "admin"),
        ("users", "add", "anna", "--role", "admin", f"--password={PASSWORD}"),
        ("users", "password", "anna", PASSWORD),
    ):
        said = pitboss_refused(*words, "--home", home)
        assert PASSWORD not in said
    short = pipe(monkeypatch, "too short", "users", "add", "anna", "--role", "admin", "--home", home)
    assert short.code == 2
    assert "at least 12 characters" in short.err
    assert "too short" not in short.err


def test_a_token_is_printed_once_and_stored_by_its_digest(home: Path) -> None:
    created = pitboss_ok("tokens", "create", "nightly", "--role", "author", "--days", 30, "--json", "--home", home).json
    listed = pitboss_ok("tokens", "list", "--json", "--home", home)
    assert created["token"] not in listed.out
    assert [(row["id"], row["role"], row["state"]) for row in listed.json] == [(created["id"], "author", "valid")]
    with open_workspace(load_settings(home)) as workspace:
        assert Accounts(workspace).tokens.find(digest_of(created["token"])) is not None
    pitboss_ok("tokens", "revoke", created["id"], "--home", home)
    assert pitboss_ok("tokens", "list", "--json", "--home", home).json[0]["state"] == "revoked"
    assert "there is no user 'ghost'" in pitboss_refused("tokens", "create", "x", "--user", "ghost", "--home", home)
    assert "there is no token" in pitboss_refused("tokens", "revoke", "none", "--home", home)


def test_a_token_is_limited_to_scopes_that_the_server_has(home: Path) -> None:
    words = ("tokens", "create", "nightly", "--scope", "runs:read", "--scope", "costs:read")
    created = pitboss_ok(*words, "--json", "--home", home).json
    assert created["scopes"] == ["costs:read", "runs:read"]
    assert "costs:read runs:read" in " ".join(pitboss_ok("tokens", "list", "--home", home).out.split())
    said = pitboss_refused("tokens", "create", "x", "--scope", "everything", "--home", home)
    assert "there is no scope 'everything'" in said
    assert "runs:write" in said


def test_an_address_that_other_machines_reach_is_refused_without_a_password(home: Path) -> None:
    said = pitboss_refused("serve", "--host", "0.0.0.0", "--port", 0, "--home", home)
    assert "no user has a password" in said
    assert "pitboss users add NAME --role admin" in said
