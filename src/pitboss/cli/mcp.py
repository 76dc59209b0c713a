"""`pitboss mcp …`: MCP servers whose tools an agent may call: list, test and approve them.

No definition of a server reaches a model before the user has approved it here or the catalogue has pinned it.
Recording of answers is `mcp_record.py`; pitboss as an MCP server is `mcp_serve.py`.
"""

import difflib
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from pitboss.cli import mcp_record as recording
from pitboss.cli import mcp_serve as serving
from pitboss.core.errors import ToolFailed, UserError
from pitboss.core.instant import iso
from pitboss.core.suggestion import suggestion
from pitboss.terminal import screen
from pitboss.terminal.options import Json, option
from pitboss.terminal.question import agrees, has_terminal
from pitboss.terminal.workspace_options import Location

if TYPE_CHECKING:
    from pitboss.bootstrap.mcp_servers import ToolStatus
    from pitboss.bootstrap.workspace import Workspace
    from pitboss.store.approvals import Approval
    from pitboss.tools.mcp.definition import Definition
    from pitboss.tools.mcp.server_entry import ServerEntry

app = App(name="mcp", help="MCP servers: list, test and approve their tools, record their answers; serve pitboss.")
app.command(recording.record)
app.command(serving.serve)

ServerId = Annotated[str, Parameter(help="Id of a server, as `pitboss mcp list` shows it.")]


@app.command(name="list")
def list_(*, json: Json = False, location: Location) -> int:
    """List the servers of the catalogue: how they are reached, the tools they may offer, and which are approved.

    No server is started or contacted.

    For example:

        pitboss mcp list
    """
    from pitboss.runs.mcp_list import server_rows

    with location.existing_workspace() as workspace:
        servers = server_rows(workspace)
    if json:
        screen.put_json(servers)
        return 0
    screen.put_table(
        ("id", "transport", "tools", "key", "about"),
        [
            (
                server["id"] + _MARKS[server["origin"]],
                server["transport"],
                _tools_text(server["tools"]),
                _key_text(server["key"]),
                server["unusable"] or server["title"],
            )
            for server in servers
        ],
        folds=(2, 3, 4),
        drop=(3, 1),
    )
    own = workspace.settings.mcp_catalog
    if any(_MARKS[server["origin"]] for server in servers):
        screen.note(f"* from your file {own}; ** shipped with pitboss and changed by your file")
    screen.note(
        "`pitboss mcp list --json` has the review notes; `pitboss mcp test ID` lists the current tools of a server"
    )
    return 0


_MARKS = {"shipped": "", "the operator": " *", "shipped, changed by the operator": " **"}


def _tools_text(tools: list[dict[str, Any]]) -> str:
    """Format tools by state, such as `approved: a, b; not approved: c`."""
    states: dict[str, list[str]] = {}
    for tool in tools:
        states.setdefault(tool["state"], []).append(tool["name"])
    return "; ".join(f"{state}: {', '.join(names)}" for state, names in states.items()) or "none"


def _key_text(key: dict[str, Any] | None) -> str:
    return "none" if key is None else f"{key['name']} {'present' if key['present'] else 'missing'}"


@app.command(name="test")
def check_server(
    server: ServerId,
    /,
    *,
    call: Annotated[str, option("--call", "Also call this tool and print its answer.")] = "",
    args: Annotated[str, option("--args", "Arguments of that call, as a JSON object.")] = "{}",
    json: Json = False,
    location: Location,
) -> int:
    """Connect to a server, and show its tools, how they compare to the approved ones, and how long it took.

    Exit code 2: an error that you can fix (an id, a key, an address). Exit code 1: the server has no approved tool, or
    the call failed.

    For example:

        pitboss mcp test time-mcp
        pitboss mcp test time-mcp --call get_current_time --args '{"timezone": "UTC"}'
    """
    import asyncio

    from pitboss.bootstrap.mcp_servers import catalogue, find_tool

    with location.workspace() as workspace:
        entry = catalogue(workspace.settings).find(server)
        arguments = recording.read_arguments(args)
        with recording.showing_server_errors():
            result = asyncio.run(_check(workspace, entry, find_tool(entry, call) if call else "", arguments))
    usable = any(tool["state"] == "approved" for tool in result["tools"])
    answered = result["call"] is None or not result["call"]["failed"]
    if json:
        screen.put_json(result)
    else:
        _show_check(result)
        if not usable:
            screen.note(
                f"none of its tools is approved: `{location.command_line(f'mcp approve {entry.id}')}` shows and approves them"
            )
    return 0 if usable and answered else 1


async def _check(workspace: "Workspace", entry: "ServerEntry", call: str, arguments: dict[str, Any]) -> dict[str, Any]:
    from pitboss.bootstrap.machine import stopwatch
    from pitboss.bootstrap.mcp_servers import open_connection
    from pitboss.bootstrap.mcp_tools import RequestedTool, guarded_tool
    from pitboss.tools.mcp.tool_names import name_of

    started_s, answer = stopwatch(), None
    async with open_connection(workspace.home, entry) as connection:
        definitions = await connection.definitions()
        connected_ms = (stopwatch() - started_s) * 1_000
        statuses = _tool_statuses(workspace, entry, definitions)
        if call and call not in definitions:
            raise UserError(
                f"{entry.id} has no tool {call} now", suggestion(call, sorted(definitions), "it has") or "it has none"
            )
        if call:
            # The current definition is used unapproved, because no model sees the answer.
            requested = RequestedTool(name_of(entry.id, call), entry, call, None)
            tool = guarded_tool(workspace, requested, connection, definitions[call])
            started_s, failed = stopwatch(), False
            try:
                text = await tool.call(arguments)
            except ToolFailed as error:
                text, failed = str(error), True
            answer = {
                "tool": call,
                "text": text,
                "failed": failed,
                "took_ms": round((stopwatch() - started_s) * 1_000, 1),
            }
    return {
        "id": entry.id,
        "server": connection.server,
        "version": connection.version,
        "protocol": connection.protocol,
        "connected_ms": round(connected_ms, 1),
        "tools": [_tool_row(status) for status in statuses],
        "skipped": connection.skipped,
        "call": answer,
    }


