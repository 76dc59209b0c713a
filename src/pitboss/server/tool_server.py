"""What our MCP servers have in common: how a tool is offered and answers, how work goes on aside, how a server is started.

Whatever a tool says goes out through one door: mistakes as errors of the tool with a hint, anything unforeseen as one
sentence without its details. Over HTTP a server listens on this machine only, and to nobody who was sent by a web page:
the Host and Origin of every request are checked.
"""

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pitboss.core.errors import BudgetExceeded, InvariantError, ToolFailed, TransientError, UserError
from pitboss.tools import arguments as shape

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.tools import Tool
    from mcp_types import CallToolResult

LOG = logging.getLogger("pitboss.server")

MOST_BODY = 1_048_576
MOST_TEXT = 60_000
LEAST_STEP = 0.01
"""A smaller step of progress is not worth a message."""
FAREWELL_S = 2
"""How long open streams may hold up the end of a server."""
PATH = "/mcp"
READERS, WORKERS = 4, 2
LOCAL = ("127.0.0.1", "localhost", "[::1]")


# Tools ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool says: words, and the same as values."""

    text: str
    values: Mapping[str, Any] | None = None
    failed: bool = False


class BackgroundWork:
    """The other end of work that goes on in a thread: it says how far it is, and is told to stop."""

    def __init__(self, tell: Callable[[float, str], None] = lambda share, words: None) -> None:
        self._tell = tell
        self._told = -1.0  # that it has begun is worth a word
        self._stopping = threading.Event()

    def progress(self, share: float, words: str = "") -> None:
        """How much is done, 0 to 1. Steps that are too small, and steps back, are not passed on."""
        if share - self._told >= LEAST_STEP or share >= 1.0 > self._told:
            self._told = share
            self._tell(share, words)

    def stop(self) -> None:
        """Ask for an end. What is done so far is kept."""
        self._stopping.set()

    def stopped(self) -> bool:
        """Whether the end was asked for."""
        return self._stopping.is_set()


@dataclass(frozen=True, slots=True)
class Offer:
    """One tool of a server. `work` is called in a thread with checked arguments.

    `reads`: changes nothing. `again`: a second call with the same arguments changes nothing more. `outside`: may talk to
    others than this machine.
    """

    name: str
    title: str
    description: str
    schema: Mapping[str, Any]
    work: Callable[[Mapping[str, Any], BackgroundWork], ToolOutput]
    reads: bool = True
    again: bool = True
    outside: bool = False


@dataclass(frozen=True, slots=True)
class Door:
    """What everything that goes out passes through: `clean` for all of it, `hide` for complaints."""

    clean: Callable[[str], str] = str
    hide: Callable[[str], str] = str


def create(name: str, title: str, version: str, about: str, offers: Sequence[Offer], door: Door) -> "MCPServer":
    """A server with these tools. Only so many work at the same time, and long work keeps nobody from looking."""
    import anyio
    from mcp.server.mcpserver import MCPServer

    lanes = {True: anyio.CapacityLimiter(READERS), False: anyio.CapacityLimiter(WORKERS)}
    server = MCPServer(
        name,
        title=title,
        version=version,
        instructions=about,
        tools=[_tool(offer, door, lanes[offer.reads]) for offer in offers],
        log_level="WARNING",
        subscriptions=False,
    )
    server.middleware.append(known_tools_only(frozenset(offer.name for offer in offers)))
    return server


def known_tools_only(names: frozenset[str]) -> Any:
    """An unknown tool is an error of the protocol (-32602); the library would make it a result."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import INVALID_PARAMS

    async def middleware(context: Any, call_next: Any) -> Any:
        name = context.params.get("name") if context.method == "tools/call" and context.params else None
        if isinstance(name, str) and name not in names:
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown tool: {name[:100]}")
        return await call_next(context)

    return middleware


def _tool(offer: Offer, door: Door, lane: Any) -> "Tool":
    from mcp.server.mcpserver.tools import Tool
    from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
    from mcp_types import ToolAnnotations
    from pydantic import ConfigDict

    class Given(ArgModelBase):
        """Any arguments as they come: they are checked against the offer's own schema, in its own words."""

        model_config = ConfigDict(extra="allow")

        def model_dump_one_level(self) -> dict[str, Any]:
            return {"given": dict(self.model_extra or {})}

    async def call(given: dict[str, Any], context: Any) -> "CallToolResult":
        return _result(await _answer(offer, given, context, lane), door)

    return Tool(
        fn=call,
        name=offer.name,
        title=offer.title,
        description=offer.description,
        parameters=dict(offer.schema),
        fn_metadata=FuncMetadata(arg_model=Given),
        is_async=True,
        context_kwarg="context",
        annotations=ToolAnnotations(
            read_only_hint=offer.reads,
            destructive_hint=False,  # nothing here overwrites or removes what is there
            idempotent_hint=offer.again,
            open_world_hint=offer.outside,
        ),
    )


