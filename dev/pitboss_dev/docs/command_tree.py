"""Prints the help of every command as Markdown.

Runs in a process of its own, because it changes the tree of commands, so that the page is the same on every machine: venues and
commands of other installed packages are left out, and `bench` is that of this package whether or not it is installed.
"""

from importlib.metadata import EntryPoint, entry_points

from pitboss.runs import venues
from pitboss_dev.docs.venue_notes import DISTRIBUTION, documented_venues


def main() -> None:
    """Print the page."""
    names = {venue.name for venue in documented_venues()}
    documented = {name: entry for name, entry in venues.installed().items() if name in names}
    venues.installed = lambda: documented  # before the commands are built, whose options depend on it
    from pitboss.cli.commands import COMMANDS, complete_app

    names |= COMMANDS.keys()
    app = complete_app()
    names |= {entry.name for entry in entry_points(group="pitboss.commands") if _is_ours(entry)}
    for name in list(app):
        if not name.startswith("-") and name not in names:
            del app[name]
    app.command("pitboss_dev.bench.command:bench", name="bench")
    for command in app.resolved_commands().values():
        command.default_parameter = app.default_parameter  # applies to groups when they run, but not in generated help
    print(app.generate_docs(output_format="markdown"))


def _is_ours(entry: EntryPoint) -> bool:
    return entry.dist is not None and entry.dist.name == DISTRIBUTION
