"""A server as a child process: what it gets, what it may say, and that nothing of it is left."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from forked_process import ForkedProcess
from pitboss.core.errors import TransientError
from pitboss.tools.mcp import server_process
from pitboss.tools.mcp.connection import connect
from pitboss.tools.mcp.server_entry import ServerEntry, ServerLimits
from pitboss.tools.mcp.server_process import Meter, ServerProcess
from tools.mcp.mcp_connections import (
    LIMITS,
    MARK,
    PYTHON,
    approved_definition,
    call_or_failure,
    checked_connection,
    guarded_tool,
    hostile_entry,
    leftover_processes,
    running_process,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what is left is found in /proc")


def process_output(argv: tuple[str, ...], limits: ServerLimits = LIMITS) -> tuple[list[bytes], list[str], str]:
    """The lines of a process, why they ended, and the end of its standard error."""
    why: list[str] = []

    async def listen() -> tuple[list[bytes], str]:
        child = await ServerProcess.start(argv, MARK, limits)
        lines = [line async for line in child.lines(Meter(limits, why.append))]
        await child.close(grace_s=0.2)
        return lines, child.stderr_tail

    lines, last = asyncio.run(listen())
    return lines, why, last


def script(code: str) -> tuple[str, ...]:
    return (*PYTHON, "-c", textwrap.dedent(code))


def test_a_child_sees_the_given_variables_an_empty_directory_and_its_argv_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary")

    async def look() -> Any:
        async with checked_connection(hostile_entry("environment", "$(id) ; rm -rf *")) as connection:
            result = await connection.call("look", {})
            return json.loads(result.content[0].text)

    variables, directory, files, argv = asyncio.run(look())
    assert set(variables) - {"LC_CTYPE"} == set(MARK)  # the interpreter sets LC_CTYPE itself
    assert Path(directory).name.startswith("pitboss-mcp-")
    assert files == []
    assert argv[-1] == "$(id) ; rm -rf *"
    assert not Path(directory).exists()


def test_lines_are_whole_however_they_arrive() -> None:
    lines, why, _ = process_output(
        script("""
            import os, time
            for part in (b"on", b"e\\ntwo\\n", b"three\\n\\nfi", b"ve"):
                os.write(1, part); time.sleep(0.02)
            """)
    )
    assert lines == [b"one", b"two", b"three", b""]  # what has no end is no message
    assert why == []


def test_a_line_may_be_as_long_as_allowed_and_not_one_byte_longer() -> None:
    limits = ServerLimits(line_bytes=100_000, grace_s=0.2)
    code = "import os\nfor _ in range(20): os.write(1, b'x' * 10_000)"
    assert process_output(script(code.replace("20", "10")), limits)[1] == []
    assert process_output(script(code), limits)[1] == ["it sent a message of more than 100000 bytes"]


def test_only_the_end_of_standard_error_is_kept() -> None:
    _, _, last = process_output(script("import os\nfor n in range(3000): os.write(2, b'%06d ' % n)"))
    assert last.endswith("002998 002999")
    assert len(last) < 2 * LIMITS.stderr_bytes + 65_536


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        ((), "cannot be started|protocol failed"),
        (("/no/such/program",), "there is no program /no/such/program"),
        (("/",), "failed"),
        (("echo\0x",), "there is no program"),
    ],
)
def test_what_cannot_be_started_is_one_line(argv: tuple[str, ...], why: str) -> None:
    async def visit() -> None:
        async with connect(ServerEntry("srv", "x", argv=argv), environment={}, limits=LIMITS):
            pass

    with pytest.raises(TransientError, match=f"^srv is not available: .*({why})"):
        asyncio.run(visit())


def test_a_cancelled_run_leaves_no_process() -> None:
    async def run() -> None:
        reached = asyncio.Event()

        async def stay() -> None:
            async with connect(hostile_entry("ignores-sigterm"), environment=MARK, limits=LIMITS):
                reached.set()
                await asyncio.sleep(60)

        task = asyncio.create_task(stay())
        await reached.wait()
        assert leftover_processes() != []
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    assert leftover_processes() == []


@pytest.mark.parametrize("moment", [0.0, 0.001, 0.01, 0.03, 0.06])
def test_cancelled_while_it_starts_it_leaves_no_process(moment: float) -> None:
    async def run() -> None:
        async def stay() -> None:
            async with connect(hostile_entry("plain"), environment=MARK, limits=LIMITS):
                await asyncio.sleep(60)

        task = asyncio.create_task(stay())
        await asyncio.sleep(moment)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()  # a second time, while it clears away
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    assert leftover_processes() == []


def test_an_event_loop_that_ends_around_a_connection_leaves_no_process() -> None:
    async def run() -> None:
        manager = connect(hostile_entry("ignores-sigterm"), environment=MARK, limits=LIMITS)
        await manager.__aenter__()  # and never left: the loop cancels what still runs

    asyncio.run(run())
    assert leftover_processes() == []


def test_a_question_that_is_cancelled_leaves_the_connection_usable() -> None:
    async def run() -> str:
        async with checked_connection(hostile_entry("plain")) as connection:
            tool = guarded_tool(connection, approved_definition())
            first = asyncio.create_task(tool.call({"word": "one"}))
            await asyncio.sleep(0)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            return await call_or_failure(tool, {"word": "two"})

    assert "you asked {'word': 'two'}" in asyncio.run(run())


KILLED_HARD = """
    import asyncio, os, sys
    from pitboss.tools.mcp.connection import connect
    from pitboss.tools.mcp.server_entry import ServerEntry

    async def main():
        async with connect(ServerEntry("srv", "x", argv=tuple(sys.argv[2:])), environment={"PITBOSS_TEST_MARK": sys.argv[1]}):
            print("connected", flush=True)
            await asyncio.sleep(60)

    asyncio.run(main())
