"""Hostile skills and catalogues: nothing is ever started but what the catalogue names, word for word."""

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import pytest

from pitboss.core.errors import UserError
from pitboss.skill.load import check_text
from pitboss.skill.names import Names
from pitboss.tools.mcp.catalog import Catalog, load_catalog, missing_setup
from pitboss.tools.mcp.server_entry import ServerLimits
from pitboss.tools.mcp.server_process import Meter, ServerProcess, launcher_command
from pitboss.venues.perp.skill import PerpSkill

Result = TypeVar("Result")
QUICK, FULL, RUNS = 100, 10_000, 10
TRUE = shutil.which("true", path="/usr/bin:/bin") or "/bin/true"
LIMITS = ServerLimits(grace_s=0.5)
ENTRY = f"""
[servers.good]
title = "Good"
transport = "stdio"
argv = ["{TRUE}", "as", "the catalogue", "says"]
[servers.good.tools]
look = {{}}
"""
SKILL = {
    "pitboss": 1, "name": "hostile", "venue": "perp", "model": "policy/hold", "schedule": {"every": "15m"},
    "strategy": {"mode": "thesis", "thesis": "Buy low."}, "context": {"symbols": ["BTC"]},
}  # fmt: skip

EVENTS = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.startfile", "pty.spawn")
_watching: list[list[tuple[str, Any]]] = []