def _tool_row(status: "ToolStatus") -> dict[str, Any]:
    from pitboss.tools.mcp.definition import clean_text

    return {
        "name": clean_text(status.tool, 128),
        "state": status.state,
        "description": clean_text(status.definition.description) if status.definition else "",
        "digest": status.definition.digest if status.definition else None,
    }


def _show_check(result: dict[str, Any]) -> None:
    from pitboss.tools.mcp.definition import clean_text

    name = (
        f"{clean_text(result['server'], 80)} {clean_text(result['version'], 40)}".strip() or "a server without a name"
    )
    screen.put(f"{result['id']}: {name}, protocol {result['protocol']}, connected in {result['connected_ms']:.0f} ms")
    rows = [(tool["name"], tool["state"], " ".join(tool["description"].split())[:200]) for tool in result["tools"]]
    screen.put_table(("tool", "state", "description"), rows, folds=(2,))
    for line in result["skipped"]:
        screen.note(f"note: {clean_text(line, 300)}")
    answer = result["call"]
    if answer is not None:
        screen.put(
            f"\n{answer['tool']} {'failed' if answer['failed'] else 'answered'} after {answer['took_ms']:.0f} ms:"
        )
        screen.put(answer["text"])


@app.command
def approve(
    server: ServerId,
    /,
    *,
    tool: Annotated[str, option("--tool", "Only this tool. Default: every allowed one that is new or changed.")] = "",
    yes: Annotated[bool, option("--yes", "Approve what is shown without a confirmation.")] = False,
    location: Location,
) -> int:
    """Show the complete current tool definitions of a server, and approve each after a confirmation.

    For a tool that was approved before only the difference is shown. A tool whose definition changes later is disabled
    until it is approved again.

    For example:

        pitboss mcp approve time-mcp
        pitboss mcp approve coingecko-mcp --tool get_simple_price
    """
    from pitboss.bootstrap.mcp_servers import catalogue, find_tool
    from pitboss.runs.mcp_approvals import approve_tool, inspect_server

    with location.workspace() as workspace:
        entry = catalogue(workspace.settings).find(server)
        tools = {find_tool(entry, tool)} if tool else set(entry.tools)
        with recording.showing_server_errors():
            inspection = inspect_server(workspace, entry.id)
        statuses = [status for status in inspection.statuses if status.tool in tools]
        if tool and statuses[0].definition is None:
            raise UserError(
                f"{entry.id} has no tool {tool} now",
                f"`{location.command_line(f'mcp test {entry.id}')}` lists its tools",
            )
        count = 0
        for status in statuses:
            if status.definition is None or status.state not in ("changed", "not approved"):
                screen.note(
                    f"{status.tool}: {'nothing to approve' if status.definition else 'the server has no such tool'}"
                )
                continue
            _show_definition(entry, status.definition, inspection.approved.get(status.tool))
            if not yes and not _confirmed(f"approve {status.tool} of {entry.id}?"):
                screen.note(f"{status.tool}: not approved")
                continue
            approve_tool(workspace, entry, status.definition)
            screen.put(f"{status.tool}: approved, digest {status.definition.digest}")
            count += 1
    screen.note(f"{count} approved")
    return 0


def _tool_statuses(
    workspace: "Workspace", entry: "ServerEntry", definitions: "dict[str, Definition]"
) -> "list[ToolStatus]":
    """The status of every tool of a server. The definitions are stored for later runs."""
    from pitboss.bootstrap.mcp_servers import tool_statuses
    from pitboss.bootstrap.mcp_tools import store_pinned_definition
    from pitboss.store.approvals import Approvals

    for definition in definitions.values():
        store_pinned_definition(workspace, entry, definition)
    return tool_statuses(entry, Approvals(workspace.database, workspace.now).of(entry.id), definitions)


def _show_definition(entry: "ServerEntry", definition: "Definition", approval: "Approval | None") -> None:
    """Print a definition with invisible characters escaped; for a changed one, the difference."""
    from pitboss.bootstrap.mcp_servers import read_definition
    from pitboss.runs.mcp_approvals import definition_lines

    current = definition_lines(definition)
    screen.put(f"\n{definition.name} of {entry.id}", style="bold")
    if approval is None:
        for line in current:
            screen.put(line)
        return
    screen.put(f"changed since it was approved at {iso(approval.approved_at)}:")
    before = definition_lines(read_definition(approval))
    for line in difflib.unified_diff(before, current, "approved", "now", lineterm="", n=2):
        screen.put(line, style="green" if line.startswith("+") else "red" if line.startswith("-") else "")


def _confirmed(question: str) -> bool:
    """Ask for confirmation; an error if standard input is not a terminal."""
    if not has_terminal():
        raise UserError("an approval needs a terminal", "read the definitions above, then approve them with --yes")
    return agrees(question)
