"""Prints the help of every command as Markdown: `python -m pitboss_dev.docs.command_tree`.

A process of its own, because it changes the tree of commands before it is built, so that the page is the same on every
machine: venues and commands of other installed packages are left out, and `bench` is that of this package whether or not it
is installed.
"""

from pitboss.runs import venues
from pitboss_dev.docs.venue_notes import documented_venues


def main() -> None:
    """Print the page."""
    names = {venue.name for venue in documented_venues()}
    documented = {name: entry for name, entry in venues.installed().items() if name in names}
    venues.installed = lambda: documented
    from pitboss.cli.commands import COMMANDS, app

    for name in list(app):
        if not name.startswith("-") and name not in COMMANDS and name not in names:
            del app[name]
    app.command("pitboss_dev.bench.command:bench", name="bench")
    print(app.generate_docs(output_format="markdown"))


if __name__ == "__main__":
    main()