def _record_event(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching and event in EVENTS:
        _watching[-1].append((event, arguments))


@contextmanager
def recorded_processes() -> Iterator[list[tuple[str, Any]]]:
    """Every process that this one starts in the block."""
    seen: list[tuple[str, Any]] = []
    _watching.append(seen)
    try:
        yield seen
    finally:
        _watching.remove(seen)


class Play:
    """One round: hostile specs against a catalogue, with everything started that can be."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.rng = random.Random(seed)
        self.folder = folder
        self.canary = folder / "canary"
        self.own = folder / "own.toml"
        self.own.write_text(ENTRY)
        self.catalog = load_catalog(self.own)
        self.allowed = {name: frozenset(entry.tools) for name, entry in self.catalog.items()}
        self.started = self.refused = 0

    def payload(self) -> str:
        touch = f"touch {self.canary}"
        return self.rng.choice(
            [
                f"; {touch}", f"&& {touch}", f"| {touch}", f"$({touch})", f"`{touch}`", f"\n{touch}\n", f"' ; {touch} ; '",
                f'" ; {touch} ; "', f"> {self.canary}", f"--eval={touch}", f"-c import os; os.system('{touch}')",
                "%COMSPEC%", "${IFS}", "{python}", "{0.__class__}", "{home}", "%s%n", "~root", "*", "\x00", "a\x00b", "\r\n",
                "../../../../bin/sh", "/bin/sh", "sh", "bash -c id", "-" * 5_000, "LD_PRELOAD=/tmp/x.so", "\u202egood", "",
            ]
        )  # fmt: skip

    def name(self) -> str:
        """An id that is not one of the catalogue's, or is and means no more than that."""
        twist = {"o": "о", "g": "ɡ", "d": "ԁ", "i": "і", "e": "е"}
        return self.rng.choice(
            [
                "good", "good", "GOOD", "good ", " good", "good\n", "good\x00", "good/", "./good", "../good", "good/../good",
                "good.", "good;id", "servers.good", "good__look", "mcp_good", "good\u200b", "ｇｏｏｄ", "go\u00adod", "",
                f"good{self.payload()}", self.payload(), "a" * 10_000, "__proto__", "__class__", "time-mcp\n", "nope",
                "".join(twist.get(c, c) for c in "good"), "".join(twist.get(c, c) for c in "time-mcp"),
            ]
        )  # fmt: skip

    def value(self) -> Any:
        return self.rng.choice(
            [
                self.payload(),
                [self.payload(), self.payload()],
                {self.payload(): self.payload()},
                3,
                None,
                True,
                [],
                {},
                [[]],
            ]
        )

    def skill(self) -> str:
        """A skill that tries to bring a command along."""
        server: Any = {"id": self.name()}
        for key in self.rng.sample(
            [
                "command",
                "args",
                "argv",
                "url",
                "env",
                "transport",
                "auth",
                "cwd",
                "shell",
                "secret",
                "tools",
                "pins",
                "id",
            ],
            self.rng.choice([0, 0, 1, 2, 5]),
        ):
            server[key] = self.value()
        if self.rng.random() < 0.3:
            server["tool_filter"] = [self.payload()]
        if self.rng.random() < 0.1:
            server = self.value()
        key = self.rng.choice(["mcp_servers", "mcp_servers", "mcp_servers", "mcpServers", "mcp", "servers"])
        return json.dumps({**SKILL, "tools": {key: [server] if self.rng.random() < 0.9 else server}})

    def table(self) -> str:
        """A catalogue file written to do harm, or by mistake."""
        program = self.rng.choice(
            [TRUE, "true", "{python}", "/bin/sh", "sh", "./true", "true ", "/bin/../bin/true", self.payload()]
        )
        argv: Any = [program, *(self.payload() for _ in range(self.rng.randrange(3)))]
        if self.rng.random() < 0.2:
            argv = self.rng.choice([" ".join(argv), self.value(), [argv]])
        keys: dict[str, Any] = {
            "title": "X",
            "transport": self.rng.choice(["stdio", "stdio", "stdio", "http", self.payload()]),
        }
        keys |= {"argv": argv, "tools": {"look": {}}}
        for key in self.rng.sample(
            ["env", "shell", "cwd", "command", "url", "note", "title", "timeout_s", "pins"],
            self.rng.choice([0, 0, 1, 2]),
        ):
            keys[key] = self.value()
        if self.rng.random() < 0.2:
            keys["env"] = [
                self.rng.choice(["LD_PRELOAD", "PYTHONSTARTUP", "NODE_OPTIONS", "BASH_ENV", "A", self.payload()])
            ]
        server = self.rng.choice(["x", "x", "good", "time-mcp", self.name()])
        return f"[servers.{json.dumps(server)}]\n" + "\n".join(f"{key} = {toml(value)}" for key, value in keys.items())

    async def round(self) -> None:
        kind = self.rng.random()
        if kind < 0.5:
            check = check_text(self.skill(), ".json", PerpSkill, Names(servers=self.allowed))
            names = [one.id for one in check.skill.tools.mcp_servers] if check.skill else []
            self.refused += check.skill is None
            await self.start(self.catalog, names)
        elif kind < 0.65:
            await self.start(self.catalog, [self.name()])
        else:
            path = self.folder / "hostile.toml"
            path.write_text(self.table(), "utf-8", "surrogatepass")
            try:
                found = load_catalog(path)
            except UserError:
                self.refused += 1
                return
            await self.start(found, found.own)

    async def start(self, catalog: Catalog, names: Any) -> None:
        """Start what the names stand for, and hold what was started against the catalogue."""
        for name in names:
            try:
                entry = catalog.find(name)
            except UserError:
                self.refused += 1
                continue
            if missing_setup(entry) or entry.transport != "stdio":
                continue
            assert entry.argv[0] in (TRUE, sys.executable), "no other program of those tried may be named"
            if entry.argv[0] == sys.executable:  # what it would do with its words is its own affair
                continue
            with recorded_processes() as seen:
                child = await ServerProcess.start(entry.argv, {}, LIMITS)
                await child.close(grace_s=0.5)
            ((event, (program, argv, _, environment)),) = seen
            assert event == "subprocess.Popen"
            command = (*launcher_command(), *entry.argv)
            assert (program, tuple(argv), environment) == (command[0], command, {})
            self.started += 1


def toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {toml(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(one) for one in value) + "]"
    return '""' if value is None else json.dumps(value)


def in_watched_process(work: Callable[..., Result], *arguments: Any) -> Result:
    """Do something while `recorded_processes` records every program that is started.

    An audit hook cannot be taken out again, and would slow down every later test of this process.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads: those here hold no locks
        hook = {"initializer": sys.addaudithook, "initargs": (_record_event,)}
        with ProcessPoolExecutor(1, mp_context=get_context("fork"), **hook) as process:
            return process.submit(work, *arguments).result()


def play_rounds(count: int, seed: int, folder: Path) -> int:
    """The number of programs that were started in `count` rounds."""
    play = Play(seed, folder)

    async def rounds() -> None:
        for _ in range(count):
            await play.round()

    with recorded_processes() as seen:
        asyncio.run(rounds())
    assert seen == [], "something was started outside of the watched starts"
    assert not play.canary.exists(), "an argument was run as a command"
    assert play.refused > count / 3
    return play.started


def test_hostile_specs_start_nothing_that_the_catalogue_does_not_name(tmp_path: Path) -> None:
    assert in_watched_process(play_rounds, QUICK, 1, tmp_path) > 0, (
        "the harmless ones are started, or this shows nothing"
    )


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(RUNS))
def test_hostile_specs_start_nothing_at_length(seed: int, tmp_path: Path) -> None:
    assert in_watched_process(play_rounds, FULL // RUNS, 100 + seed, tmp_path) > 0


def start_in_three_ways() -> list[str]:
    with recorded_processes() as seen:
        subprocess.run([TRUE], check=True)
        os.waitpid(os.posix_spawn(TRUE, [TRUE], {}), 0)
        os.system(TRUE)
    return [event for event, _ in seen]


def test_the_watch_hears_processes_that_are_started() -> None:
    """The control: a deaf watch would let everything pass."""
    events = in_watched_process(start_in_three_ways)
    assert events == ["subprocess.Popen", "os.posix_spawn", "os.system"]


def test_shell_characters_in_an_argument_reach_the_program_as_they_are(tmp_path: Path) -> None:
    word = f"; touch {tmp_path / 'canary'} $(id) `id` > x"
    path = tmp_path / "own.toml"
    echo = shutil.which("echo", path="/usr/bin:/bin") or "/bin/echo"
    path.write_text(f"[servers.echo]\ntitle = 'E'\ntransport = 'stdio'\nargv = ['{echo}', {json.dumps(word)}]")

    async def play() -> bytes:
        child = await ServerProcess.start(load_catalog(path)["echo"].argv, {}, LIMITS)
        lines = [line async for line in child.lines(Meter(LIMITS, lambda why: None))]
        await child.close(grace_s=0.5)
        return lines[0]

    assert asyncio.run(play()).decode() == word
    assert not (tmp_path / "canary").exists()
