"""`pitboss mcp record`: record a tool's answers with the time at which they were known, for backtests.

Every answer is stored as it arrives, so that stopping loses nothing. Older answers can be imported from a file of JSON
lines, and stored answers exported to one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from pitboss.core import codec
from pitboss.core.errors import ToolFailed, TransientError, UserError
from pitboss.core.instant import iso
from pitboss.terminal import screen
from pitboss.terminal.options import Duration, Json, given
from pitboss.terminal.workspace_options import Here

if TYPE_CHECKING:
    from pitboss.bootstrap.workspace import Workspace
    from pitboss.store.recordings import StoredRecording
    from pitboss.tools.mcp.server_entry import ServerEntry

SHORTEST_MS = 1_000
LAST_LINES = 3


def record(
    server: Annotated[str, Parameter(help="Id of a server, as `pitboss mcp list` shows it.")],
    tool: Annotated[str, Parameter(help="One of its tools, approved.")],
    /,
    *,
    args: Annotated[
        str | None,
        given("--args", "Arguments, as a JSON object; none if left out. A backtest finds the answer by the same ones."),
    ] = None,
    every: Annotated[Duration | None, given("--every", "Ask again and again, as 5m or 1h.")] = None,
    for_: Annotated[Duration | None, given("--for", "Stop after this long. Default: at Ctrl-C.")] = None,
    from_: Annotated[
        Path | None, given("--from", "Ask nobody: take old answers with their times from a JSON lines file.")
    ] = None,
    to: Annotated[
        Path | None,
        given("--to", "Write all that is recorded of this tool into a JSON lines file. By itself it asks nobody."),
    ] = None,
    json: Json = False,
    place: Here,
) -> int:
    """Call a tool and store its answer with the time, so that a backtest over that time can use it.

    A line of a file for --from is one answer: {"arguments": {…}, "known_at": "2025-06-01T12:00:00Z", "result": "…"},
    with "failed": true for an error. The time is when the answer could first be known, never earlier.

    For example:

        pitboss mcp record hyperliquid-info-mcp funding --args '{"symbol": "BTC"}'
        pitboss mcp record hyperliquid-info-mcp top_traders --every 1h --for 24h
        pitboss mcp record cryptopanic-mcp get_crypto_news --from old-news.jsonl
        pitboss mcp record hyperliquid-info-mcp funding --to funding.jsonl
    """
    import asyncio

    from pitboss.bootstrap.mcp_servers import catalogue, find_tool
    from pitboss.store.recordings import StoredRecordings

    asks = args is not None or every is not None or for_ is not None
    if from_ is not None and asks:
        raise UserError("--from asks nobody: it goes without --args, --every and --for", "import first, then record")
    if for_ is not None and every is None:
        raise UserError("--for says how long to ask again and again, so it needs --every", "for example --every 5m")
    if every is not None and every < SHORTEST_MS:
        raise UserError("--every: less than a second", "for example --every 5m")
    arguments = read_arguments("{}" if args is None else args)
    with place.workspace() as workspace:
        entry = catalogue(workspace.settings).find(server)
        find_tool(entry, tool)
        stored = StoredRecordings(workspace.database)
        if from_ is not None:
            told = _imported(stored, entry, tool, from_)
        elif to is not None and not asks:
            told = {"server": entry.id, "tool": tool, "recorded": 0}
        else:
            asking = _Asking(workspace, entry, tool, arguments, quiet=json)
            try:
                with explaining():
                    asyncio.run(asking.ask(every, for_))
            except KeyboardInterrupt:
                screen.note(f"{asking.count} recorded")
                raise
            told = asking.told()
        if to is not None:
            told["written"] = _exported(stored, entry, tool, to)
    if json:
        screen.put_json(told)
    else:
        was = f"{told['recorded']} recorded" + (f", {told['known']} were known" if "known" in told else "")
        screen.note(was + (f", {told['written']} written to {to}" if "written" in told else ""))
    return 0 if from_ is not None or (to is not None and not asks) or told["recorded"] else 1


@contextmanager
def explaining() -> Iterator[None]:
    """On failure, show the error output of the server's process, which most often names a missing installation."""
    from pitboss.bootstrap.redact import REDACTOR
    from pitboss.tools.mcp.definition import clean_text

    try:
        yield
    except TransientError as error:
        for said in getattr(error, "__notes__", ()):
            for line in REDACTOR.redact(said).splitlines()[-LAST_LINES:]:
                screen.note(f"its program said: {clean_text(line, 300)}")
        raise


