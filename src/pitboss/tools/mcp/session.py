"""One process or one session of a server, from its start to its end. It is never started again; `connection` makes another.

All of the protocol library runs in here, in one task. Whatever a server brings about ends in `over`, with a reason, and
never as an exception in somebody else's task; at the end of a life nothing of it is left.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from pitboss.tools.mcp.child import Meter, ServerProcess, speak
from pitboss.tools.mcp.server_entry import ServerEntry, ServerLimits

if TYPE_CHECKING:
    import httpx2
    from mcp import ClientSession

    from pitboss.tools.mcp.remote import Bearer, Metered

MakeTransport = Callable[[bool], "httpx2.AsyncBaseTransport"]
"""Whether this machine itself may be connected to → the transport that checks every address."""

_LIST_CHANGED = "notifications/tools/list_changed"


class Life:
    """One process or one session, from its start to its end. It is never started again."""

    def __init__(
        self,
        entry: ServerEntry,
        environment: Mapping[str, str],
        bearer: "Bearer | None",
        transport: MakeTransport | None,
        limits: ServerLimits,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.over: asyncio.Future[None] = loop.create_future()
        self.ready: asyncio.Future[None] = loop.create_future()
        self.changed = False
        self.server = self.version = self.protocol = ""
        self._entry = entry
        self._environment = environment
        self._bearer = bearer
        self._transport = transport
        self._limits = limits
        self._meter = Meter(limits, self.end)
        self._why = ""
        self._child: ServerProcess | None = None
        self._metered: Metered | None = None
        self._session: ClientSession | None = None
        self._starting: asyncio.Task[ServerProcess] | None = None
        self._hurry: asyncio.TimerHandle | None = None
        self._clean = False
        self._task = asyncio.create_task(self._run())

    @property
    def refusal(self) -> str:
        """What the server answered on the level below the protocol, if it refused."""
        return self._metered.refusal if self._metered else ""

    @property
    def why(self) -> str:
        """Why it is over."""
        return self.refusal or self._why or "the connection ended"

    @property
    def last_words(self) -> str:
        """The end of what a child wrote to standard error."""
        return self._child.last_words if self._child is not None else ""

    @property
    def gone(self) -> bool:
        """Whether nothing of it is left."""
        return self._task.done()

    def end(self, why: str, *, clean: bool = False) -> None:
        """Over, from now on, for everyone who waits. What is left is cleared away by its own task."""
        self._why = self._why or why
        if not self.over.done():
            self._clean = clean
            self.over.set_result(None)
            # A session says goodbye, for as long as it is given; one that never greeted has nobody to say it to.
            delay_s = self._limits.grace_s if self.ready.done() else 0.0
            self._hurry = asyncio.get_running_loop().call_later(delay_s, self._task.cancel)

    async def ask(self, request: Any, answer: Any) -> Any:
        """One question to the server."""
        assert self._session is not None
        self._meter.reset()
        if self._metered:
            self._metered.refusal = ""
        return await self._session.send_request(request, answer)

    async def close(self) -> None:
        """End it and wait until nothing is left. A caller who is cancelled stops the waiting and not the ending."""
        self.end("the connection is closed", clean=True)
        await asyncio.wait({self._task})

    async def _run(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                reader, writer = await stack.enter_async_context(self._open())
                await self._serve(stack, reader, writer)
                await asyncio.wait({self.over})  # not by itself: a library that cancels this task must not cancel that
        except (FileNotFoundError, NotADirectoryError):
            self.end(f"there is no program {self._entry.argv[0]}" if self._entry.argv else "it cannot be started")
        except asyncio.CancelledError:
            self.end("it did not answer")  # also when the whole loop ends: nobody else would clear away then
        except BaseException as error:  # noqa: BLE001 – whatever a server can bring about ends here and nowhere else
            self.end(_reason(error))
        finally:
            self.end("the connection ended")
            if self._hurry is not None:
                self._hurry.cancel()
            if not self.ready.done():
                self.ready.cancel()
            await self._clear()

    async def _clear(self) -> None:
        if self._starting is not None:
            await asyncio.wait({self._starting})
        if self._child is not None:
            await self._child.close(grace_s=self._limits.grace_s if self._clean else self._limits.grace_s / 4)

    def _open(self) -> Any:
        return self._open_child() if self._entry.transport == "stdio" else self._open_remote()

    @asynccontextmanager
    async def _open_child(self) -> AsyncIterator[tuple[Any, Any]]:
        self._starting = asyncio.create_task(ServerProcess.start(self._entry.argv, self._environment, self._limits))
        self._starting.add_done_callback(self._started)  # also when nobody waits for it any more
        child = await asyncio.shield(self._starting)
        async with speak(child, self._meter, self.end) as streams:
            yield streams

    def _started(self, starting: "asyncio.Task[ServerProcess]") -> None:
        if not starting.cancelled() and starting.exception() is None:
            self._child = starting.result()

    @asynccontextmanager
    async def _open_remote(self) -> AsyncIterator[tuple[Any, Any]]:
        from pitboss.tools.mcp.remote import Metered, reach

        if self._transport is None:
            raise ValueError("no transport was given")
        self._metered = Metered(self._transport(self._entry.loopback), self._meter, self._limits, self._entry)
        async with reach(self._entry, self._metered, self._bearer, self._limits) as streams:
            yield streams

    async def _serve(self, stack: AsyncExitStack, reader: Any, writer: Any) -> None:
        import anyio
        from mcp import ClientSession, MCPError
        from mcp_types import METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION, Implementation

        heard_in, heard = anyio.create_memory_object_stream[Any](0)
        stack.callback(heard_in.close)
        stack.callback(heard.close)
        sifting = asyncio.create_task(self._sift(reader, heard_in))
        stack.callback(sifting.cancel)
        # No callbacks: what a server asks of us (a model's answer, a person's, our files) is refused by the session.
        session = ClientSession(heard, writer, client_info=Implementation(name="pitboss", version="1"))
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

    async def _sift(self, reader: Any, onward: Any) -> None:
        """Hands on answers and questions. Of notifications only one matters to us, and none reaches the session."""
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
    """Load the libraries, which takes longer than most servers take to answer."""
    import jsonschema  # noqa: F401
    import mcp.client.sse
    import mcp.client.streamable_http  # noqa: F401

    _hush()


def _reason(error: BaseException) -> str:
    """The first plain cause in what a library raised."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    name = type(error).__name__
    plain = {
        "MCPError": f"it answers with error {getattr(error, 'code', '')}",
        "ValidationError": "its answer is not what the protocol says",
        "RuntimeError": "it speaks no version of the protocol that we speak",
    }
    return plain.get(name, f"the protocol failed ({name})")


def _hush() -> None:
    """The library logs what a server sends, whole and with tracebacks. We say it in one line, where it belongs."""
    for name in ("client", "mcp.client", "mcp.shared"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
