"""Serves the signing process on a Unix socket: for processes of the same user, in bounded lines, a few at a time."""

import asyncio
import json
import os
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from pitboss.core.errors import UserError
from pitboss.signer.protocol import MALFORMED, MOST_LINE_BYTES, refuse
from pitboss.signer.request_handler import RequestHandler

MOST_CONNECTIONS = 16
IDLE_S = 300.0
"""How long a client may send nothing, or leave a reply unread."""


@asynccontextmanager
async def serving_signer(handler: RequestHandler, path: Path) -> AsyncIterator[None]:
    """Listen at a path until the block ends. A socket that is left over from a killed process is replaced."""
    _remove_leftover(path)
    connections: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(connections) >= MOST_CONNECTIONS or not _is_same_user(writer):
            writer.close()
            return
        connections[writer] = asyncio.current_task()
        try:
            with suppress(ConnectionError, TimeoutError):
                await _converse(handler, reader, writer)
                writer.close()
                async with asyncio.timeout(IDLE_S):
                    await writer.wait_closed()  # the last replies are still being sent
        finally:
            del connections[writer]
            writer.transport.abort()

    before = os.umask(0o177)
    try:
        server = await asyncio.start_unix_server(serve, path, limit=MOST_LINE_BYTES)
    finally:
        os.umask(before)
    try:
        yield
    finally:
        server.close()
        _unlink(path)
        conversations = [task for task in connections.values() if task is not None]
        for writer in connections:
            writer.transport.abort()
        await asyncio.gather(*conversations, return_exceptions=True)  # a task that is cancelled would log a traceback


async def _converse(handler: RequestHandler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        try:
            async with asyncio.timeout(IDLE_S):
                line = await reader.readline()
        except ValueError:  # longer than the limit of the reader
            writer.write(_encoded(refuse(MALFORMED, "the line is too long").reply()))
            return
        if not line.endswith(b"\n"):
            return
        writer.write(_encoded(handler.handle(line)))
        async with asyncio.timeout(IDLE_S):
            await writer.drain()


def _encoded(reply: dict[str, object]) -> bytes:
    return json.dumps(reply, separators=(",", ":")).encode() + b"\n"


def _is_same_user(writer: asyncio.StreamWriter) -> bool:
    """Whether the peer runs under this user. Where the system does not tell, the mode of the socket file decides."""
    credentials = getattr(socket, "SO_PEERCRED", None)
    if credentials is None:
        return True
    data = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, credentials, struct.calcsize("3i"))
    return struct.unpack("3i", data)[1] == os.getuid()


def _remove_leftover(path: Path) -> None:
    """Remove a socket that no process listens on; refuse to start beside one that does."""
    if not path.exists():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            _unlink(path)
            return
        except OSError:
            raise UserError(f"{path} is no socket of a signer", "choose another --socket") from None
    raise UserError(f"a signer listens on {path} already", "stop it first, or choose another --socket")


def _unlink(path: Path) -> None:
    path.unlink(missing_ok=True)
