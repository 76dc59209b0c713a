"""`pitboss init` and `pitboss skill …`: create and check skills, and preview the prompt of a model."""

import sys
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App

from pitboss.core.errors import UserError
from pitboss.core.instant import iso
from pitboss.terminal import screen
from pitboss.terminal.options import Amount, Json, Lateness, Moment, Override, option
from pitboss.terminal.workspace_options import Location

app = App(name="skill", help="Check skills, preview the prompt of a model, print the schema of skills.")

WORKSPACE = ".pitboss"
SETTINGS_HEAD = "# Settings of this workspace. Each is also an environment variable, which wins over this file.\n"


def init(
    folder: Path,
    /,
    *,
    venue: Annotated[
        str, option("--venue", "Venue of the example skills. Default: the venue of skills that name none.")
    ] = "",
    location: Location,
) -> int:
    """Create a folder with three commented example skills. Overwrites nothing.

    For example:

        pitboss init my-skills
        pitboss init my-bets --venue predict          # one skill of the predict venue

    Parameters
    ----------
    folder
        The folder to create, or an existing one.
    """
    from pitboss.bootstrap.settings import FILE, Settings
    from pitboss.bootstrap.settings_description import describe
    from pitboss.runs.venues import default_venue, venue_named

    selected_venue = venue_named(venue) if venue else default_venue()
    settings = Path(WORKSPACE) / FILE
    lines = [
        f"# {setting['meaning']}\n# {setting['key']} = {_toml(setting['default'])}\n"
        for setting in describe(Settings.model_construct())  # the defaults, regardless of the current settings
        if setting["key"] != "home"
    ]
    files = {Path(name): text for name, text in selected_venue.examples().items()} | {
        settings: "\n".join([SETTINGS_HEAD, *lines])
    }
    existing = [str(folder / name) for name in files if (folder / name).exists()]
    if existing:
        raise UserError(f"{', '.join(existing)}: exists already, and nothing is overwritten", "choose another folder")
    try:
        (folder / WORKSPACE).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}", "choose another folder") from None
    skills = [str(name) for name in files if name != settings]
    screen.put(f"wrote {', '.join(skills)} and {settings} to {folder}")
    screen.put("\nnext:")
    if not folder.samefile(Path()):
        screen.put(f"  cd {folder}")
    for command in (f"pitboss skill check {skills[-1]}", *selected_venue.first_steps(skills[-1])):
        screen.put(f"  {command}")
    return 0


def _toml(value: str) -> str:
    return value if value.replace(".", "", 1).isdigit() else f'"{value}"'


@app.command
def check(file: Path, /, *, set_: Override = (), json: Json = False, location: Location) -> int:
    """Check a skill document. Exit code 2 if it has errors.

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
        result = SkillCheck(False, None, (SkillError("", error.message, error.hint),), None)
    else:
        result = check_document(text, file.suffix, location.settings(), set_, file.parent)
    if json:
        screen.put_json(result.plain())
        return 0 if result.ok else 2
    for error in result.errors:
        prefix = f"{file}:{error.line}: " if error.line else f"{file}: "
        prefix = "" if error.message.startswith(prefix) else prefix  # an error about the file itself already names it
        screen.complain(
            f"{prefix}{error.path}: {error.message}" if error.path else f"{prefix}{error.message}", error.hint
        )
    for note in result.notes:
        screen.note(f"note: {note}")
    if result.ok:
        screen.put(f"{file} is valid")
        screen.put(f"digest {result.digest}")
    return 0 if result.ok else 2


@app.command
def preview(
    file: Path,
    /,
    *,
    at: Annotated[
        Moment | None,
        option(
            "--at", "Time of the tick, as ISO time. Default: the newest tick that has data; without bars, 2025-01-01."
        ),
    ] = None,
    equity: Annotated[
        Amount | None, option("--equity", "Equity of the new account in USD. Default: as in a backtest.")
    ] = None,
    data_venue: Annotated[str, option("--data-venue", "Venue whose data is read.")] = "",
    news_latency: Annotated[
        Lateness | None, option("--news-latency", "Time from publication until news is available; perp venue only.")
    ] = None,
    set_: Override = (),
    json: Json = False,
    location: Location,
) -> int:
    """Show byte for byte what a model would receive at the first tick of a run that starts at the given time.

    For example:

        pitboss skill preview trend-thesis.yaml --at 2025-03-01T12:00:00Z
        pitboss skill preview btc-brain.yaml --equity 200

    Parameters
    ----------
    file
        A .yaml or .json file.
    """
    from pitboss.runs.documents import read_file
    from pitboss.runs.skill_preview import preview_document, preview_skill
    from pitboss.runs.venues import venue_of

    document = read_file(file, set_, location.settings())
    venue = venue_of(document)
    fields: dict[str, Any] = {} if equity is None else {"equity_usd": equity}
    if news_latency is not None:
        fields |= dict(zip(("news_latency_ms", "news_latency"), news_latency, strict=True))
    request_fields = {field.name for field in dataclass_fields(venue.request_type())}
    if not request_fields.issuperset(fields):
        raise UserError(f"--news-latency: skills of the {venue.name} venue use no news", "remove --news-latency")
    settings = location.settings()
    prompt = preview_skill(
        document, location.lake(), settings, location.existing_workspace, at=at, data_venue=data_venue, fields=fields
    )
    if json:
        screen.put_json(preview_document(prompt, document, settings))
        return 0
    screen.put("SYSTEM", style="bold")
    sys.stdout.write(prompt.system + "\n\n")
    screen.put("USER", style="bold")
    sys.stdout.write(prompt.user + "\n\n")
    screen.put("TOOLS", style="bold")
    for tool in prompt.tools:
        screen.put(f"{tool['name']}: {tool['description']}")
    screen.note(f"tick {iso(prompt.at)}, about {prompt.tokens_estimate:,} tokens")
    return 0


@app.command
def schema(
    *,
    venue: Annotated[str, option("--venue", "Venue of the skills. Default: the venue of skills that name none.")] = "",
) -> int:
    """Print the JSON Schema of a skill document, for editors and other programs.

    For example:

        pitboss skill schema > skill.schema.json
        pitboss skill schema --venue predict > predict.schema.json
    """
    from pitboss.runs.venues import default_venue, venue_named
    from pitboss.skill.document import json_schema_text

    selected_venue = venue_named(venue) if venue else default_venue()
    sys.stdout.write(json_schema_text(selected_venue.skill_type()))
    return 0
