"""One connection to a server for the duration of a run: lists the server's tools and calls them.

The protocol runs in its own task, so that a server cannot cancel or break the caller's task; callers wait for a future
with a timeout of their own. A server that died is connected to again at the next request. Permissions, and what a model
sees of a result, are decided in `guarded_tool`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from pitboss.core import codec
from pitboss.core.errors import TransientError
from pitboss.tools.mcp.definition import Definition, clean_text, read_definition
from pitboss.tools.mcp.server_entry import LIMITS, ServerEntry, ServerLimits
from pitboss.tools.mcp.session import ServerSession, TransportFactory, load

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from pitboss.tools.mcp.http_client import Bearer

MAX_FAILURES = 3
MAX_LINE_CHARS = 200


@asynccontextmanager
async def connect(
    entry: ServerEntry,
    *,
    environment: Mapping[str, str],
    bearer: "Bearer | None" = None,
    hide: Callable[[str], str] = str,
    transport: TransportFactory | None = None,
    limits: ServerLimits = LIMITS,
) -> AsyncIterator["Connection"]:
    """Connect, list the tools, and clean up at the end. Raises `TransientError` with a one-line message.

    `environment` is the complete environment of a child process; the caller chooses it from the names that the entry
    allows. `hide` removes secrets from what the server sends. The end of a failed child's standard error is added to the exception as a note: for the user, not for a model.
    """
    connection = Connection(entry, environment, bearer, hide, transport, limits)
    failure: TransientError | None = None
    try:
        await connection.open()
        yield connection
    except TransientError as error:
        failure = error
        raise
    finally:
        await _run_to_end(connection.close())
        if failure is not None and connection.stderr_tail:
            failure.add_note(connection.stderr_tail)


async def _run_to_end(work: Coroutine[Any, Any, None]) -> None:
    """Run to completion even if the caller is cancelled meanwhile; `work` must be bounded in time."""
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    await task


class Connection:
    """A connection made by `connect`."""

    def __init__(
        self,
        entry: ServerEntry,
        environment: Mapping[str, str],
        bearer: "Bearer | None" = None,
        hide: Callable[[str], str] = str,
        transport: TransportFactory | None = None,
        limits: ServerLimits = LIMITS,
    ) -> None:
        self.entry = entry
        self.hide = hide
        self.slots = asyncio.Semaphore(entry.concurrency)
        self.server = self.version = self.protocol = ""
        self.skipped: list[str] = []
        """One line for each listed tool that was left out of the definitions."""
        self._environment = environment
        self._bearer = bearer
        self._transport = transport
        self._limits = limits
        self._session: ServerSession | None = None
        self._sessions: list[ServerSession] = []
        self._opening = asyncio.Lock()
        self._definitions: dict[str, Definition] | None = None
        self._pending: set[asyncio.Task[Any]] = set()
        self._failures = 0
        self._closed = False

    async def open(self) -> None:
        """Connect and list the tools within `connect_s`."""
        load()
        try:
            async with asyncio.timeout(self._limits.connect_s):
                await self.definitions()
        except TimeoutError:
            raise TransientError(self._line(f"it did not answer in {self._limits.connect_s:g} s")) from None

    async def definitions(self) -> dict[str, Definition]:
        """The server's current tool definitions by name. Listed again only after a change notice or a reconnection."""
        session = await self._open_session()
        if self._definitions is None or session.changed:
            session.changed = False
            self._definitions = None
            self._definitions = await self._list(session)
        return self._definitions

    async def call(self, name: str, arguments: Mapping[str, Any]) -> "CallToolResult":
        """Call a tool. Has no timeout of its own; cancelling the call notifies the server.

        Never reconnects: the session whose `definitions` were checked is the one that is called.
        """
        from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult, InputRequiredResult
        from pydantic import TypeAdapter

        session = self._session
        if session is None or session.ended.done():
            raise TransientError(
                self._line("the connection is closed" if self._closed or session is None else session.end_reason)
            )
        request = CallToolRequest(params=CallToolRequestParams(name=name, arguments=dict(arguments)))
        answer: TypeAdapter[Any] = TypeAdapter(CallToolResult | InputRequiredResult)
        result = await self._wait(session, session.ask(request, answer))
        if isinstance(result, InputRequiredResult):
            raise TransientError(self._line("it asks for something in return, which is refused"))
        return result

    @property
    def broken(self) -> bool:
        """Whether so many requests in a row failed that no more are sent in this tick."""
        return self._failures >= MAX_FAILURES

    def worked(self) -> None:
        """Record a successful request."""
        self._failures = 0

    def failed(self) -> None:
        """Record a failed request. After the third in a row the session is ended."""
        self._failures += 1
        if self.broken and self._session is not None:
            self._session.end("it stopped answering")

    def begin_tick(self) -> None:
        """Reset the failure count at a new tick."""
        self._failures = 0

    @property
    def stderr_tail(self) -> str:
        """The end of the newest child's standard error: untrusted text, for the user only."""
        return self._session.stderr_tail if self._session is not None else ""

    async def close(self) -> None:
        """End all sessions of this connection. Continues in the background if the caller is cancelled."""
        self._closed = True
        for task in list(self._pending):
            task.cancel()
        await asyncio.gather(*(session.close() for session in self._sessions))
        if self._pending:
            await asyncio.wait(self._pending, timeout=self._limits.grace_s)

    async def _open_session(self) -> ServerSession:
        async with self._opening:
            if self._closed:
                raise TransientError(self._line("the connection is closed"))
            if self._session is None or self._session.ended.done():
                self._definitions = None
                session = ServerSession(self.entry, self._environment, self._bearer, self._transport, self._limits)
                self._session = session
                self._sessions = [*(past for past in self._sessions if not past.is_finished), session]
                try:
                    await self._wait(session, asyncio.shield(session.ready))
                except BaseException:
                    session.end("it did not answer")
                    raise
                self.server, self.version, self.protocol = session.server, session.version, session.protocol
            return self._session

    async def _list(self, session: ServerSession) -> dict[str, Definition]:
        from mcp_types import ListToolsRequest, PaginatedRequestParams
        from pydantic import TypeAdapter

        listing: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])  # unmodified: a pin covers every field
        definitions: dict[str, Definition] = {}
        duplicates: set[str] = set()
        self.skipped = []
        cursor: str | None = None
        listed = 0
        for _ in range(self._limits.pages):
            request = ListToolsRequest(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
            page = await self._wait(session, session.ask(request, listing))
            for raw in page.get("tools", []):
                listed += 1
                if listed > self._limits.tools:
                    raise TransientError(self._line(f"it lists more than {self._limits.tools} tools"))
                try:
                    definition = read_definition(session.server, session.version, raw)
                except ValueError as error:
                    self.skipped.append(f"{self.entry.id} lists {error}")
                    continue
                described = codec.dumps([session.server, session.version, raw]).decode()
                if self.hide(described) != described:
                    self.skipped.append(f"{self.entry.id} lists a tool whose definition holds a key of this machine")
                    continue
                if definition.name in definitions:
                    duplicates.add(definition.name)
                definitions[definition.name] = definition
            cursor = page.get("nextCursor")
            if not cursor:
                break
        else:
            raise TransientError(self._line(f"its list of tools does not end after {self._limits.pages} pages"))
        for name in duplicates:
            del definitions[name]
            self.skipped.append(f"{self.entry.id} lists {clean_text(name, 80)!r} more than once")
        return definitions

    async def _wait(self, session: ServerSession, answer: Awaitable[Any]) -> Any:
        """The answer, or `TransientError` as soon as the session ends. Never waits for a cancelled request."""
        from mcp import MCPError
        from pydantic import ValidationError

        task = asyncio.ensure_future(answer)
        self._track(task)
        try:
            await asyncio.wait({task, session.ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()
        if not task.done() or task.cancelled():
            raise TransientError(self._line(session.end_reason))
        try:
            return task.result()
        except MCPError as error:
            if session.ended.done() or session.refusal:
                raise TransientError(self._line(session.end_reason)) from None
            raise TransientError(self._line(f"it answers with error {error.code}")) from None
        except ValidationError:
            raise TransientError(self._line("its answer is not what the protocol says")) from None
        except Exception as error:  # noqa: BLE001 – any error of the library here was caused by the server
            raise TransientError(self._line(f"the protocol failed ({type(error).__name__})")) from None

    def _track(self, task: "asyncio.Future[Any]") -> None:
        if isinstance(task, asyncio.Task):
            self._pending.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: Any) -> None:
        self._pending.discard(task)
        if not task.cancelled():
            task.exception()  # marks it as retrieved; the waiting caller has already raised it

    def _line(self, why: str) -> str:
        return self.hide(clean_text(f"{self.entry.id} is not available: {why}", MAX_LINE_CHARS).replace("\n", " "))
