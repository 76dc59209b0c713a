"""`pitboss mcp …`: MCP servers whose tools an agent may call: list, test and approve them.

No definition of a server reaches a model before the user has approved it here or the catalogue has pinned it.
Recording of answers is `mcp_record.py`; pitboss as an MCP server is `mcp_serve.py`.
"""

import difflib
import json as plain_json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from pitboss.cli import mcp_record as recording
from pitboss.cli import mcp_serve as serving
from pitboss.core.errors import ToolFailed, UserError
from pitboss.core.instant import iso
from pitboss.terminal import screen
from pitboss.terminal.options import Json, given
from pitboss.terminal.workspace_options import Here

if TYPE_CHECKING:
    from pitboss.bootstrap.mcp_servers import ToolStatus
    from pitboss.bootstrap.workspace import Workspace
    from pitboss.store.approvals import Approval
    from pitboss.tools.mcp.definition import Definition
    from pitboss.tools.mcp.server_entry import ServerEntry

app = App(name="mcp", help="MCP servers: list, try and approve their tools, and record what they answer.")
app.command(recording.record)
app.command(serving.serve)

ServerId = Annotated[str, Parameter(help="Id of a server, as `pitboss mcp list` shows it.")]


@app.command(name="list")
def list_(*, json: Json = False, place: Here) -> int:
    """List the servers of the catalogue: how they are reached, the tools they may offer, and which are approved.

    No server is started or contacted.

    For example:

        pitboss mcp list
    """
    with place.workspace() as workspace:
        found = _listed(workspace)
    if json:
        screen.put_json(found)
        return 0
    screen.put_table(
        ("id", "transport", "tools", "key", "about"),
        [
            (
                one["id"] + _MARKS[one["origin"]],
                one["transport"],
                _tools_text(one["tools"]),
                _key_text(one["key"]),
                one["unusable"] or one["title"],
            )
            for one in found
        ],
        folds=(2, 4),
    )
    own = workspace.settings.mcp_catalog
    if any(_MARKS[one["origin"]] for one in found):
        screen.note(f"* of your own file {own}; ** shipped, and changed by it")
    screen.note(
        "`pitboss mcp list --json` has the review notes; `pitboss mcp test ID` asks a server what it offers now"
    )
    return 0


_MARKS = {"shipped": "", "the operator": " *", "shipped, changed by the operator": " **"}


def _listed(workspace: "Workspace") -> list[dict[str, Any]]:
    from pitboss.bootstrap.mcp_servers import access, catalogue
    from pitboss.store.approvals import Approvals
    from pitboss.tools.mcp.catalog import missing_setup

    known, approvals = catalogue(workspace.settings), Approvals(workspace.database, workspace.now)
    rows: list[dict[str, Any]] = []
    for entry in known.values():
        given, approved = access(workspace.home, entry), approvals.of(entry.id)
        rows.append(
            {
                "id": entry.id,
                "title": entry.title,
                "transport": entry.transport,
                "origin": known.origin(entry.id),
                "tools": [_listed_tool(entry, tool, approved.get(tool)) for tool in entry.tools],
                "key": {"name": entry.secret, "present": given.bearer is not None} if entry.secret else None,
                "variables": [{"name": name, "present": name in given.variables} for name in entry.env],
                "unusable": missing_setup(entry),
                "note": " ".join(entry.note.split()),
            }
        )
    return rows


def _listed_tool(entry: "ServerEntry", tool: str, approval: "Approval | None") -> dict[str, Any]:
    pin = entry.pins.get(tool)
    differs = pin is not None and approval is not None and approval.digest != pin
    return {
        "name": tool,
        "state": "changed" if differs else "approved" if approval else "pinned" if pin else "not approved",
        "approved_at": iso(approval.approved_at) if approval else None,
        "as_of_safe": entry.tools[tool].as_of_safe,
    }


def _tools_text(tools: list[dict[str, Any]]) -> str:
    """Format tools by state, such as `approved: a, b; not approved: c`."""
    states: dict[str, list[str]] = {}
    for tool in tools:
        states.setdefault(tool["state"], []).append(tool["name"])
    return "; ".join(f"{state}: {', '.join(names)}" for state, names in states.items()) or "none"


