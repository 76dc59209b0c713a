"""`pitboss init` and `pitboss skill …`: create and check skills, and preview the prompt of a model."""

import sys
from collections.abc import Mapping
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App

from pitboss.core.errors import UserError
from pitboss.core.instant import iso
from pitboss.terminal import screen
from pitboss.terminal.options import Amount, Json, Lateness, Moment, Override, given
from pitboss.terminal.workspace_options import Here, WorkspaceOptions

if TYPE_CHECKING:
    from pitboss.sim.connections import ServerTools

app = App(name="skill", help="Check skills, preview what a model would see, print their schema.")

WORKSPACE = ".pitboss"
SETTINGS_HEAD = "# Settings of this workspace. Each is also an environment variable, which wins over this file.\n"


def init(
    folder: Path,
    /,
    *,
    venue: Annotated[
        str, given("--venue", "Whose example skills are written. Default: the venue of skills that name none.")
    ] = "",
    place: Here,
) -> int:
    """Create a folder with three commented example skills. Overwrites nothing.

    For example:

        pitboss init my-skills
        pitboss init my-bets --venue predict          # one skill of the predict venue

    Parameters
    ----------
    folder
        The folder to make, or an existing one.
    """
    from pitboss.bootstrap.settings import FILE, Settings, describe
    from pitboss.runs.venues import default_venue, venue_named

    chosen = venue_named(venue) if venue else default_venue()
    settings = Path(WORKSPACE) / FILE
    lines = [
        f"# {one['meaning']}\n# {one['key']} = {_toml(one['default'])}\n"
        for one in describe(Settings.model_construct())  # the defaults, regardless of the current settings
        if one["key"] != "home"
    ]
    files = {Path(name): text for name, text in chosen.examples().items()} | {
        settings: "\n".join([SETTINGS_HEAD, *lines])
    }
    there = [str(folder / name) for name in files if (folder / name).exists()]
    if there:
        raise UserError(f"{', '.join(there)}: already there, and nothing is overwritten", "name another folder")
    try:
        (folder / WORKSPACE).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}", "name another folder") from None
    skills = [str(name) for name in files if name != settings]
    screen.put(f"wrote {', '.join(skills)} and {settings} to {folder}")
    screen.put("\nnext:")
    for command in (f"cd {folder}", f"pitboss skill check {skills[-1]}", *chosen.first_steps(skills[-1])):
        screen.put(f"  {command}")
    return 0


def _toml(value: str) -> str:
    return value if value.replace(".", "", 1).isdigit() else f'"{value}"'


@app.command
def check(file: Path, /, *, set_: Override = (), json: Json = False, place: Here) -> int:
    """Check a skill document. Exit code 2 if anything is wrong with it.

    For example:

        pitboss skill check trend-thesis.yaml

    Parameters
    ----------
    file
        A .yaml or .json file.
    """
    from pitboss.runs.documents import check as check_document
    from pitboss.skill.load import SkillCheck, SkillError, read_text

    try:
        text = read_text(file)
    except UserError as error:
        found = SkillCheck(False, None, (SkillError("", error.message, error.hint),), None)
    else:
        found = check_document(text, file.suffix, place.settings(), set_, file.parent)
    if json:
        screen.put_json(found.plain())
        return 0 if found.ok else 2
    for error in found.errors:
        where = f"{file}:{error.line}: " if error.line else f"{file}: "
        where = "" if error.message.startswith(where) else where  # an error about the file itself already names it
        screen.complain(
            f"{where}{error.path}: {error.message}" if error.path else f"{where}{error.message}", error.hint
        )
    for remark in found.notes:
        screen.note(f"note: {remark}")
    if found.ok:
        screen.put(f"{file} is fine")
        screen.put(f"digest {found.digest}")
    return 0 if found.ok else 2


