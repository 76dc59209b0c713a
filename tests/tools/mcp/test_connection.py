"""One connection for a run: what it learns about a server, how it survives one, and how it ends."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pitboss.core.errors import TransientError
from pitboss.tools.mcp.connection import connect
from pitboss.tools.mcp.server_entry import ServerEntry, ServerLimits
from tools.mcp.mcp_connections import (
    LOOK,
    MARK,
    approved_definition,
    call_or_failure,
    checked_connection,
    guarded_tool,
    hostile_entry,
    leftover_processes,
)


def test_a_connection_knows_who_answered_and_in_which_version() -> None:
    async def visit() -> tuple[str, str, str]:
        async with checked_connection(hostile_entry("plain")) as connection:
            return connection.server, connection.version, connection.protocol

    assert asyncio.run(visit()) == ("hostile", "1", "2025-06-18")


def test_definitions_are_what_the_server_said_word_for_word() -> None:
    async def visit() -> dict[str, object]:
        async with checked_connection(hostile_entry("plain")) as connection:
            return {name: one.raw for name, one in (await connection.definitions()).items()}

    assert asyncio.run(visit()) == {"look": LOOK}


def test_definitions_are_read_once_unless_the_server_says_that_they_changed() -> None:
    async def visit(behaviour: str) -> bool:
        async with checked_connection(hostile_entry(behaviour)) as connection:
            first = await connection.definitions()
            for _ in range(300 if behaviour == "always-changing" else 5):
                await asyncio.sleep(0.01)
                if await connection.definitions() is not first:
                    return False
            return True

    assert asyncio.run(visit("plain"))
    assert not asyncio.run(visit("always-changing"))


def test_a_server_that_dies_is_started_again_three_times_in_a_tick_and_no_more(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    entry = hostile_entry("counts-starts", str(starts))

    async def visit() -> list[str]:
        async with checked_connection(entry) as connection:
            tool = guarded_tool(connection, approved_definition())
            result = [await call_or_failure(tool, {}) for _ in range(6)]
            connection.begin_tick()
            return [*result, await call_or_failure(tool, {})]

    result = asyncio.run(visit())
    died = "FAILED srv is not available: it closed the connection"
    broken = "FAILED srv is not available in this tick: it failed several times in a row"
    assert result == [died, died, died, broken, broken, broken, died]
    assert starts.read_text().count("started") == 4


def test_a_broken_server_is_not_called_again_in_the_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    async def visit() -> tuple[set[str], int]:
        calls = 0
        async with checked_connection(hostile_entry("hang-at-call", timeout_s=0.2)) as connection:
            send = connection.call

            async def counting(name: str, arguments: Mapping[str, Any]) -> Any:
                nonlocal calls
                calls += 1
                return await send(name, arguments)

            monkeypatch.setattr(connection, "call", counting)
            tool = guarded_tool(connection, approved_definition())
            for _ in range(3):
                await call_or_failure(tool, {})
            return {await call_or_failure(tool, {}) for _ in range(50)}, calls

    unavailable = "FAILED srv is not available in this tick: it failed several times in a row"
    assert asyncio.run(visit()) == ({unavailable}, 3)


def test_one_success_closes_the_account_of_failures() -> None:
    async def visit() -> bool:
        async with checked_connection(hostile_entry("plain")) as connection:
            connection.failed()
            connection.failed()
            await guarded_tool(connection, approved_definition()).call({})
            connection.failed()
            connection.failed()
            return connection.broken

    assert not asyncio.run(visit())


def test_a_closed_connection_starts_nothing_any_more() -> None:
    async def visit() -> str:
        async with connect(hostile_entry("plain"), environment=MARK) as connection:
            tool = guarded_tool(connection, approved_definition())
        return await call_or_failure(tool, {})

    assert asyncio.run(visit()) == "FAILED srv is not available: the connection is closed"
    assert leftover_processes() == []


def test_a_failure_inside_the_block_is_the_callers_and_nothing_is_left() -> None:
    async def visit() -> None:
        async with connect(hostile_entry("plain"), environment=MARK):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        asyncio.run(visit())
    assert leftover_processes() == []


def test_many_connections_at_once_do_not_disturb_each_other() -> None:
    async def visit(behaviour: str) -> str:
        try:
            async with connect(hostile_entry(behaviour, timeout_s=3.0), environment=MARK) as connection:
                return await call_or_failure(guarded_tool(connection, approved_definition()), {"word": behaviour})
        except TransientError as note:
            return str(note)

    async def all_of_them() -> list[str]:
        return await asyncio.gather(*map(visit, ["plain", "exit-at-call", "plain", "endless-garbage", "plain"]))

    result = asyncio.run(all_of_them())
    assert ["you asked {'word': 'plain'}" in words for words in result] == [True, False, True, False, True]
    assert leftover_processes() == []


def test_an_address_without_a_transport_is_refused_in_one_line() -> None:
    async def visit() -> None:
        entry = ServerEntry("srv", "x", transport="http", url="https://example.org/mcp")
        async with connect(entry, environment={}, limits=ServerLimits(grace_s=0.1)):
            pass

    with pytest.raises(TransientError, match=r"^srv is not available: "):
        asyncio.run(visit())
