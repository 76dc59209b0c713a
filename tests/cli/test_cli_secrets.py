"""`pitboss secrets`: values come in by prompt or pipe, and nothing that was typed wrong is ever repeated."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from run_command import CommandResult, pitboss, pitboss_ok, pitboss_refused

from pitboss.bootstrap.keys import open_secrets
from pitboss.bootstrap.redact import REDACTOR, Redactor

VALUE = "gsk_canary_0123456789"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty workspace, and an environment without keys."""
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_TOKEN", "_SECRET_KEY"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture(autouse=True)
def _forget_keys() -> None:
    REDACTOR.forget()


def pipe(monkeypatch: pytest.MonkeyPatch, text: str, *words: object) -> CommandResult:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    return pitboss(*words)


def kept(home: Path, name: str) -> str | None:
    return open_secrets(home, {}.get, Redactor()).get(name)


@pytest.mark.parametrize("name", ["groq", "GROQ_API_KEY"])
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_piped_value_is_kept_and_not_shown(home: Path, monkeypatch: pytest.MonkeyPatch, name: str, end: str) -> None:
    said = pipe(monkeypatch, VALUE + end, "secrets", "set", name, "--home", home)
    assert (said.code, said.out, said.err) == (0, "", "GROQ_API_KEY is stored\n")
    assert kept(home, "GROQ_API_KEY") == VALUE
    assert "replaced" in pipe(monkeypatch, "another-value", "secrets", "set", name, "--home", home).err


def test_the_list_says_whose_a_key_is_and_since_when_and_never_its_value(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe(monkeypatch, VALUE, "secrets", "set", "groq", "--home", home)
    pipe(monkeypatch, f"{VALUE}-own", "secrets", "set", "MY_OWN_KEY", "--home", home)
    monkeypatch.setenv("GROQ_API_KEY", "another-value")
    result = pitboss_ok("secrets", "list", "--json", "--home", home)
    groq, own = result.json
    assert groq.pop("set_at").endswith("Z")
    assert groq == {
        "name": "GROQ_API_KEY",
        "providers": ["groq"],
        "hosts": ["api.groq.com"],
        "in_environment": True,
    }
    assert (own["name"], own["providers"], own["hosts"]) == ("MY_OWN_KEY", [], [])
    table = pitboss_ok("secrets", "list", "--home", home).out
    assert "api.groq.com" in table
    assert "takes precedence" in table
    assert VALUE not in result.out + table


def test_a_name_nobody_reads_and_one_the_environment_hides_are_remarked_on(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_OWN_KEY", "another-value")
    said = pipe(monkeypatch, VALUE, "secrets", "set", "MY_OWN_KEY", "--home", home).err
    assert "no provider of this version uses MY_OWN_KEY" in said
    assert "also an environment variable, which takes precedence" in said


def test_an_empty_list_is_an_empty_document(home: Path) -> None:
    assert pitboss_ok("secrets", "list", "--json", "--home", home).json == []
    assert pitboss_ok("secrets", "list", "--home", home).out == ""
    assert not home.exists()


def test_a_removed_key_is_gone(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, VALUE, "secrets", "set", "groq", "--home", home)
    assert pitboss_ok("secrets", "rm", "groq", "--home", home).err == "GROQ_API_KEY is deleted\n"
    assert kept(home, "GROQ_API_KEY") is None
    assert "no secret GROQ_API_KEY is stored" in pitboss_refused("secrets", "rm", "groq", "--home", home)


@pytest.mark.parametrize(
    "words",
    [
        ("GROQ_API_KEY", VALUE),
        (f"GROQ_API_KEY={VALUE}",),
        ("groq", "--value", VALUE),
        ("groq", f"--value={VALUE}"),
        (VALUE,),
        (VALUE, VALUE),
        ("groq", "--", VALUE),
    ],
)
def test_a_value_on_the_command_line_is_refused_and_not_repeated(
    home: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("something-else"))
    assert VALUE not in pitboss_refused("secrets", "set", *words, "--home", home)
    assert kept(home, "GROQ_API_KEY") is None


@pytest.mark.parametrize("text", ["", "\n", f"{VALUE}\nmore", "two words", "ключ-ключ"])
def test_what_cannot_be_a_key_is_refused_and_not_repeated(
    home: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    said = pitboss_refused("secrets", "set", "groq", "--home", home)
    assert not text.strip() or text.split("\n")[0] not in said
    assert not (home / "secrets.json").exists()


def test_a_key_file_others_can_read_exits_2_and_says_how_to_fix_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, VALUE, "secrets", "set", "groq", "--home", home)
    (home / "secret.key").chmod(0o644)
    said = pitboss_refused("secrets", "list", "--home", home)
    assert f"hint: chmod 600 {home / 'secret.key'}" in said


def test_a_tampered_file_exits_2_in_one_line(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe(monkeypatch, VALUE, "secrets", "set", "groq", "--home", home)
    file = home / "secrets.json"
    token = json.loads(file.read_text())
    file.write_text(json.dumps({**token, "token": token["token"][:-10] + "AAAAAAAAAA"}))
    assert "changed, or encrypted with another key" in pitboss_refused("secrets", "list", "--home", home)


def test_at_a_terminal_the_value_is_asked_for_without_being_shown(home: Path) -> None:
    pty = pytest.importorskip("pty")
    master, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "pitboss", "secrets", "set", "groq", "--home", str(home)],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=terminal,
        text=True,
        start_new_session=True,
    )
    os.close(terminal)
    shown = b""
    while b"value of GROQ_API_KEY: " not in shown:
        shown += os.read(master, 1_000)
    os.write(master, f"{VALUE}\n".encode())
    out, _ = process.communicate(timeout=60)
    try:
        while more := os.read(master, 1_000):
            shown += more
    except OSError:
        pass  # the other end is closed
    os.close(master)
    assert (process.returncode, out) == (0, "")
    assert VALUE.encode() not in shown
    assert kept(home, "GROQ_API_KEY") == VALUE