def _key_text(key: dict[str, Any] | None) -> str:
    return "none" if key is None else f"{key['name']} {'present' if key['present'] else 'missing'}"


@app.command(name="test")
def try_one(
    server: ServerId,
    /,
    *,
    call: Annotated[str, given("--call", "Call this tool as well, and show its answer.")] = "",
    args: Annotated[str, given("--args", "Arguments of that call, as a JSON object.")] = "{}",
    json: Json = False,
    place: Here,
) -> int:
    """Connect to a server, and show its tools, how they compare to the approved ones, and how long it took.

    Exit code 2 means an error that you can fix (an id, a key, an address), 1 that the server cannot be used as it is.

    For example:

        pitboss mcp test time-mcp
        pitboss mcp test time-mcp --call get_current_time --args '{"timezone": "UTC"}'
    """
    import asyncio

    from pitboss.bootstrap.mcp_servers import catalogue, find_tool

    with place.workspace() as workspace:
        entry = catalogue(workspace.settings).find(server)
        arguments = recording.read_arguments(args)
        with recording.explaining():
            told = asyncio.run(_try(workspace, entry, find_tool(entry, call) if call else "", arguments))
    usable = any(tool["state"] == "approved" for tool in told["tools"])
    answered = told["call"] is None or not told["call"]["failed"]
    if json:
        screen.put_json(told)
    else:
        _show_trial(told)
        if not usable:
            screen.note(
                f"none of its tools may be used: `{place.typed(f'mcp approve {entry.id}')}` shows and approves them"
            )
    return 0 if usable and answered else 1


async def _try(workspace: "Workspace", entry: "ServerEntry", call: str, arguments: dict[str, Any]) -> dict[str, Any]:
    from pitboss.bootstrap.machine import stopwatch
    from pitboss.bootstrap.mcp_servers import reach, standings
    from pitboss.bootstrap.mcp_tools import RequestedTool, guard, remember
    from pitboss.store.approvals import Approvals
    from pitboss.tools.mcp.tool_names import name_of

    began, answer = stopwatch(), None
    async with reach(workspace.home, entry) as line:
        said = await line.definitions()
        connected_ms = (stopwatch() - began) * 1_000
        for one in said.values():
            remember(workspace, entry, one)
        found = standings(entry, Approvals(workspace.database, workspace.now).of(entry.id), said)
        if call and call not in said:
            raise UserError(f"{entry.id} does not have {call} now", f"it has {', '.join(sorted(said)) or 'nothing'}")
        if call:
            # The current definition is used unapproved, because no model sees the answer.
            tool = guard(workspace, RequestedTool(name_of(entry.id, call), entry, call, None), line, said[call])
            began, failed = stopwatch(), False
            try:
                text = await tool.call(arguments)
            except ToolFailed as error:
                text, failed = str(error), True
            answer = {"tool": call, "text": text, "failed": failed, "took_ms": round((stopwatch() - began) * 1_000, 1)}
    return {
        "id": entry.id,
        "server": line.server,
        "version": line.version,
        "protocol": line.protocol,
        "connected_ms": round(connected_ms, 1),
        "tools": [_tried_tool(one) for one in found],
        "skipped": line.skipped,
        "call": answer,
    }


def _tried_tool(one: "ToolStatus") -> dict[str, Any]:
    from pitboss.tools.mcp.definition import clean_text

    return {
        "name": clean_text(one.tool, 128),
        "state": one.state,
        "description": clean_text(one.said.description) if one.said else "",
        "digest": one.said.digest if one.said else None,
    }