"""


@contextmanager
def program_with_killed_process(*argv: str, victim: Callable[[int], int] = int) -> Iterator[None]:
    """A program with a connection to a server, of which one process is killed: the program itself if none is named."""
    with ForkedProcess("-c", textwrap.dedent(KILLED_HARD), MARK["PITBOSS_TEST_MARK"], *argv) as program:
        try:
            assert program.stdout
            assert program.stdout.readline() == "connected\n"
            assert leftover_processes() != []
            os.kill(victim(program.pid), signal.SIGKILL)
            yield
        finally:
            program.kill()


def all_processes_ended() -> bool:
    """Whether every process of a server ends, before a test would be taken for hanging."""
    deadline = time.monotonic() + 30
    while leftover_processes() and time.monotonic() < deadline:
        time.sleep(0.02)
    return not leftover_processes()


@pytest.mark.parametrize("behaviour", ["plain", "ignores-sigterm", "grandchildren", "daemons"])
def test_a_server_and_everything_it_started_end_with_a_program_that_is_killed_hard(behaviour: str) -> None:
    with program_with_killed_process(*hostile_entry(behaviour).argv):
        assert all_processes_ended()


def test_a_server_ends_with_the_process_that_watches_over_it() -> None:
    def watcher(program: int) -> int:
        (pid,) = (Path("/proc") / str(program) / "task" / str(program) / "children").read_text().split()
        return int(pid)

    with program_with_killed_process(*hostile_entry("ignores-sigterm").argv, victim=watcher):
        assert all_processes_ended()


def test_what_was_left_behind_nevertheless_ends_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with running_process(sys.executable, "-c", "pass") as gone:
        gone.wait()
    directory = tmp_path / f"pitboss-mcp-{gone.pid}-x"
    directory.mkdir()
    with subprocess.Popen((*PYTHON, "-c", "input()"), cwd=directory, stdin=subprocess.PIPE) as orphan:
        server_process.kill_orphans.cache_clear()
        server_process.kill_orphans()
        assert orphan.wait(30) == -signal.SIGKILL
    assert not directory.exists()


def test_a_server_gets_default_signals_and_its_exit_is_seen() -> None:
    lines, _, last = process_output(
        script(
            """
            import os, signal, sys
            print([signal.getsignal(name) == signal.SIG_DFL for name in (signal.SIGTERM, signal.SIGPIPE, signal.SIGHUP)])
            sys.exit("the last word")
            """
        )
    )
    assert lines == [b"[True, False, True]"]  # the interpreter ignores SIGPIPE itself
    assert last == "the last word"
