"""The socket of the signing process: clients that do not read their replies do not block others."""

import asyncio
import json
import select
import socket
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pitboss.signer import server
from pitboss.signer.server import MOST_CONNECTIONS, serving_signer

LIMIT_S = 5
HANDLER: Any = SimpleNamespace(handle=lambda line: {"text": "x" * 10_000})


@pytest.mark.parametrize("lines", [1_000, 25], ids=["more than the buffers hold", "what the buffers hold"])
def test_clients_that_never_read_are_disconnected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: int) -> None:
    async def story(stack: ExitStack) -> None:
        path, loop, poll = tmp_path / "socket", asyncio.get_running_loop(), select.poll()
        async with asyncio.timeout(LIMIT_S), serving_signer(HANDLER, path):
            for _ in range(MOST_CONNECTIONS):
                client = stack.enter_context(socket.socket(socket.AF_UNIX))
                client.setblocking(False)
                await loop.sock_connect(client, str(path))
                await loop.sock_sendall(client, b"{}\n" * lines)
                poll.register(client, 0)  # reports nothing but that the other side is closed
            while len(poll.poll(0)) < MOST_CONNECTIONS:  # noqa: ASYNC110 - poll says it
                await asyncio.sleep(0)
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(b"{}\n")
            assert json.loads(await reader.readline()) == HANDLER.handle(b"")
            writer.close()

    monkeypatch.setattr(server, "IDLE_S", 0.02)
    with ExitStack() as stack:
        asyncio.run(story(stack))


def test_at_its_end_no_conversation_is_left_to_be_cancelled(tmp_path: Path) -> None:
    async def story() -> None:
        path = tmp_path / "socket"
        async with asyncio.timeout(LIMIT_S):
            async with serving_signer(HANDLER, path):
                reader, writer = await asyncio.open_unix_connection(path)
                writer.write(b"{}\n")
                await reader.readline()
            assert asyncio.all_tasks() == {asyncio.current_task()}
            assert await reader.read() == b""
            writer.close()

    asyncio.run(story())
