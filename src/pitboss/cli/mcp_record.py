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
from pitboss.terminal.options import Duration, Json, option
from pitboss.terminal.workspace_options import Location

if TYPE_CHECKING:
    from pitboss.bootstrap.workspace import Workspace
    from pitboss.store.recordings import StoredRecording
    from pitboss.tools.mcp.server_entry import ServerEntry

MIN_INTERVAL_MS = 1_000
MAX_ERROR_LINES = 3


def record(
    server: Annotated[str, Parameter(help="Id of a server, as `pitboss mcp list` shows it.")],
    tool: Annotated[str, Parameter(help="One of its approved tools.")],
    /,
    *,
    args: Annotated[
        str | None,
        option(
            "--args", "Arguments, as a JSON object. A backtest finds the answer by the same arguments. Default: none."
        ),
    ] = None,
    every: Annotated[Duration | None, option("--every", "Repeat the call at this interval, such as 5m or 1h.")] = None,
    for_: Annotated[Duration | None, option("--for", "Stop after this time. Default: at Ctrl-C.")] = None,
    from_: Annotated[
        Path | None, option("--from", "Import earlier answers from a JSON lines file instead of calling the tool.")
    ] = None,
    to: Annotated[
        Path | None,
        option("--to", "Export all recordings of this tool to a JSON lines file. Alone, it does not call the tool."),
    ] = None,
    json: Json = False,
    location: Location,
) -> int:
    """Call a tool and store its answer with the time, so that a backtest over that time can use it.

    Each line of a file for --from is one answer: {"arguments": {…}, "known_at": "2025-06-01T12:00:00Z", "result": "…"},
    with "failed": true for an error. `known_at` is the time from which on the answer was available.

    For example:

        pitboss mcp record hyperliquid-info-mcp funding --args '{"symbol": "BTC"}'
        pitboss mcp record hyperliquid-info-mcp top_traders --every 1h --for 24h
        pitboss mcp record cryptopanic-mcp get_crypto_news --from old-news.jsonl
        pitboss mcp record hyperliquid-info-mcp funding --to funding.jsonl
    """
    import asyncio

    from pitboss.bootstrap.mcp_servers import catalogue, find_tool
    from pitboss.store.recordings import StoredRecordings

    calls_server = args is not None or every is not None or for_ is not None
    if from_ is not None and calls_server:
        raise UserError("--from cannot be combined with --args, --every or --for", "import first, then record")
    if for_ is not None and every is None:
        raise UserError("--for needs --every", "for example --every 5m")
    if every is not None and every < MIN_INTERVAL_MS:
        raise UserError("--every must be at least one second", "for example --every 5m")
    arguments = read_arguments("{}" if args is None else args)
    with location.workspace() as workspace:
        entry = catalogue(workspace.settings).find(server)
        find_tool(entry, tool)
        stored = StoredRecordings(workspace.database)
        if from_ is not None:
            result = _import(stored, entry, tool, from_)
        elif to is not None and not calls_server:
            result = {"server": entry.id, "tool": tool, "recorded": 0}
        else:
            recorder = _Recorder(workspace, entry, tool, arguments, quiet=json)
            try:
                with showing_server_errors():
                    asyncio.run(recorder.run(every, for_))
            except KeyboardInterrupt:
                screen.note(f"{recorder.count} recorded")
                raise
            result = recorder.result()
        if to is not None:
            result["written"] = _export(stored, entry, tool, to)
    if json:
        screen.put_json(result)
    else:
        summary = f"{result['recorded']} recorded" + (
            f", {result['known']} already recorded" if "known" in result else ""
        )
        screen.note(summary + (f", {result['written']} written to {to}" if "written" in result else ""))
    return 0 if from_ is not None or (to is not None and not calls_server) or result["recorded"] else 1


@contextmanager
def showing_server_errors() -> Iterator[None]:
    """On failure, show the error output of the server's process, which most often names a missing installation."""
    from pitboss.bootstrap.redact import REDACTOR
    from pitboss.tools.mcp.definition import clean_text

    try:
        yield
    except TransientError as error:
        for note in getattr(error, "__notes__", ()):
            for line in REDACTOR.redact(note).splitlines()[-MAX_ERROR_LINES:]:
                screen.note(f"output of the server: {clean_text(line, 300)}")
        raise


