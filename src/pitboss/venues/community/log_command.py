"""The command `pitboss community log`: shows what agents and their runners said to each other, and follows it."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import App

from pitboss.terminal import screen
from pitboss.terminal.options import Json, WholeNumber, option
from pitboss.terminal.workspace_options import Location
from pitboss.venues.community.communication_log import Direction

if TYPE_CHECKING:
    from pitboss.venues.community.log_reader import LogEntry

SHOWN_CHARS = 2_000
"""How much of a content is shown; `--json` prints all of it."""


def register(app: App) -> None:
    """Add the command to its group."""
    app.command(log)


def log(
    *,
    follow: Annotated[bool, option("--follow", "Go on with new entries until stopped (Ctrl-C).")] = False,
    agent: Annotated[str, option("--agent", "Only entries of the agent with this id.")] = "",
    direction: Annotated[Direction | None, option("--direction", "Only entries in this direction.")] = None,
    action: Annotated[str, option("--action", "Only entries about this type of action, such as tx_feedback.")] = "",
    last: Annotated[WholeNumber | None, option("--last", "Only so many of the entries so far, the newest.")] = None,
    json: Json = False,
    place: Location,
) -> int:
    """Show the communication log: what agents sent to their runners and what they were sent, of all runners of the workspace.

    Entries are kept for 14 days. Long contents are cut; --json prints each entry whole, one JSON object a line. For example:

        pitboss community log --last 20
        pitboss community log --action tx_feedback --json
        pitboss community log --follow --direction agent_to_runner
    """
    import asyncio

    from pitboss.bootstrap.logs import start_logs
    from pitboss.core.errors import UserError
    from pitboss.venues.community import log_reader
    from pitboss.venues.community.communication_log import log_folder

    if last is not None and last < 0:
        raise UserError(f"--last {last} is below zero", "use a number of at least 0")
    settings = place.settings()
    start_logs(settings.log_level, settings.log_file)  # secrets of the environment are removed from what is shown
    folder = log_folder(settings.home)
    reader = log_reader.LogReader(folder, log_reader.EntryFilter(agent, direction, action))

    async def show_all() -> None:
        async for entry in log_reader.follow(reader, last):
            _show(entry, json)

    if follow:
        asyncio.run(show_all())
    is_empty = True
    for entry in reader.read(last):
        _show(entry, json)
        is_empty = False
    if is_empty and not json:
        screen.note(f"there is no such entry in {folder}")
    return 0


def _show(entry: "LogEntry", json: bool) -> None:
    from pitboss.bootstrap.redact import REDACTOR
    from pitboss.live.board import display_text

    if json:
        screen.put_line(entry.document())
        return
    arrow = "agent → runner" if entry.direction == "agent_to_runner" else "runner → agent"
    port = "" if entry.port is None else f" port {entry.port}"
    stamp = f"agent {entry.agent_id} | instance {entry.instance_id}{port} pid {entry.pid}"
    head = f"{entry.created_at} | {arrow} | {', '.join(entry.action_types) or '-'} | {stamp}"
    screen.put(display_text(REDACTOR.redact(head)))
    screen.put(f"    {display_text(REDACTOR.redact(entry.content), SHOWN_CHARS)}")