def _show_trial(told: dict[str, Any]) -> None:
    from pitboss.tools.mcp.definition import clean_text

    name = f"{clean_text(told['server'], 80)} {clean_text(told['version'], 40)}".strip() or "a server without a name"
    screen.put(f"{told['id']}: {name}, protocol {told['protocol']}, connected in {told['connected_ms']:.0f} ms")
    rows = [(one["name"], one["state"], " ".join(one["description"].split())[:200]) for one in told["tools"]]
    screen.put_table(("tool", "state", "what it says it does"), rows, folds=(2,))
    for line in told["skipped"]:
        screen.note(f"note: {clean_text(line, 300)}")
    answer = told["call"]
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
    tool: Annotated[str, given("--tool", "Only this tool. Default: every allowed one that is new or changed.")] = "",
    yes: Annotated[bool, given("--yes", "Do not ask: approve what is shown.")] = False,
    place: Here,
) -> int:
    """Show the complete current tool definitions of a server, and approve each after a confirmation.

    For a tool that was approved before only the difference is shown. A tool whose definition changes later is disabled
    until it is approved again.

    For example:

        pitboss mcp approve time-mcp
        pitboss mcp approve coingecko-mcp --tool get_simple_price
    """
    import asyncio

    from pitboss.bootstrap.mcp_servers import catalogue, find_tool, write_definition
    from pitboss.store.approvals import Approvals

    with place.workspace() as workspace:
        entry = catalogue(workspace.settings).find(server)
        wanted = {find_tool(entry, tool)} if tool else set(entry.tools)
        approvals = Approvals(workspace.database, workspace.now)
        kept = approvals.of(entry.id)
        with recording.explaining():
            found = [one for one in asyncio.run(_standings(workspace, entry)) if one.tool in wanted]
        if tool and found[0].said is None:
            raise UserError(
                f"{entry.id} does not have {tool} now", f"`{place.typed(f'mcp test {entry.id}')}` lists its tools"
            )
        count = 0
        for one in found:
            if one.said is None or one.state not in ("changed", "not approved"):
                screen.note(f"{one.tool}: {'nothing to approve' if one.said else 'its server does not have it'}")
                continue
            _show_definition(entry, one.said, kept.get(one.tool))
            if not yes and not _agreed(f"approve {one.tool} of {entry.id}? [y/N] "):
                screen.note(f"{one.tool}: not approved")
                continue
            approvals.approve(entry.id, one.tool, one.said.digest, write_definition(one.said))
            screen.put(f"{one.tool}: approved, digest {one.said.digest}")
            count += 1
    screen.note(f"{count} approved")
    return 0


async def _standings(workspace: "Workspace", entry: "ServerEntry") -> "list[ToolStatus]":
    from pitboss.bootstrap.mcp_servers import reach, standings
    from pitboss.bootstrap.mcp_tools import remember
    from pitboss.store.approvals import Approvals

    async with reach(workspace.home, entry) as line:
        said = await line.definitions()
    for one in said.values():
        remember(workspace, entry, one)
    return standings(entry, Approvals(workspace.database, workspace.now).of(entry.id), said)


def _show_definition(entry: "ServerEntry", said: "Definition", approval: "Approval | None") -> None:
    """Print a definition with invisible characters escaped; for a changed one, the difference."""
    from pitboss.bootstrap.mcp_servers import read_definition

    now = _pretty(said)
    screen.put(f"\n{said.name} of {entry.id}", style="bold")
    if approval is None:
        for line in now:
            screen.put(line)
        return
    screen.put(f"changed since it was approved at {iso(approval.approved_at)}:")
    for line in difflib.unified_diff(_pretty(read_definition(approval)), now, "approved", "now", lineterm="", n=2):
        screen.put(line, style="green" if line.startswith("+") else "red" if line.startswith("-") else "")


def _pretty(said: "Definition") -> Sequence[str]:
    whole = {"server": said.server, "version": said.version, **said.raw}
    return plain_json.dumps(whole, indent=2, sort_keys=True, ensure_ascii=True).splitlines()


def _agreed(question: str) -> bool:
    """Ask for confirmation; an error if standard input is not a terminal."""
    import sys

    if sys.stdin is None or not sys.stdin.isatty():
        raise UserError("there is nobody to ask", "read what is shown, then approve it with --yes")
    screen.ERR.print(question, end="", markup=False, highlight=False)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
