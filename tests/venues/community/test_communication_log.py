"""The communication log: its form, rotation, retention, damage, several instances, secrets, and the command that shows it."""

import asyncio
import io
import json
import os
import stat
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from forked_process import ForkedProcess
from key_encodings import ENCODINGS
from manual_clock import ManualClock
from pitboss.bootstrap.redact import REDACTOR, Redactor
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.cli.main import main
from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, parse_instant
from pitboss.runs.web_section import WebRequest
from pitboss.venues.community import log_reader
from pitboss.venues.community.communication_log import MOST_CONTENT_CHARS, CommunicationLog, log_folder
from pitboss.venues.community.log_reader import EntryFilter, LogPage, LogReader, follow, read_entries, read_newest
from pitboss.venues.community.web import live_pages

NOON = parse_instant("2026-03-10T12:00:00Z")


def log_of(
    folder: Path, instance: str = "one", clock: Any = None, redact: Any = None, **stamp: Any
) -> CommunicationLog:
    stamp = {"port": 8711, "pid": 77, "agent_id": "agent-1", **stamp}
    return CommunicationLog(
        folder=folder,
        clock=clock or ManualClock(NOON),
        instance_id=instance,
        redact=redact or (lambda text: text),
        **stamp,
    )


def entry_contents(folder: Path, **selected: Any) -> list[str]:
    return [entry.content for entry in read_entries(folder, EntryFilter(**selected))]


def run(*words: object) -> tuple[int, str, str]:
    """A command in this process: its code, output and remarks."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([*map(str, words)])
    return code, out.getvalue(), err.getvalue()


# Form -----------------------------------------------------------------------------------------------------------------


def test_an_entry_has_the_fields_of_the_seed(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    log.agent_to_runner('[{"action":"tx"}]', ["tx", "comment", "tx", "comment"])
    log.runner_to_agent({"type": "tx_feedback", "value": 10**30, "result": {"ok": True}}, ["tx_feedback"])
    (file,) = tmp_path.rglob("*.jsonl")
    assert file.relative_to(tmp_path).as_posix() == "one/2026-03-10.jsonl"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    sent, feedback = map(json.loads, file.read_text().splitlines())
    assert UUID(sent.pop("id")).version == UUID(feedback.pop("id")).version == 4
    stamp = {"instanceId": "one", "port": 8711, "pid": 77, "agentId": "agent-1"}
    assert sent == {
        "createdAt": "2026-03-10T12:00:00Z",
        "direction": "agent_to_runner",
        "actionTypes": ["tx", "comment"],
        **stamp,
        "content": '[{"action":"tx"}]',
    }
    assert (feedback["direction"], feedback["actionTypes"]) == ("runner_to_agent", ["tx_feedback"])
    assert json.loads(feedback["content"]) == {"type": "tx_feedback", "value": 10**30, "result": {"ok": True}}
    assert " " not in feedback["content"]


@pytest.mark.parametrize("content", ["", "a\nb\r\u2028c\0", "\ud800 half a pair", "😀é", "\x1b[2J"])
def test_any_text_is_one_line_and_is_read_back(tmp_path: Path, content: str) -> None:
    log = log_of(tmp_path)
    log.agent_to_runner(content, [content])
    log.runner_to_agent("next", [])
    assert entry_contents(tmp_path) == [content.replace("\ud800", "?"), "next"]


def test_a_long_content_is_cut_and_marked_and_a_huge_one_left_out(tmp_path: Path) -> None:
    log = log_of(tmp_path)
    log.agent_to_runner("x" * (MOST_CONTENT_CHARS + 7), [])
    log.agent_to_runner("x" * 2_000_000, [])
    cut, huge = entry_contents(tmp_path)
    assert cut == "x" * MOST_CONTENT_CHARS + " [cut: 7 more characters]"
    assert huge == "[2,000,000 characters left out]"


def test_an_instance_id_cannot_leave_the_folder(tmp_path: Path) -> None:
    for instance in ("", "../x", "a/b", ".", "x" * 200):
        with pytest.raises(ValueError, match="instance id"):
            log_of(tmp_path, instance)


# Files ----------------------------------------------------------------------------------------------------------------


def test_files_rotate_by_utc_day_and_are_deleted_after_14_days(tmp_path: Path) -> None:
    clock = ManualClock(NOON)
    first, second = log_of(tmp_path, "one", clock), log_of(tmp_path, "two", clock)
    first.agent_to_runner("day 0, one", [])
    other = tmp_path / "one" / "notes.txt"
    other.write_text("not of the log")
    for day in (1, 14, 15):
        clock.at = NOON + day * DAY_MS
        second.agent_to_runner(f"day {day}, two", [])
        assert ("day 0, one" in entry_contents(tmp_path)) == (day < 15)
    assert sorted(path.name for path in (tmp_path / "two").iterdir()) == [
        f"2026-03-{day}.jsonl" for day in (11, 24, 25)
    ]
    assert other.exists()
    clock.at += 20 * DAY_MS
    first.agent_to_runner("much later", [])
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


def test_a_torn_line_is_skipped_and_does_not_damage_the_next_entry(tmp_path: Path) -> None:
    log_of(tmp_path).agent_to_runner("first", [])
    (file,) = tmp_path.rglob("*.jsonl")
    whole = file.read_bytes()
    for cut in range(1, len(whole) + 1):
        file.write_bytes(whole + whole[:cut])
        complete = cut == len(whole)
        assert entry_contents(tmp_path) == ["first"] * (1 + complete)
    file.write_bytes(whole + whole[:50])
    log_of(tmp_path).agent_to_runner("after a restart", [])
    assert entry_contents(tmp_path) == ["first", "after a restart"]
    with file.open("ab") as handle:
        handle.write(b'{"id":"x"}\n[]\nnull\n\xff\xfe\n' + whole.replace(b"2026-03-10T", b"never-") + whole)
    assert entry_contents(tmp_path) == ["first", "after a restart", "first"]


def test_a_log_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("a file where the folder should be")
    with pytest.raises(UserError, match="communication log"):
        log_of(tmp_path).agent_to_runner("x", [])


WRITER = """
import sys
from pathlib import Path
from pitboss.bootstrap.machine import SystemClock
from pitboss.venues.community.communication_log import CommunicationLog
folder, name = sys.argv[1:]
log = CommunicationLog(folder=Path(folder), clock=SystemClock(), instance_id="shared", port=None, pid=int(name),
                       agent_id=name, redact=str)
