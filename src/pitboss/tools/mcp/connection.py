"""One connection to a server, kept for a run: what the server says about its tools, and calling one of them.

The protocol runs in a task of its own, so that nothing a server does can cancel or break the task that decides; callers
only ever wait for a future, for as long as they choose. A server that died is connected to again at the next question.
Who may call what, and what a model gets to see of it, is the business of `guarded`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from pitboss.core.errors import TransientError
from pitboss.tools.mcp import definition as said
from pitboss.tools.mcp.definition import Definition
from pitboss.tools.mcp.server_entry import LIMITS, ServerEntry, ServerLimits
from pitboss.tools.mcp.session import Life, MakeTransport, load

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from pitboss.tools.mcp.remote import Bearer

BREAK_AFTER = 3
LONGEST_NAME = 200


@asynccontextmanager
async def connect(
    entry: ServerEntry,
    *,
    environment: Mapping[str, str],
    bearer: "Bearer | None" = None,
    transport: MakeTransport | None = None,
    limits: ServerLimits = LIMITS,
) -> AsyncIterator["Connection"]:
    """Connect, list the tools, and leave nothing behind. `TransientError` with one line where that fails.

    `environment` is all that a child gets to see: names that the entry allows, chosen by the caller. What a child wrote
    to standard error before it failed is a note of the exception: for a person, never for a model.
    """
    connection = Connection(entry, environment, bearer, transport, limits)
    failure: TransientError | None = None
    try:
        await connection.open()
        yield connection
    except TransientError as error:
        failure = error
        raise
    finally:
        await _surely(connection.close())
        if failure is not None and connection.last_words:
            failure.add_note(connection.last_words)


async def _surely(work: Coroutine[Any, Any, None]) -> None:
    """Do it to the end, however often the caller is cancelled meanwhile; all of it is bounded."""
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
    """See the module. Made by `connect`."""

    def __init__(
        self,
        entry: ServerEntry,
        environment: Mapping[str, str],
        bearer: "Bearer | None" = None,
        transport: MakeTransport | None = None,
        limits: ServerLimits = LIMITS,
    ) -> None:
        self.entry = entry
        self.slots = asyncio.Semaphore(entry.concurrency)
        self.server = self.version = self.protocol = ""
        self.skipped: list[str] = []
        """Why some of what the server listed is not among the definitions, one line each."""
        self._environment = environment
        self._bearer = bearer
        self._transport = transport
        self._limits = limits
        self._life: Life | None = None
        self._lives: list[Life] = []
        self._opening = asyncio.Lock()
        self._known: dict[str, Definition] | None = None
        self._behind: set[asyncio.Task[Any]] = set()
        self._failures = 0
        self._closed = False

    async def open(self) -> None:
        """Connect and list, in the time allowed."""
        load()
        try:
            async with asyncio.timeout(self._limits.connect_s):
                await self.definitions()
        except TimeoutError:
            raise TransientError(self._line(f"it did not answer in {self._limits.connect_s:g} s")) from None

    async def definitions(self) -> dict[str, Definition]:
        """What the server says about its tools now, by name. Read again only if it said that they changed, or died."""
        life = await self._alive()
        if self._known is None or life.changed:
            life.changed = False
            self._known = None
            self._known = await self._list(life)
        return self._known

    async def call(self, name: str, arguments: Mapping[str, Any]) -> "CallToolResult":
        """Ask the server. Bounded by nothing but the caller's patience; a cancelled call is told to the server.

        Never connects again by itself: whoever was looked at with `definitions` is asked, or nobody.
        """
        from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult, InputRequiredResult
        from pydantic import TypeAdapter

        life = self._life
        if life is None or life.over.done():
            raise TransientError(self._line("the connection is closed" if self._closed or life is None else life.why))
        request = CallToolRequest(params=CallToolRequestParams(name=name, arguments=dict(arguments)))
        answer: TypeAdapter[Any] = TypeAdapter(CallToolResult | InputRequiredResult)
        result = await self._wait(life, life.ask(request, answer))
        if isinstance(result, InputRequiredResult):
            raise TransientError(self._line("it asks for something in return, which is refused"))
        return result

    @property
    def broken(self) -> bool:
        """Whether so many questions in a row failed that another one is not worth its time in this tick."""
        return self._failures >= BREAK_AFTER

    def worked(self) -> None:
        """A question was answered."""
        self._failures = 0

    def failed(self) -> None:
        """A question was not answered. After the third in a row the connection is given up."""
        self._failures += 1
        if self.broken and self._life is not None:
            self._life.end("it stopped answering")

    def begin_tick(self) -> None:
        """A new tick: a server that was given up gets another chance."""
        self._failures = 0

    def hide(self, text: str) -> str:
        """The text without our own secret, should the server have repeated it."""
        return self._bearer.hide(text) if self._bearer else text

    @property
    def last_words(self) -> str:
        """The end of what the newest child wrote to standard error: a stranger's text, for a person to read."""
        return self._life.last_words if self._life is not None else ""

    async def close(self) -> None:
        """End everything that belongs to this connection. Goes on in the background when the caller is cancelled."""
        self._closed = True
        for task in list(self._behind):
            task.cancel()
        await asyncio.gather(*(life.close() for life in self._lives))
        if self._behind:
            await asyncio.wait(self._behind, timeout=self._limits.grace_s)

    async def _alive(self) -> Life:
        async with self._opening:
            if self._closed:
                raise TransientError(self._line("the connection is closed"))
            if self._life is None or self._life.over.done():
                self._known = None
                life = Life(self.entry, self._environment, self._bearer, self._transport, self._limits)
                self._life = life
                self._lives = [*(past for past in self._lives if not past.gone), life]
                try:
                    await self._wait(life, asyncio.shield(life.ready))
                except BaseException:
                    life.end("it did not answer")
                    raise
                self.server, self.version, self.protocol = life.server, life.version, life.protocol
            return self._life

    async def _list(self, life: Life) -> dict[str, Definition]:
        from mcp_types import ListToolsRequest, PaginatedRequestParams
        from pydantic import TypeAdapter

        listing: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])  # as it came: a pin covers every word
        found: dict[str, Definition] = {}
        twice: set[str] = set()
        self.skipped = []
        cursor: str | None = None
        listed = 0
        for _ in range(self._limits.pages):
            request = ListToolsRequest(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
            page = await self._wait(life, life.ask(request, listing))
            for raw in page.get("tools", []):
                listed += 1
                if listed > self._limits.tools:
                    raise TransientError(self._line(f"it lists more than {self._limits.tools} tools"))
                try:
                    one = said.read(life.server, life.version, raw)
                except ValueError as error:
                    self.skipped.append(f"{self.entry.id} lists {error}")
                    continue
                if one.name in found:
                    twice.add(one.name)
                found[one.name] = one
            cursor = page.get("nextCursor")
            if not cursor:
                break
        else:
            raise TransientError(self._line(f"its list of tools does not end after {self._limits.pages} pages"))
        for name in twice:
            del found[name]
            self.skipped.append(f"{self.entry.id} lists {said.shown(name, 80)!r} more than once")
        return found

    async def _wait(self, life: Life, answer: Awaitable[Any]) -> Any:
        """The answer, or `TransientError` as soon as the connection is over. Never waits for a cancelled question."""
        from mcp import MCPError
        from pydantic import ValidationError

        task = asyncio.ensure_future(answer)
        self._keep(task)
        try:
            await asyncio.wait({task, life.over}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()
        if not task.done() or task.cancelled():
            raise TransientError(self._line(life.why))
        try:
            return task.result()
        except MCPError as error:
            if life.over.done() or life.refusal:
                raise TransientError(self._line(life.why)) from None
            raise TransientError(self._line(f"it answers with error {error.code}")) from None
        except ValidationError:
            raise TransientError(self._line("its answer is not what the protocol says")) from None
        except Exception as error:  # noqa: BLE001 – whatever the library raises here, a server brought it about
            raise TransientError(self._line(f"the protocol failed ({type(error).__name__})")) from None

    def _keep(self, task: "asyncio.Future[Any]") -> None:
        if isinstance(task, asyncio.Task):
            self._behind.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: Any) -> None:
        self._behind.discard(task)
        if not task.cancelled():
            task.exception()  # seen: whoever waited has been told already

    def _line(self, why: str) -> str:
        return self.hide(said.shown(f"{self.entry.id} is not available: {why}", LONGEST_NAME).replace("\n", " "))