@app.command
def preview(
    file: Path,
    /,
    *,
    at: Annotated[Moment | None, given("--at", "The tick, as ISO time. Default: the newest that has data.")] = None,
    equity: Annotated[
        Amount | None, given("--equity", "Money in the fresh account. Default: what a backtest begins with.")
    ] = None,
    data_venue: Annotated[str, given("--data-venue", "Whose data to read.")] = "",
    news_latency: Annotated[
        Lateness | None, given("--news-latency", "How long after its publication news is known; perp venue only.")
    ] = None,
    set_: Override = (),
    json: Json = False,
    place: Here,
) -> int:
    """Show exactly what a model would receive at the first tick of a run that starts there, byte for byte.

    For example:

        pitboss skill preview trend-thesis.yaml --at 2025-03-01T12:00:00Z
        pitboss skill preview btc-brain.yaml --equity 200

    Parameters
    ----------
    file
        A .yaml or .json file.
    """
    from pitboss.runs.documents import read_file
    from pitboss.runs.venues import venue_of

    plain = read_file(file, set_, place.settings())
    venue = venue_of(plain)
    fields: dict[str, Any] = {} if equity is None else {"equity_usd": equity}
    if news_latency is not None:
        fields |= dict(zip(("news_latency_ms", "news_latency"), news_latency, strict=True))
    known = {field.name for field in dataclass_fields(venue.request_type())}
    if not known.issuperset(fields):
        raise UserError(f"--news-latency: skills of the {venue.name} venue read no news", "leave it out")
    request = venue.request_type()(skill=plain, from_at=0, to_at=1, data_venue=data_venue, **fields)
    shown = venue.preview(request, place.lake(), place.settings(), at, _server_tools(place, plain))
    if json:
        screen.put_json(
            {
                "system": shown.system,
                "user": shown.user,
                "tools": list(shown.tools),
                "tokens_estimate": shown.tokens_estimate,
                "at": iso(shown.at),
            }
        )
        return 0
    screen.put("SYSTEM", style="bold")
    sys.stdout.write(shown.system + "\n\n")
    screen.put("USER", style="bold")
    sys.stdout.write(shown.user + "\n\n")
    screen.put("TOOLS", style="bold")
    for tool in shown.tools:
        screen.put(f"{tool['name']}: {tool['description']}")
    screen.note(f"tick {iso(shown.at)}, about {shown.tokens_estimate:,} tokens")
    return 0


@app.command
def schema(
    *,
    venue: Annotated[
        str, given("--venue", "Whose skills the schema is of. Default: the venue of skills that name none.")
    ] = "",
) -> int:
    """Print the JSON Schema of a skill document, for editors and other programs.

    For example:

        pitboss skill schema > skill.schema.json
        pitboss skill schema --venue predict > predict.schema.json
    """
    from pitboss.runs.venues import default_venue, venue_named
    from pitboss.skill.document import json_schema_text

    chosen = venue_named(venue) if venue else default_venue()
    sys.stdout.write(json_schema_text(chosen.skill_type()))
    return 0


def _server_tools(place: WorkspaceOptions, plain: Mapping[str, Any]) -> "ServerTools | None":
    """The tools that the MCP servers of a skill offer to a backtest."""
    if not plain.get("tools", {}).get("mcp_servers"):
        return None
    import asyncio

    from pitboss.bootstrap.mcp_tools import glance
    from pitboss.runs.venues import venue_of
    from pitboss.skill.load import read_skill

    venue = venue_of(plain)
    with place.workspace() as workspace:
        return asyncio.run(glance(workspace, read_skill(plain, venue.skill_type()), venue.tools()))


def read_plain(file: Path, overrides: tuple[str, ...] = (), place: WorkspaceOptions | None = None) -> dict[str, Any]:
    """Check a skill file and return the complete plain document, overrides applied.

    With a place, MCP servers are checked too.
    """
    from pitboss.runs.documents import read_file

    return read_file(file, overrides, None if place is None else place.settings())
