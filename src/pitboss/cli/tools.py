"""`pitboss tools …`: list and call the built-in tools of agents."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from pitboss.core.errors import ToolFailed, UserError
from pitboss.terminal import screen
from pitboss.terminal.options import Json, Moment, option
from pitboss.terminal.workspace_options import Location

if TYPE_CHECKING:
    from pitboss.runs.venue import Venue
    from pitboss.tools.define import ToolContext
    from pitboss.tools.registry import Registry

app = App(name="tools", help="List and call the built-in tools that a skill may give to its agent.")

Mode = Literal["read", "write"]
VenueName = Annotated[str, option("--venue", "Venue of the tools. Default: the venue of skills that name none.")]


@app.command(name="list")
def list_(*, venue: VenueName = "", json: Json = False) -> int:
    """List every built-in tool. Tools only read; they never change anything.

    For example:

        pitboss tools list
        pitboss tools list --venue predict
    """
    from pitboss.tools.registry import catalogue

    tools = catalogue(_registry(venue))
    if json:
        screen.put_json(tools)
        return 0
    rows = [(tool["name"], tool["category"], ", ".join(tool["modes"]), tool["description"]) for tool in tools]
    screen.put_table(("name", "category", "modes", "what it does"), rows, folds=(2, 3), drop=(1, 2))
    return 0


@app.command
def show(name: str, /, *, venue: VenueName = "", json: Json = False) -> int:
    """Show one tool with its arguments and an example call.

    For example:

        pitboss tools show fetch_recent_bars

    Parameters
    ----------
    name
        The tool's name.
    """
    from pitboss.tools.registry import catalogue, lookup

    registry = _registry(venue)
    full_name = lookup(registry, name).name
    (tool,) = [entry for entry in catalogue(registry) if entry["name"] == full_name]
    if json:
        screen.put_json(tool)
        return 0
    screen.put(tool["name"], style="bold")
    screen.put(tool["description"])
    if tool["ui_hint"]:
        screen.put(tool["ui_hint"])
    screen.put(f"\ncategory {tool['category']} · modes {', '.join(tool['modes'])} · reach {tool['reach']}")
    screen.put("\narguments (JSON Schema):")
    screen.put_json(tool["input_schema"])
    screen.put("\nexample arguments:")
    screen.put_json(tool["example"])
    return 0


@app.command
def call(
    name: str,
    /,
    *pairs: str,
    args: Annotated[str, option("--args", "The arguments as one JSON object.")] = "",
    run: Annotated[
        str, option("--run", "Call the tool at a tick of this run: its id, its first characters, or `last`.")
    ] = "",
    skill: Annotated[
        Path | None, option("--skill", "Call the tool for this skill on the stored data, with a new account.")
    ] = None,
    at: Annotated[
        Moment | None, option("--at", "Time of the tick, as ISO time. Default: the last one of the run or the data.")
    ] = None,
    data_venue: Annotated[str, option("--data-venue", "With --skill: the venue whose data is used.")] = "",
    mode: Annotated[
        Mode,
        Parameter(
            name="--mode",
            help="Tools that are allowed: those of a deciding agent (write), or of a question about it (read).",
        ),
    ] = "read",
    json: Json = False,
    location: Location,
) -> int:
    """Call one tool as an agent would, at a tick of a run or of a skill's market, and print its answer.

    Data from after the tick is not visible, no model is called, and nothing is changed.

    For example:

        pitboss tools call get_recent_decisions --run 3f9a count=5
        pitboss tools call get_position_risk --run 3f9a --at 2025-02-20T12:00:00Z
        pitboss tools call fetch_recent_bars --skill trend-thesis.yaml symbol=BTC interval=1h lookback=24
        pitboss tools call get_recent_decisions --run 3f9a --args '{"count": 5}'

    Parameters
    ----------
    name
        The tool's name.
    pairs
        Arguments as name=value, in place of --args.
    """
    import asyncio

    from pitboss.core.instant import iso
    from pitboss.runs import tool_context
    from pitboss.runs.tool_call import call_tool
    from pitboss.runs.venues import venue_of
    from pitboss.tools.registry import permit

    _refuse_mcp_tool(name)
    if bool(run) == (skill is not None):
        raise UserError("give either --run or --skill", "for example --run 3f9a, or --skill trend-thesis.yaml")

    async def answer(venue: "Venue", context: "ToolContext") -> "tuple[ToolContext, dict[str, Any], str]":
        (tool,) = permit(venue.tools(), [name], mode)
        arguments = read_arguments(tool.schema, args, pairs)
        try:
            return context, arguments, await call_tool(venue.tools(), name, context, arguments)
        except ToolFailed as error:
            raise UserError(
                f"{name}: {error}", f"`pitboss tools show {name} --venue {venue.name}` lists its arguments"
            ) from None

    async def of_run() -> "tuple[ToolContext, dict[str, Any], str]":
        with location.existing_workspace() as workspace:
            venue = venue_of(workspace.runs.get(run).params["skill"])
            permit(venue.tools(), [name], mode)
            return await answer(venue, await tool_context.of_run(workspace, run, at, mode))

    async def of_skill(file: Path) -> "tuple[ToolContext, dict[str, Any], str]":
        from pitboss.runs.documents import read_file

        plain = read_file(file)
        venue = venue_of(plain)
        (tool,) = permit(venue.tools(), [name], mode)
        request = venue.request_type()(skill=plain, from_at=0, to_at=1, data_venue=data_venue)
        context = tool_context.of_skill(venue, request, location.lake(), location.settings(), at, mode)
        if tool.reach != "recorded":  # tools that read only market data need no database
            return await answer(venue, context)
        from pitboss.store.recordings import StoredRecordings

        with location.existing_workspace() as workspace:
            return await answer(venue, replace(context, recordings=StoredRecordings(workspace.database)))

    context, arguments, text = asyncio.run(of_run() if skill is None else of_skill(skill))
    if json:
        moment = iso(context.observation.at)
        screen.put_json({"tool": name, "mode": mode, "at": moment, "arguments": _plain(arguments), "result": text})
    else:
        sys.stdout.write(text + "\n")
    return 0


def _refuse_mcp_tool(name: str) -> None:
    """Refuse a tool of an MCP server and name the right command, so that it is not reported as a misspelt tool."""
    server, _, tool = name.removeprefix("mcp_").partition("__")
    if name.startswith("mcp_") and server and tool:
        raise UserError(
            f"{name} is a tool of an MCP server",
            f"`pitboss mcp test {server} --call {tool}` calls it",
        )


def read_arguments(schema: Any, text: str, pairs: tuple[str, ...]) -> dict[str, Any]:
    """Parse the arguments of a call from `--args` or from `name=value` pairs.

    Values are converted as the schema requires.
    """
    from pitboss.core import codec

    hint = "for example --args '{\"count\": 5}', or count=5"
    if text and pairs:
        raise UserError("give the arguments either with --args or as name=value, not both", hint)
    if text:
        try:
            parsed = codec.loads_exact(text)
        except (ValueError, RecursionError):
            raise UserError("--args is not valid JSON", hint) from None
        if not isinstance(parsed, dict):
            raise UserError("--args must be a JSON object", hint)
        return parsed
    arguments: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UserError(f"{pair!r} is not name=value", hint)
        if name in arguments:
            raise UserError(f"{name} is given twice", hint)
        arguments[name] = _value(schema["properties"].get(name, {}), value)
    return arguments


def _value(part: Any, text: str) -> Any:
    from pitboss.core import codec

    if part.get("type") == "string":
        return text
    try:
        return codec.loads_exact(text)
    except (ValueError, RecursionError):
        return text  # the tool itself reports what is wrong


def _plain(arguments: dict[str, Any]) -> Any:
    from pitboss.core import codec

    return codec.plain(codec.number_fragments(arguments))


def _registry(venue: str) -> "Registry":
    from pitboss.runs.venues import default_venue, venue_named

    return (venue_named(venue) if venue else default_venue()).tools()
