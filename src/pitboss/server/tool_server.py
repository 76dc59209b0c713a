"""The part that pitboss's MCP servers share: declaring tools, running their work in threads, and serving.

All output of a tool passes one filter. Expected errors become tool errors with a hint; an unexpected exception becomes
one sentence without details. Over HTTP a server listens on this machine only, and the Host and Origin of every request
are checked, so that a web page cannot use it.
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

MAX_BODY_BYTES = 1_048_576
MAX_TEXT_CHARS = 60_000
MIN_PROGRESS_STEP = 0.01
"""Smaller steps of progress are not reported."""
SHUTDOWN_S = 2
"""How long open streams may delay the shutdown."""
PATH = "/mcp"
MAX_PORT = 65_535
READERS, WORKERS = 4, 2
LOCAL = ("127.0.0.1", "localhost", "[::1]")


# Tools ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The output of a tool: text, and the same as structured values."""

    text: str
    values: Mapping[str, Any] | None = None
    failed: bool = False


class BackgroundWork:
    """The handle of work in a thread: the work reports progress and polls for a stop."""

    def __init__(self, report: Callable[[float, str], None] = lambda share, message: None) -> None:
        self._report = report
        self._reported = -1.0  # so that a first report of 0 is passed on
        self._stopping = threading.Event()

    def progress(self, share: float, message: str = "") -> None:
        """Report progress, 0 to 1. Steps that are too small or backwards are dropped."""
        if share - self._reported >= MIN_PROGRESS_STEP or share >= 1.0 > self._reported:
            self._reported = share
            self._report(share, message)

    def stop(self) -> None:
        """Request a stop. Completed work is kept."""
        self._stopping.set()

    def stopped(self) -> bool:
        """Whether a stop was requested."""
        return self._stopping.is_set()


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """One tool of a server. `work` is called in a thread with checked arguments.

    `reads`: changes nothing. `again`: a second call with the same arguments changes nothing more (idempotent).
    `outside`: may use the network.
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
class OutputFilter:
    """The filter of all output: `clean` for everything, `hide` additionally for errors."""

    clean: Callable[[str], str] = str
    hide: Callable[[str], str] = str


def plain_logs() -> None:
    """Write logs as plain lines, unless that was arranged already.

    Else the library installs a handler that highlights the source code around every traceback: half a second for a request that a
    client got wrong.
    """
    logging.basicConfig(level=logging.WARNING, format="%(message)s")


def create(
    name: str, title: str, version: str, about: str, tools: Sequence[OfferedTool], output_filter: OutputFilter
) -> "MCPServer":
    """A server with these tools. The number of concurrent calls is limited, separately for reading and writing tools."""
    import anyio
    from mcp.server.mcpserver import MCPServer

    plain_logs()
    limiters = {True: anyio.CapacityLimiter(READERS), False: anyio.CapacityLimiter(WORKERS)}
    server = MCPServer(
        name,
        title=title,
        version=version,
        instructions=about,
        tools=[_tool(tool, output_filter, limiters[tool.reads]) for tool in tools],
        log_level="WARNING",
        subscriptions=False,
    )
    server.middleware.append(known_tools_only(frozenset(tool.name for tool in tools)))
    return server


def known_tools_only(names: frozenset[str]) -> Any:
    """Middleware that answers an unknown tool with a protocol error (-32602); the library would return a result."""
    from mcp.shared.exceptions import MCPError
    from mcp_types import INVALID_PARAMS

    async def middleware(context: Any, call_next: Any) -> Any:
        name = context.params.get("name") if context.method == "tools/call" and context.params else None
        if isinstance(name, str) and name not in names:
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown tool: {name[:100]}")
        return await call_next(context)

    return middleware


def _tool(tool: OfferedTool, output_filter: OutputFilter, limiter: Any) -> "Tool":
    from mcp.server.mcpserver.tools import Tool
    from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
    from mcp_types import ToolAnnotations
    from pydantic import ConfigDict

    class RawArguments(ArgModelBase):
        """Unvalidated arguments: they are checked against the tool's own schema, with its own messages."""

        model_config = ConfigDict(extra="allow")

        def model_dump_one_level(self) -> dict[str, Any]:
            return {"arguments": dict(self.model_extra or {})}

    async def call(arguments: dict[str, Any], context: Any) -> "CallToolResult":
        return _result(await _answer(tool, arguments, context, limiter), output_filter)

    return Tool(
        fn=call,
        name=tool.name,
        title=tool.title,
        description=tool.description,
        parameters=dict(tool.schema),
        fn_metadata=FuncMetadata(arg_model=RawArguments),
        is_async=True,
        context_kwarg="context",
        annotations=ToolAnnotations(
            read_only_hint=tool.reads,
            destructive_hint=False,  # no tool overwrites or removes existing data
            idempotent_hint=tool.again,
            open_world_hint=tool.outside,
        ),
    )


async def _answer(tool: OfferedTool, arguments: Mapping[str, Any], context: Any, limiter: Any) -> ToolOutput:
    try:
        exact_arguments = {name: _exact(value) for name, value in arguments.items() if value is not None}
        checked = shape.check(tool.schema, exact_arguments)
        async with limiter:
            return await run_in_thread(lambda task: _work(tool, checked, task), context)
    except ToolFailed as error:
        return ToolOutput(str(error), failed=True)