class _Recorder:
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
        self._recordings: list[StoredRecording] = []
        self._store_error: Exception | None = None

    async def run(self, every: int | None, for_: int | None) -> None:
        """Connect, call until the time is over, close."""
        import asyncio

        from pitboss.bootstrap.machine import stopwatch
        from pitboss.bootstrap.mcp_servers import open_connection, state_of
        from pitboss.bootstrap.mcp_tools import RequestedTool, guarded_tool, store_pinned_definition
        from pitboss.store.approvals import Approvals
        from pitboss.tools.mcp.tool_names import name_of

        entry, tool = self._entry, self._tool
        async with open_connection(self._workspace.home, entry) as connection:
            definition = (await connection.definitions()).get(tool)
            approved = Approvals(self._workspace.database, self._workspace.now).of(entry.id).get(tool)
            state = state_of(entry, tool, approved.digest if approved else "", definition)
            if state != "approved" or definition is None:
                raise UserError(
                    f"{tool} of {entry.id} cannot be recorded: it is {state}",
                    f"`pitboss mcp approve {entry.id} --tool {tool}` shows and approves it",
                )
            store_pinned_definition(self._workspace, entry, definition)
            mcp_tool = guarded_tool(
                self._workspace,
                RequestedTool(name_of(entry.id, tool), entry, tool, None),
                connection,
                definition,
                self._keep,
            )
            started_s, number = stopwatch(), 0
            while True:
                connection.begin_tick()
                before = self.count
                try:
                    await mcp_tool.call(self._arguments)
                except ToolFailed as error:
                    if self.count == before:  # an error reported by the server is an answer, too
                        screen.note(f"not recorded: {error}")
                if self._store_error is not None:
                    raise self._store_error  # the guarded tool ignores a failed recording; here it is the purpose
                number += 1
                if every is None or (for_ is not None and number * every > for_):
                    return
                await asyncio.sleep(max(0.0, started_s + number * every / 1_000 - stopwatch()))

    def result(self) -> dict[str, Any]:
        """The result so far."""
        return {
            "server": self._entry.id,
            "tool": self._tool,
            "recorded": self.count,
            "failed": self._failed,
            "recordings": [
                {
                    "arguments": self._arguments,
                    "known_at": iso(stored.recording.known_at),
                    "result": stored.recording.result,
                    "failed": stored.recording.failed,
                }
                for stored in self._recordings
            ],
        }

    def _keep(self, stored: "StoredRecording") -> None:
        from pitboss.store.recordings import StoredRecordings

        try:
            StoredRecordings(self._workspace.database).add([stored])
        except Exception as error:  # noqa: BLE001 – raised again by `run`, outside of the tool
            self._store_error = error
            return
        self.count += 1
        self._failed += stored.recording.failed
        if self._quiet:
            self._recordings.append(stored)
        else:
            recording = stored.recording
            kind = "a failure" if recording.failed else "an answer"
            screen.put(f"{iso(recording.known_at)} {kind} of {len(recording.result):,} characters")


def _import(stored: Any, entry: "ServerEntry", tool: str, file: Path) -> dict[str, Any]:
    from pitboss.store.recordings import read_lines

    try:
        with file.open(encoding="utf-8") as lines:
            recordings = list(read_lines(lines, entry.id, tool))
    except UserError as error:
        raise UserError(f"{file}: {error.message}", error.hint) from None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise UserError(f"cannot read {file}: {why}", "give --from a JSON lines file") from None
    new = stored.add(recordings)
    return {"server": entry.id, "tool": tool, "recorded": new, "known": len(recordings) - new}


def _export(recordings: Any, entry: "ServerEntry", tool: str, file: Path) -> int:
    from pitboss.store.recordings import write_line

    count = 0
    try:
        with file.open("w", encoding="utf-8") as lines:
            for stored in recordings.of(entry.id, tool):
                lines.write(write_line(stored) + "\n")
                count += 1
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror}", "choose another file") from None
    return count


def read_arguments(text: str) -> dict[str, Any]:
    """Parse `--args` as a JSON object with exact numbers."""
    try:
        arguments = codec.loads_exact(text)
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        raise UserError("--args is not a JSON object", """for example --args '{"symbol": "BTC"}'""")
    return arguments
