"""Canary keys in the environment and in the store: after everything a person can do, no file and no output has them.

The provider that is asked is hostile: it repeats the key it got, in every way of writing it, in answers, ids and errors.
"""

import bz2
import gzip
import io
import json
import lzma
import os
import shutil
import sqlite3
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import zstandard
from aiohttp import web
from cryptography.fernet import Fernet
from pitboss_process import ENVIRONMENT, CommandResult, wait_for_exit

from forked_process import ForkedProcess
from key_encodings import ENCODINGS
from pitboss.bootstrap.logs import stop_logs
from pitboss.bootstrap.redact import REDACTOR
from pitboss.cli.main import main
from pitboss.testing.provider import HOLD, Play, body, message
from provider_thread import fake_provider
from secret_search import leaks, leaks_below, shapes

KEYS = {
    "LLM_API_KEY": "llm/Canary+9f3aQ7xZb2-LLMKEY",
    "GROQ_API_KEY": "gsk/Canary+1c8eV5mWd4-GROQKEY",
    "OPENAI_API_KEY": "sk-Canary/7b2dT9kLp6+OPENAIKEY",
}
"""The first two in the environment, the third in the store."""

ONE_HOUR = ("--from", "2025-03-20", "--to", "2025-03-20T01:00:00Z")


class CanaryWorkspace:
    """A workspace whose every key is a canary, and the output of all commands that ran in it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.master = Fernet.generate_key().decode()
        self.secrets = {**KEYS, "PITBOSS_SECRET_KEY": self.master.rstrip("=")}
        self.command_results: list[tuple[str, CommandResult]] = []
        self.environment = {
            **{name: value for name, value in ENVIRONMENT.items() if not name.startswith(("LLM_", "PITBOSS_"))},
            "LLM_API_KEY": KEYS["LLM_API_KEY"],
            "GROQ_API_KEY": KEYS["GROQ_API_KEY"],
            "PITBOSS_SECRET_KEY": self.master,
            "PITBOSS_LOG_LEVEL": "debug",
            "PITBOSS_LOG_FILE": str(home / "pitboss.log"),
            "PITBOSS_TELEMETRY": "console",
            "PITBOSS_MODEL_ATTEMPTS": "2",
        }

    def run(self, *words: object, code: int | None = 0, typed: str = "", **environment: str) -> CommandResult:
        """Type a command in this process and remember what it said. `code` None: whatever it ends in."""
        out, err = io.StringIO(), io.StringIO()
        REDACTOR.forget()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            for name in os.environ.keys() - self.environment.keys():
                patch.delenv(name)
            for name, value in {**self.environment, **environment}.items():
                patch.setenv(name, value)
            patch.setattr(sys, "stdin", io.StringIO(typed))
            ended = main([*map(str, words), "--home", str(self.home)])
            stop_logs()
        return self._remember(words, CommandResult(ended, out.getvalue(), err.getvalue()), code)

    def run_apart(self, *words: object, code: int | None = 0, **environment: str) -> CommandResult:
        """The same in a separate process: slower, and with the output of its start and its end."""
        process = ForkedProcess("-m", "pitboss", *words, "--home", self.home, env={**self.environment, **environment})
        return self._remember(words, wait_for_exit(process), code)

    def _remember(self, words: tuple[object, ...], told: CommandResult, code: int | None) -> CommandResult:
        self.command_results.append((" ".join(map(str, words)), told))
        assert code is None or told.code == code, told.err
        return told

    def leaks(self) -> list[str]:
        """Where a canary can be found."""
        found = leaks_below(self.secrets, self.home)
        for words, result in self.command_results:
            found += leaks(self.secrets, result.out.encode(), f"the output of {words}")
            found += leaks(self.secrets, result.err.encode(), f"the remarks of {words}")
        return found


@pytest.fixture
def canary_workspace(home: Path) -> CanaryWorkspace:
    """A workspace with one canary in its store."""
    made = CanaryWorkspace(home)
    made.run("secrets", "set", "OPENAI_API_KEY", typed=KEYS["OPENAI_API_KEY"])
    return made


def everything_one_can_ask_of(canary_workspace: CanaryWorkspace, run_id: str) -> None:
    """Every command that shows or writes something of a run."""
    for words in (
        ("runs", "list"),
        ("runs", "show", run_id),
        ("runs", "show", run_id, "--json"),
        ("runs", "verify", run_id),
        ("report", run_id),
    ):
        canary_workspace.run(*words, code=None)
    for what in ("fills", "equity", "receipts", "decisions", "snapshots"):
        result = canary_workspace.run("runs", "export", run_id, "--what", what, code=None)
        (canary_workspace.home / f"{what}.jsonl").write_text(result.out)
    canary_workspace.run("runs", "export", run_id, "--bundle", canary_workspace.home / f"{run_id}.bundle", code=None)


# Without a model ------------------------------------------------------------------------------------------------------


def test_runs_that_need_no_key_keep_none(canary_workspace: CanaryWorkspace, skill: Path) -> None:
    for model in ("policy/momentum", "standin/analyst"):
        run = canary_workspace.run("backtest", skill, *ONE_HOUR, "--model", model, "--json").json
        everything_one_can_ask_of(canary_workspace, run["run_id"])
    assert (canary_workspace.home / "pitboss.db").stat().st_size > 0
    assert canary_workspace.leaks() == []


def test_what_is_listed_and_what_goes_wrong_shows_no_key(canary_workspace: CanaryWorkspace, skill: Path) -> None:
    listed = canary_workspace.run("secrets", "list", "--json").json
    assert [row["name"] for row in listed] == ["OPENAI_API_KEY"]
    for words in (("secrets", "list"), ("settings", "--json"), ("models", "list", "--json"), ("data", "list")):
        canary_workspace.run(*words)
    for words in (
        ("backtest", skill, *ONE_HOUR, "--model", "nobody/none"),
        ("backtest", skill, *ONE_HOUR, "--model", "groq/"),
        ("secrets", "rm", "GROQ_API_KEY"),
        ("secrets", "set", "groq", KEYS["GROQ_API_KEY"]),
        ("secrets", "set", KEYS["GROQ_API_KEY"]),
        ("secrets", "set", f"GROQ_API_KEY={KEYS['GROQ_API_KEY']}"),
        ("secrets", "set", "groq", f"--value={KEYS['GROQ_API_KEY']}"),
        ("runs", "show", "none"),
    ):
        canary_workspace.run(*words, code=2)
    canary_workspace.command_results = [
        (words.replace(KEYS["GROQ_API_KEY"], "KEY"), result) for words, result in canary_workspace.command_results
    ]
    (canary_workspace.home / "secrets.json").write_text("garbage")
    canary_workspace.run("secrets", "list", code=2)
    canary_workspace.run("secrets", "list", code=2, PITBOSS_SECRET_KEY=f"{canary_workspace.master}-wrong")
    assert canary_workspace.leaks() == []


# With a model that repeats what it got --------------------------------------------------------------------------------


def received_key(request: web.BaseRequest) -> str:
    """The key that the provider received."""
    return request.headers.get("Authorization", "").removeprefix("Bearer ")


def key_in_all_encodings(key: str) -> str:
    """The key in every encoding."""
    return " , ".join([f"Bearer {key}", *(encode(key) for encode in ENCODINGS.values())])


async def reply_with_key(request: web.BaseRequest, question: Mapping[str, Any]) -> web.StreamResponse:
    """A valid decision that repeats the key everywhere."""
    said = key_in_all_encodings(received_key(request))
    tool = question["tools"][-1]["function"]["name"] if question.get("tools") else ""
    calls = [(tool, {**HOLD, "reason": said})] if tool else []
    plain = message(question, said, calls, id=f"id-{said}", model=f"model-{said}", system_fingerprint=said)
    return await body(plain, headers={"x-request-id": quote(said)})(request, question)


async def reply_with_escaped_key(request: web.BaseRequest, question: Mapping[str, Any]) -> web.StreamResponse:
    """The same, with every letter of the reply escaped."""
    said = "".join(f"\\u{ord(letter):04x}" for letter in received_key(request))
    plain = json.dumps(message(question, "REPEATED")).replace("REPEATED", said)
    return web.Response(text=plain, content_type="application/json")


def error_with_key(status: int) -> Play:
    """An error that repeats the key, twice as long as what is stored of an error."""

    async def play(request: web.BaseRequest, question: Mapping[str, Any]) -> web.StreamResponse:
        said = key_in_all_encodings(received_key(request))
        result = {"error": {"message": f"{'x' * 280} {said}", "type": said, "code": said, "param": said}}
        return await body(result, status, {"retry-after": "0"})(request, question)

    return play


async def html_with_key(request: web.BaseRequest, question: Mapping[str, Any]) -> web.StreamResponse:
    """An HTML page instead of JSON."""
    return web.Response(
        text=f"<html>{key_in_all_encodings(received_key(request))}</html>", status=502, content_type="text/html"
    )


async def redirect_with_key(request: web.BaseRequest, question: Mapping[str, Any]) -> web.StreamResponse:
    """A redirect with the key in its address."""
    return web.Response(status=307, headers={"Location": f"http://127.0.0.1:9/?key={quote(received_key(request))}"})


HOSTILE: dict[str, Play] = {
    "answers": reply_with_key,
    "escaped answers": reply_with_escaped_key,
    "400": error_with_key(400),
    "401": error_with_key(401),
    "404": error_with_key(404),
    "429": error_with_key(429),
    "500": error_with_key(500),
    "page": html_with_key,
    "redirect": redirect_with_key,
}


MORE_ERRORS = ("400", "404", "429", "500")
"""Errors that are read like others; `make proof` tries them too."""


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.proof] if kind in MORE_ERRORS else []) for kind in HOSTILE]
)
def test_a_provider_that_repeats_the_key_gets_it_into_no_file_and_no_output(
    canary_workspace: CanaryWorkspace, skill: Path, kind: str
) -> None:
    with fake_provider([HOSTILE[kind]]) as provider:
        words = ("backtest", skill, *ONE_HOUR, "--model", "llm/test", "--yes", "--json", "--set", "max_steps=1")
        run = canary_workspace.run_apart if kind == "answers" else canary_workspace.run
        result = run(*words, code=0 if kind == "answers" else None, LLM_BASE_URL=provider.url)
        assert provider.calls > 0
        assert {headers.get("Authorization") for headers in provider.headers} == {f"Bearer {KEYS['LLM_API_KEY']}"}
        if kind in ("answers", "401"):
            canary_workspace.run("models", "test", "llm/test", code=None, LLM_BASE_URL=provider.url)
    if kind == "answers":  # there was something to leak into
        assert '"name": "chat test"' in result.err
        assert '"model call"' in (canary_workspace.home / "pitboss.log").read_text()
    for row in canary_workspace.run("runs", "list", "--json").json:
        everything_one_can_ask_of(canary_workspace, row["run_id"])
    assert canary_workspace.leaks() == []


def test_a_kept_key_is_used_and_found_nowhere(canary_workspace: CanaryWorkspace, skill: Path) -> None:
    canary_workspace.run("secrets", "set", "llm", typed=KEYS["LLM_API_KEY"])
    with fake_provider([reply_with_key]) as provider:
        words = ("backtest", skill, *ONE_HOUR, "--model", "llm/test", "--yes", "--json", "--set", "max_steps=1")
        canary_workspace.run(*words, LLM_BASE_URL=provider.url, LLM_API_KEY="")
        assert {headers.get("Authorization") for headers in provider.headers} == {f"Bearer {KEYS['LLM_API_KEY']}"}
    for run in canary_workspace.run("runs", "list", "--json").json:
        everything_one_can_ask_of(canary_workspace, run["run_id"])
    assert canary_workspace.leaks() == []


# The search itself ----------------------------------------------------------------------------------------------------


def zipped(data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside", data)
    return file.getvalue()


def tarred(data: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        member = tarfile.TarInfo("inside")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return file.getvalue()


def in_a_database(data: bytes) -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE records (body BLOB)")
    connection.execute("INSERT INTO records VALUES (?)", (zstandard.ZstdCompressor().compress(data),))
    connection.commit()
    try:
        return connection.serialize()
    finally:
        connection.close()


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "as it is": lambda data: data,
    "zstd": zstandard.ZstdCompressor().compress,
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zip": zipped,
    "tar.gz": lambda data: gzip.compress(tarred(data)),
    "database": in_a_database,
}


@pytest.mark.parametrize("pack", PACKED)
def test_the_search_finds_every_shape_in_every_hiding_place(tmp_path: Path, pack: str) -> None:
    secret = KEYS["LLM_API_KEY"]
    for number, (form, shape) in enumerate(shapes(secret).items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "file").write_bytes(PACKED[pack](b"before " + shape + b" after"))
        assert any(f"({form})" in line for line in leaks_below({"canary": secret}, folder)), form
        assert leaks_below({"canary": "quite/another+secret-0123"}, folder) == []


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_search_finds_every_encoding_in_a_stored_reply(encoding: str) -> None:
    stored = json.dumps({"text": f"before, {ENCODINGS[encoding](KEYS['LLM_API_KEY'])}, after"}, ensure_ascii=False)
    for packed in (stored.encode(), zstandard.ZstdCompressor().compress(stored.encode())):
        assert leaks(KEYS, packed, "a record") != []


def test_the_search_finds_a_key_in_a_stored_record(canary_workspace: CanaryWorkspace, skill: Path) -> None:
    planted = skill.with_name("planted.yaml")
    shutil.copy(skill, planted)
    planted.write_text(planted.read_text().replace("Trends go on.", f"Trends go on {KEYS['GROQ_API_KEY']}."))
    canary_workspace.run("backtest", planted, *ONE_HOUR, "--prompts")
    assert any("pitboss.db" in line and "zstd" in line for line in canary_workspace.leaks())