def _exact(value: Any) -> Any:
    return Decimal(repr(value)) if isinstance(value, float) else value


def _work(tool: OfferedTool, checked: Mapping[str, Any], task: BackgroundWork) -> ToolOutput:
    try:
        return tool.work(checked, task)
    except UserError as error:
        return error_output(error.message, error.hint)
    except (ToolFailed, TransientError, BudgetExceeded, InvariantError) as error:
        return error_output(str(error))
    except Exception as error:
        fields = {"fields": {"tool": tool.name, "error": type(error).__name__}}
        LOG.error("tool failed", extra=fields, exc_info=True)
        return error_output(f"internal error in {tool.name}", "this is a bug in pitboss; its log has the details")


def error_output(message: str, hint: str = "", values: Mapping[str, Any] | None = None) -> ToolOutput:
    """A failed output with a message and a hint."""
    details = {"error": message, **({"hint": hint} if hint else {}), **(values or {})}
    return ToolOutput(f"{message}\nhint: {hint}" if hint else message, details, failed=True)


def _result(answer: ToolOutput, output_filter: OutputFilter) -> "CallToolResult":
    import orjson
    from mcp_types import CallToolResult, TextContent

    from pitboss.core import codec

    out: Callable[[str], str] = (
        (lambda text: output_filter.hide(output_filter.clean(text))) if answer.failed else output_filter.clean
    )
    text = out(codec.printable(answer.text))
    if len(text) > MAX_TEXT_CHARS:
        text = f"{text[:MAX_TEXT_CHARS]}\n[cut: {MAX_TEXT_CHARS} of {len(text)} characters shown]"
    values = (
        None
        if answer.values is None
        else orjson.loads(out(codec.dumps(codec.number_fragments(answer.values)).decode()))
    )
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=values, is_error=answer.failed
    )


async def run_in_thread(work: Callable[[BackgroundWork], ToolOutput], context: Any) -> ToolOutput:
    """Run blocking work in a thread and forward its progress. Cancelling the call requests a stop and waits for the work."""
    import anyio

    loop = asyncio.get_running_loop()
    reports: asyncio.Queue[tuple[float, str] | None] = asyncio.Queue()
    task = BackgroundWork(lambda share, message: _enqueue(loop, reports, (share, message)))
    outputs: list[ToolOutput] = []

    async def thread() -> None:
        with anyio.CancelScope(shield=True):
            try:
                outputs.append(await anyio.to_thread.run_sync(work, task))
            finally:
                reports.put_nowait(None)

    async with anyio.create_task_group() as group:
        group.start_soon(thread)
        try:
            while (report := await reports.get()) is not None:
                share, message = report
                await context.report_progress(round(share * 100, 1), 100.0, message or None)
        except BaseException:
            task.stop()
            raise
    return outputs[0]


def _enqueue(loop: asyncio.AbstractEventLoop, reports: asyncio.Queue[Any], report: Any) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(reports.put_nowait, report)


# Starting ---------------------------------------------------------------------------------------------------------------


def serve(
    server: "MCPServer", http: tuple[str, int] | None = None, notify: Callable[[str], object] = lambda line: None
) -> None:
    """Serve until the client disconnects: over standard input and output, or at an address of this machine."""
    import anyio

    if http is None:
        anyio.run(server.run_stdio_async)
        return
    listening = _listen(*http)
    host, port = listening.getsockname()[:2]
    notify(f"listening on http://{f'[{host}]' if ':' in host else host}:{port}{PATH}")
    with listening:
        anyio.run(_over_http, server, listening)


async def _over_http(server: "MCPServer", listening: socket.socket) -> None:
    import uvicorn
    from mcp.server.transport_security import TransportSecuritySettings

    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MAX_BODY_BYTES,
        transport_security=TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=[f"{name}:*" for name in LOCAL],
            allowed_origins=[f"http://{name}:*" for name in LOCAL],
        ),
    )
    config = uvicorn.Config(app, log_level="critical", server_header=False, timeout_graceful_shutdown=SHUTDOWN_S)
    await uvicorn.Server(config).serve(sockets=[listening])


def read_address(text: str) -> tuple[str, int]:
    """Parse `HOST:PORT` of this machine; port 0 selects a free one."""
    host, colon, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not colon or not bare or not port.isdecimal() or int(port) > MAX_PORT:
        raise UserError(f"{text!r} is not HOST:PORT", "for example 127.0.0.1:8000")
    require_loopback(bare)
    return bare, int(port)


def require_loopback(host: str) -> None:
    """Refuse to listen on an address that other machines can reach: there is no authentication."""
    if f"[{host}]" not in LOCAL and host not in LOCAL:
        raise UserError(
            f"{host} can be reached from other machines, and there is no authentication",
            "listen on 127.0.0.1, and connect from elsewhere through a tunnel such as `ssh -L`",
        )


def _listen(host: str, port: int) -> socket.socket:
    require_loopback(host)
    if not 0 <= port <= MAX_PORT:
        raise UserError(f"port {port} is not from 0 to {MAX_PORT}", "for example 8000; 0 takes any that is free")
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise UserError(f"cannot listen on {host}:{port}: {error.strerror}", "choose another port") from None
    return listening