for number in range(60):
    log.agent_to_runner(f"{name}-{number} " + "x" * 3_000, [])
"""


def test_processes_that_write_at_once_never_mix_their_lines(tmp_path: Path) -> None:
    writers = [ForkedProcess("-c", WRITER, tmp_path, name) for name in (1, 2)]
    reader, seen = LogReader(tmp_path), list[str]()
    while any(writer.poll() is None for writer in writers):
        time.sleep(0.01)
        seen += [entry.content for entry in reader.read()]
    assert [writer.wait() for writer in writers] == [0, 0]
    seen += [entry.content for entry in reader.read()]
    for writer in writers:
        writer.communicate()
    assert sorted(text.split()[0] for text in seen) == sorted(f"{name}-{at}" for name in (1, 2) for at in range(60))
    for name in (1, 2):
        assert [text.split()[0] for text in seen if text.startswith(f"{name}-")] == [f"{name}-{at}" for at in range(60)]


# Reading --------------------------------------------------------------------------------------------------------------


def write_entries(folder: Path) -> None:
    """Three instances whose entries alternate over two days."""
    clock = ManualClock(NOON)
    logs = [log_of(folder, name, clock, agent_id=f"agent-{name}") for name in ("b", "a", "c")]
    for number in range(9):
        clock.at = NOON + number * 5 * 3_600_000 + number
        log = logs[number % 3]
        if number % 2:
            log.runner_to_agent(f"entry {number}", ["tx_feedback"])
        else:
            log.agent_to_runner(f"entry {number}", ["tx", "comment"] if number % 4 else ["create_thread"])


def test_instances_are_merged_by_time_and_filtered(tmp_path: Path) -> None:
    write_entries(tmp_path)
    numbered = [f"entry {number}" for number in range(9)]
    assert entry_contents(tmp_path) == numbered
    assert entry_contents(tmp_path, direction="runner_to_agent") == numbered[1::2]
    assert entry_contents(tmp_path, agent_id="agent-a") == numbered[1::3]
    assert entry_contents(tmp_path, action_type="comment") == ["entry 2", "entry 6"]
    assert entry_contents(tmp_path, action_type="comment", agent_id="agent-c") == ["entry 2"]
    for last in (0, 1, 4, 9, 99):
        assert [entry.content for entry in LogReader(tmp_path).read(last)] == numbered[9 - min(last, 9) :]


@pytest.mark.parametrize("block", [1, 7, 300, 1 << 16])
def test_the_newest_entries_are_read_from_the_ends_of_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    write_entries(tmp_path)
    for number, path in enumerate(sorted(tmp_path.rglob("*.jsonl"))):
        with path.open("ab") as file:
            file.write(b"no entry\n" * (number % 2) + b'{"unfinished')
    monkeypatch.setattr(log_reader, "BLOCK_BYTES", block)
    numbered = [f"entry {number}" for number in range(9)][::-1]
    for most in (1, 4, 9, 99):
        page = read_newest(tmp_path, EntryFilter(), most, 1 << 20)
        assert ([entry.content for entry in page.entries], page.has_searched_all) == (numbered[:most], True)
    page = read_newest(tmp_path, EntryFilter(direction="runner_to_agent"), 99, 1 << 20)
    assert [entry.content for entry in page.entries] == numbered[1::2]
    assert read_newest(tmp_path / "nowhere", EntryFilter(), 9, 9).entries == ()


def test_the_newest_entries_are_searched_in_a_bounded_number_of_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_entries(tmp_path)
    monkeypatch.setattr(log_reader, "BLOCK_BYTES", 64)
    numbered = [f"entry {number}" for number in range(9)][::-1]
    size = sum(path.stat().st_size for path in tmp_path.rglob("*.jsonl"))
    contents_: list[str] = []
    for most_bytes in (*range(0, size, 37), size - 1):
        page = read_newest(tmp_path, EntryFilter(), 99, most_bytes)
        contents_ = [entry.content for entry in page.entries]
        assert contents_ == numbered[: len(contents_)]  # the newest, without a gap
        assert not page.has_searched_all
    assert len(contents_) == 6  # each of the three files of the first day has one of the others
    assert read_newest(tmp_path, EntryFilter(agent_id="nobody"), 99, size) == LogPage((), True)
    assert read_newest(tmp_path, EntryFilter(agent_id="nobody"), 99, size - 1) == LogPage((), False)


def test_a_day_of_many_instances_costs_a_small_part_of_each_file(tmp_path: Path) -> None:
    clock, instances = ManualClock(NOON), 100
    for number in range(instances):
        with log_of(tmp_path, f"i{number}", clock) as log:
            for turn in range(2):
                clock.at += 1
                log.agent_to_runner("x" * 20_000 if not turn else f"entry {number}", [])
    page = read_newest(tmp_path, EntryFilter(), 50, instances * log_reader.BLOCK_BYTES // 2)
    assert page.entries[0].content == f"entry {instances - 1}"
    assert (len(page.entries), page.has_searched_all) == (50, True)


def test_the_page_reads_a_bounded_part_of_the_log_and_says_what_it_has_not_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(log_folder(tmp_path))
    for number in range(1_000):
        log.agent_to_runner(f"entry {number}", ["comment"])

    def page(**values: str) -> str:
        return str(live_pages.log(WebRequest(workspace, "local", values=values)))

    with open_workspace(load_settings(tmp_path)) as workspace:
        assert "No entry matches" in page(agent="nobody")
        assert live_pages.NOT_SEARCHED not in page(agent="nobody")
        monkeypatch.setattr(live_pages, "MOST_BYTES", 100_000)
        for shown in (page(agent="nobody"), page(action="tx")):
            assert "No entry matches" in shown
            assert live_pages.NOT_SEARCHED in shown
        newest = page()
        assert "entry 999" in newest
        assert "entry 900" in newest
        assert "100 newest" in newest
        assert live_pages.NOT_SEARCHED not in newest


def test_follow_shows_the_newest_and_then_each_new_entry_once(tmp_path: Path) -> None:
    write_entries(tmp_path)

    async def watch() -> list[str]:
        shown: list[str] = []
        clock = ManualClock(NOON + 10 * DAY_MS)
        fresh = log_of(tmp_path, "fresh", clock)
        async for entry in follow(LogReader(tmp_path), last=2, poll_s=0):
            shown.append(entry.content)
            if len(shown) == 5:
                return shown
            if len(shown) >= 2:
                clock.at += DAY_MS // 2
                fresh.agent_to_runner(f"new {len(shown)}", [])
        return shown

    assert asyncio.run(watch()) == ["entry 7", "entry 8", "new 2", "new 3", "new 4"]


# Secrets --------------------------------------------------------------------------------------------------------------


def test_secrets_are_removed_by_value_wherever_they_are_and_before_anything_is_cut(tmp_path: Path) -> None:
    key = 'sk-"Canary"/7b2dT9kLp6+KEY'
    redactor = Redactor()
    redactor.add(key)
    log = log_of(tmp_path, redact=redactor.redact)
    for encode in ENCODINGS.values():
        log.runner_to_agent({"error": f"bad key {encode(key)}!", encode(key): 1}, [encode(key)])
    log.agent_to_runner("x" * (MOST_CONTENT_CHARS - 10) + key, [])
    (file,) = tmp_path.rglob("*.jsonl")
    text = file.read_text()
    assert redactor.redact(text) == text
    assert "Canary" not in text
    assert len(entry_contents(tmp_path)) == len(ENCODINGS) + 1


# The command ----------------------------------------------------------------------------------------------------------


def test_the_command_shows_filters_and_prints_json(tmp_path: Path) -> None:
    write_entries(log_folder(tmp_path))
    log_of(log_folder(tmp_path), "x", ManualClock(NOON + 9 * DAY_MS)).agent_to_runner(
        "evil \x1b[31m\n\u202etext", ["a\x07"]
    )
    code, out, _ = run("community", "log", "--home", tmp_path)
    assert (code, len(out.splitlines())) == (0, 20)
    assert "2026-03-10T12:00:00Z | agent → runner | create_thread | agent agent-b | instance b port 8711 pid 77" in out
    assert out.splitlines()[-1] == "    evil [31m text"
    assert out.replace("\n", "").isprintable()
    code, out, _ = run("community", "log", "--json", "--action", "tx_feedback", "--last", 2, "--home", tmp_path)
    assert [json.loads(line)["content"] for line in out.splitlines()] == ["entry 5", "entry 7"]
    code, out, _ = run(
        "community", "log", "--json", "--direction", "runner_to_agent", "--agent", "agent-a", "--home", tmp_path
    )
    assert [json.loads(line)["content"] for line in out.splitlines()] == ["entry 1", "entry 7"]


def test_the_command_creates_no_workspace_and_refuses_a_wrong_option(tmp_path: Path) -> None:
    home = tmp_path / "none"
    code, out, err = run("community", "log", "--home", home)
    assert (code, out) == (0, "")
    assert "no such entry" in err
    assert run("community", "log", "--json", "--home", home)[:2] == (0, "")
    assert not home.exists()
    for words in (("--last", "-1"), ("--last", "x"), ("--direction", "sideways")):
        code, _, err = run("community", "log", *words, "--home", home)
        assert code == 2
        assert words[0] in err


def test_a_secret_of_the_environment_is_not_shown_even_if_an_old_log_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "Canary-7b2dT9kLp6")
    log_of(log_folder(tmp_path)).agent_to_runner("the key is Canary-7b2dT9kLp6", [])
    try:
        for words in ((), ("--json",)):
            _, out, _ = run("community", "log", *words, "--home", tmp_path)
            assert "the key is ***" in out
    finally:
        REDACTOR.forget()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_the_command_follows_until_it_is_stopped(tmp_path: Path) -> None:
    program = ForkedProcess(
        "-m", "pitboss", "community", "log", "--follow", "--json", "--home", tmp_path, env=dict(os.environ)
    )
    assert program.stdout is not None
    log = log_of(log_folder(tmp_path))
    for text in ("one", "two"):
        log.agent_to_runner(text, [])
        assert json.loads(program.stdout.readline())["content"] == text
    program.send_signal(2)
    program.communicate(timeout=60)
    assert program.returncode == 130