class _Asking:
    """Calls one tool, once or repeatedly, and stores every answer as it arrives."""

    def __init__(
        self, workspace: "Workspace", entry: "ServerEntry", tool: str, arguments: dict[str, Any], quiet: bool
    ) -> None:
        self._workspace = workspace
        self._entry = entry
        self._tool = tool
        self._arguments = arguments
        self._quiet = quiet
        self.count = 0
        self._failed = 0
        self._kept: list[StoredRecording] = []
        self._lost: Exception | None = None

    async def ask(self, every: int | None, for_: int | None) -> None:
        """Connect, call until the time is over, close."""
        import asyncio

        from pitboss.bootstrap.machine import stopwatch
        from pitboss.bootstrap.mcp_servers import reach, state_of
        from pitboss.bootstrap.mcp_tools import RequestedTool, guard, remember
        from pitboss.store.approvals import Approvals
        from pitboss.tools.mcp.tool_names import name_of

        entry, tool = self._entry, self._tool
        async with reach(self._workspace.home, entry) as line:
            said = (await line.definitions()).get(tool)
            approved = Approvals(self._workspace.database, self._workspace.now).of(entry.id).get(tool)
            state = state_of(entry, tool, approved.digest if approved else "", said)
            if state != "approved" or said is None:
                raise UserError(
                    f"{tool} of {entry.id} cannot be recorded: it is {state}",
                    f"`pitboss mcp approve {entry.id} --tool {tool}` shows and approves it",
                )
            remember(self._workspace, entry, said)
            asked = guard(
                self._workspace, RequestedTool(name_of(entry.id, tool), entry, tool, None), line, said, self._keep
            )
            began, number = stopwatch(), 0
            while True:
                line.begin_tick()
                before = self.count
                try:
                    await asked.call(self._arguments)
                except ToolFailed as error:
                    if self.count == before:  # an error reported by the server is an answer, too
                        screen.note(f"not recorded: {error}")
                if self._lost is not None:  # a tool call ignores a failure to record, but here recording is the purpose
                    raise self._lost
                number += 1
                if every is None or (for_ is not None and number * every > for_):
                    return
                await asyncio.sleep(max(0.0, began + number * every / 1_000 - stopwatch()))

    def told(self) -> dict[str, Any]:
        """The result so far."""
        return {
            "server": self._entry.id,
            "tool": self._tool,
            "recorded": self.count,
            "failed": self._failed,
            "recordings": [
                {
                    "arguments": self._arguments,
                    "known_at": iso(one.recording.known_at),
                    "result": one.recording.result,
                    "failed": one.recording.failed,
                }
                for one in self._kept
            ],
        }

    def _keep(self, kept: "StoredRecording") -> None:
        from pitboss.store.recordings import StoredRecordings

        try:
            StoredRecordings(self._workspace.database).add([kept])
        except Exception as error:  # noqa: BLE001 – raised again by `ask`, outside of the tool
            self._lost = error
            return
        self.count += 1
        self._failed += kept.recording.failed
        if self._quiet:
            self._kept.append(kept)
        else:
            one = kept.recording
            how = "a failure" if one.failed else "an answer"
            screen.put(f"{iso(one.known_at)} {how} of {len(one.result):,} characters")


def _imported(stored: Any, entry: "ServerEntry", tool: str, file: Path) -> dict[str, Any]:
    from pitboss.store.recordings import read_lines

    try:
        with file.open(encoding="utf-8") as lines:
            many = list(read_lines(lines, entry.id, tool))
    except UserError as error:
        raise UserError(f"{file}: {error.message}", error.hint) from None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise UserError(f"cannot read {file}: {why}", "give --from a JSON lines file") from None
    new = stored.add(many)
    return {"server": entry.id, "tool": tool, "recorded": new, "known": len(many) - new}


def _exported(stored: Any, entry: "ServerEntry", tool: str, file: Path) -> int:
    from pitboss.store.recordings import write_line

    count = 0
    try:
        with file.open("w", encoding="utf-8") as lines:
            for kept in stored.of(entry.id, tool):
                lines.write(write_line(kept) + "\n")
                count += 1
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror}", "name another file") from None
    return count


def read_arguments(text: str) -> dict[str, Any]:
    """Parse `--args` as a JSON object with exact numbers."""
    try:
        found = codec.loads_exact(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise UserError("--args: is not a JSON object", """for example --args '{"symbol": "BTC"}'""")
    return found
