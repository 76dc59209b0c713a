"""One session with a server process or an HTTP server. A session is never restarted; `connection` makes another.

All of the protocol library runs here, in one task. Any failure that a server causes resolves the future `ended` with a
reason and never raises in another task; after the end, processes and connections are cleaned up.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from pitboss.tools.mcp.server_entry import ServerEntry, ServerLimits
from pitboss.tools.mcp.server_process import Meter, ServerProcess, message_streams

if TYPE_CHECKING:
    import httpx2
    from mcp import ClientSession

    from pitboss.tools.mcp.http_client import Bearer, MeteredTransport

TransportFactory = Callable[[bool], "httpx2.AsyncBaseTransport"]
"""Makes the transport that checks every address; the argument says whether loopback is allowed."""

_LIST_CHANGED = "notifications/tools/list_changed"


class ServerSession:
    """One session with a server, from its start to its end."""

    def __init__(
        self,
        entry: ServerEntry,
        environment: Mapping[str, str],
        bearer: "Bearer | None",
        transport: TransportFactory | None,
        limits: ServerLimits,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.ready: asyncio.Future[None] = loop.create_future()
        self.changed = False
        self.server = self.version = self.protocol = ""
        self._entry = entry
        self._environment = environment
        self._bearer = bearer
        self._transport = transport
        self._limits = limits
        self._meter = Meter(limits, self.end)
        self._end_reason = ""
        self._child: ServerProcess | None = None
        self._metered: MeteredTransport | None = None
        self._session: ClientSession | None = None
        self._starting: asyncio.Task[ServerProcess] | None = None
        self._cancel_timer: asyncio.TimerHandle | None = None
        self._clean = False
        self._task = asyncio.create_task(self._run())

    @property
    def refusal(self) -> str:
        """The HTTP-level refusal of the server, if any."""
        return self._metered.refusal if self._metered else ""

    @property
    def end_reason(self) -> str:
        """Why the session ended."""
        return self.refusal or self._end_reason or "the connection ended"

    @property
    def stderr_tail(self) -> str:
        """The end of a child's standard error."""
        return self._child.stderr_tail if self._child is not None else ""

    @property
    def is_finished(self) -> bool:
        """Whether the cleanup is done."""
        return self._task.done()

    def end(self, reason: str, *, clean: bool = False) -> None:
        """End the session at once for all waiting callers. Its own task does the cleanup."""
        self._end_reason = self._end_reason or reason
        if not self.ended.done():
            self._clean = clean
            self.ended.set_result(None)
            # An initialised session gets time to shut down; one that never initialised needs none.
            delay_s = self._limits.grace_s if self.ready.done() else 0.0
            self._cancel_timer = asyncio.get_running_loop().call_later(delay_s, self._task.cancel)

    async def ask(self, request: Any, answer: Any) -> Any:
        """Send one request to the server."""
        assert self._session is not None
        self._meter.reset()
        if self._metered:
            self._metered.refusal = ""
        return await self._session.send_request(request, answer)

    async def close(self) -> None:
        """End the session and wait for the cleanup, which continues if the caller is cancelled."""
        self.end("the connection is closed", clean=True)
        await asyncio.wait({self._task})

    async def _run(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                reader, writer = await stack.enter_async_context(self._open())
                await self._serve(stack, reader, writer)
                await asyncio.wait(
                    {self.ended}
                )  # not awaited directly: cancelling this task must not cancel the future
        except (FileNotFoundError, NotADirectoryError):
            self.end(f"there is no program {self._entry.argv[0]}" if self._entry.argv else "it cannot be started")
        except asyncio.CancelledError:
            self.end("it did not answer")  # also when the event loop is closing, so that the cleanup still runs
        except BaseException as error:  # noqa: BLE001 – every failure that a server can cause is handled here
            self.end(_reason(error))
        finally:
            self.end("the connection ended")
            if self._cancel_timer is not None:
                self._cancel_timer.cancel()
            if not self.ready.done():
                self.ready.cancel()
            await self._clean_up()

    async def _clean_up(self) -> None:
        if self._starting is not None:
            await asyncio.wait({self._starting})
        if self._child is not None:
            await self._child.close(grace_s=self._limits.grace_s if self._clean else self._limits.grace_s / 4)

    def _open(self) -> Any:
        return self._open_child() if self._entry.transport == "stdio" else self._open_remote()

    @asynccontextmanager
    async def _open_child(self) -> AsyncIterator[tuple[Any, Any]]:
        self._starting = asyncio.create_task(ServerProcess.start(self._entry.argv, self._environment, self._limits))
        self._starting.add_done_callback(self._started)  # runs also if this task is cancelled meanwhile
        child = await asyncio.shield(self._starting)
        async with message_streams(child, self._meter, self.end) as streams:
            yield streams

    def _started(self, starting: "asyncio.Task[ServerProcess]") -> None:
        if not starting.cancelled() and starting.exception() is None:
            self._child = starting.result()

    @asynccontextmanager
    async def _open_remote(self) -> AsyncIterator[tuple[Any, Any]]:
        from pitboss.tools.mcp.http_client import MeteredTransport, http_streams

        if self._transport is None:
            raise ValueError("no transport was given")
        self._metered = MeteredTransport(self._transport(self._entry.loopback), self._meter, self._limits, self._entry)
        async with http_streams(self._entry, self._metered, self._bearer, self._limits) as streams:
            yield streams

    async def _serve(self, stack: AsyncExitStack, reader: Any, writer: Any) -> None:
        import anyio
        from mcp import ClientSession, MCPError
        from mcp_types import METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION, Implementation

        filtered_in, filtered = anyio.create_memory_object_stream[Any](0)
        stack.callback(filtered_in.close)
        stack.callback(filtered.close)
        filtering = asyncio.create_task(self._filter(reader, filtered_in))
        stack.callback(filtering.cancel)
        # No callbacks: the session refuses a server's own requests (sampling, elicitation, roots).
        session = ClientSession(filtered, writer, client_info=Implementation(name="pitboss", version="1"))
        await stack.enter_async_context(session)
        try:
            await session.initialize()
        except MCPError as error:
            if error.code not in (METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION):
                raise
            await session.discover()
        info = session.server_info
        self.server, self.version = (info.name, info.version) if info else ("", "")
        self.protocol = session.protocol_version or ""
        self._session = session
        if not self.ready.done():
            self.ready.set_result(None)

    def _too_many(self, result: Mapping[str, Any]) -> bool:
        return any(isinstance(value, list) and len(value) > self._limits.parts for value in result.values())

    async def _filter(self, reader: Any, onward: Any) -> None:
        """Forward responses and requests. Notifications are dropped; only a changed tool list is noted."""
        import anyio
        from mcp_types import JSONRPCNotification, JSONRPCResponse

        try:
            async with onward:
                async for item in reader:
                    if isinstance(item, Exception):
                        within = self._meter.bad_line()
                    else:
                        within = self._meter.message()
                        if isinstance(item.message, JSONRPCNotification):
                            self.changed = self.changed or item.message.method == _LIST_CHANGED
                        elif isinstance(item.message, JSONRPCResponse) and self._too_many(item.message.result):
                            self.end(f"its answer has a list of more than {self._limits.parts} parts")
                            return
                        elif within:
                            await onward.send(item)
                    if not within:
                        return
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass
        self.end("it closed the connection")


def load() -> None:
    """Import the libraries before the timeout starts: that takes longer than most servers take to answer."""
    import jsonschema  # noqa: F401
    import mcp.client.sse
    import mcp.client.streamable_http  # noqa: F401

    _silence_library_logs()


def _reason(error: BaseException) -> str:
    """A one-line reason for an exception of the library."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    name = type(error).__name__
    reasons = {
        "MCPError": f"it answers with error {getattr(error, 'code', '')}",
        "ValidationError": "its answer is not what the protocol says",
        "RuntimeError": "it speaks no version of the protocol that we speak",
    }
    return reasons.get(name, f"the protocol failed ({name})")


def _silence_library_logs() -> None:
    """Turn off the library's logs: they hold complete server messages and tracebacks; pitboss reports one line instead."""
    for name in ("client", "mcp.client", "mcp.shared"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