async def _answer(offer: Offer, given: Mapping[str, Any], context: Any, lane: Any) -> ToolOutput:
    try:
        checked = shape.check(offer.schema, {name: _exact(value) for name, value in given.items() if value is not None})
        async with lane:
            return await aside(lambda side: _work(offer, checked, side), context)
    except ToolFailed as error:
        return ToolOutput(str(error), failed=True)


def _exact(value: Any) -> Any:
    return Decimal(repr(value)) if isinstance(value, float) else value


def _work(offer: Offer, checked: Mapping[str, Any], side: BackgroundWork) -> ToolOutput:
    try:
        return offer.work(checked, side)
    except UserError as error:
        return complaint(error.message, error.hint)
    except (ToolFailed, TransientError, BudgetExceeded, InvariantError) as error:
        return complaint(str(error))
    except Exception as error:
        told = {"fields": {"tool": offer.name, "error": type(error).__name__}}
        LOG.error("tool failed", extra=told, exc_info=True)
        return complaint(f"pitboss itself failed at {offer.name}", "this is a fault of the program; its log says more")


def complaint(message: str, hint: str = "", values: Mapping[str, Any] | None = None) -> ToolOutput:
    """What went wrong, and what to do about it."""
    told = {"error": message, **({"hint": hint} if hint else {}), **(values or {})}
    return ToolOutput(f"{message}\nhint: {hint}" if hint else message, told, failed=True)


def _result(answer: ToolOutput, door: Door) -> "CallToolResult":
    import orjson
    from mcp_types import CallToolResult, TextContent

    from pitboss.core import codec

    out: Callable[[str], str] = (lambda text: door.hide(door.clean(text))) if answer.failed else door.clean
    text = out(codec.printable(answer.text))
    if len(text) > MOST_TEXT:
        text = f"{text[:MOST_TEXT]}\n[cut: {MOST_TEXT} of {len(text)} characters shown]"
    values = (
        None
        if answer.values is None
        else orjson.loads(out(codec.dumps(codec.number_fragments(answer.values)).decode()))
    )
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=values, is_error=answer.failed
    )


async def aside(work: Callable[[BackgroundWork], ToolOutput], context: Any) -> ToolOutput:
    """Do blocking work in a thread, passing on how far it is. A call that is cancelled asks it to stop, and waits for it."""
    import anyio

    loop = asyncio.get_running_loop()
    news: asyncio.Queue[tuple[float, str] | None] = asyncio.Queue()
    side = BackgroundWork(lambda share, words: _tell(loop, news, (share, words)))
    answers: list[ToolOutput] = []

    async def thread() -> None:
        with anyio.CancelScope(shield=True):
            try:
                answers.append(await anyio.to_thread.run_sync(work, side))
            finally:
                news.put_nowait(None)

    async with anyio.create_task_group() as group:
        group.start_soon(thread)
        try:
            while (heard := await news.get()) is not None:
                share, words = heard
                await context.report_progress(round(share * 100, 1), 100.0, words or None)
        except BaseException:
            side.stop()
            raise
    return answers[0]


def _tell(loop: asyncio.AbstractEventLoop, news: asyncio.Queue[Any], heard: Any) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(news.put_nowait, heard)


# Starting ---------------------------------------------------------------------------------------------------------------


def serve(
    server: "MCPServer", http: tuple[str, int] | None = None, told: Callable[[str], object] = lambda words: None
) -> None:
    """Serve until the other side leaves: over standard input and output, or at an address of this machine."""
    import anyio

    if http is None:
        anyio.run(server.run_stdio_async)
        return
    listening = _listen(*http)
    host, port = listening.getsockname()[:2]
    told(f"listening on http://{f'[{host}]' if ':' in host else host}:{port}{PATH}")
    with listening:
        anyio.run(_over_http, server, listening)


async def _over_http(server: "MCPServer", listening: socket.socket) -> None:
    import uvicorn
    from mcp.server.transport_security import TransportSecuritySettings

    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MOST_BODY,
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=[f"{name}:*" for name in LOCAL],
            allowed_origins=[f"http://{name}:*" for name in LOCAL],
        ),
    )
    config = uvicorn.Config(app, log_level="critical", server_header=False, timeout_graceful_shutdown=FAREWELL_S)
    await uvicorn.Server(config).serve(sockets=[listening])


def read_address(text: str) -> tuple[str, int]:
    """`HOST:PORT` on this machine; port 0 takes a free one."""
    host, colon, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not colon or not bare or not port.isdecimal() or int(port) > 65_535:
        raise UserError(f"{text!r} is not HOST:PORT", "for example 127.0.0.1:8000")
    require_loopback(bare)
    return bare, int(port)


def require_loopback(host: str) -> None:
    """Refuse to listen where others could reach it: nobody logs in here."""
    if f"[{host}]" not in LOCAL and host not in LOCAL:
        raise UserError(
            f"{host} is not an address of this machine alone, and there is no login",
            "listen on 127.0.0.1, and reach it from elsewhere through a tunnel such as `ssh -L`",
        )


def _listen(host: str, port: int) -> socket.socket:
    require_loopback(host)
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(128)
    except OSError as error:
        made.close()
        raise UserError(f"cannot listen on {host}:{port}: {error.strerror}", "choose another port") from None
    return made
