"""`pitboss venues` lists the installed venues; `pitboss <venue> …` contains the commands of a single venue."""

from importlib import import_module

from cyclopts import App

from pitboss.cli.backtest import command_for
from pitboss.cli.venue_serve import serve_command
from pitboss.runs.venues import installed, venue_named
from pitboss.terminal import screen
from pitboss.terminal.options import Json

venues_app = App(name="venues", help="List the venues that are installed.")


@venues_app.command(name="list")
def list_(*, json: Json = False) -> int:
    """List every installed venue with the package it comes from and its commands.

    For example:

        pitboss venues list
    """
    rows = [
        {
            "name": venue.name,
            "package": venue.distribution,
            "version": venue.version,
            "commands": commands_of(venue.name),
            "summary": venue_named(venue.name).summary,
        }
        for venue in installed().values()
    ]
    if json:
        screen.put_json(rows)
        return 0
    headings = ("name", "package", "version", "commands", "description")
    cells = [(row["name"], row["package"], row["version"], ", ".join(row["commands"]), row["summary"]) for row in rows]
    screen.put_table(headings, cells, folds=(3, 4), drop=(1, 2))
    return 0


def commands_of(name: str) -> list[str]:
    """The names of a venue's commands."""
    return sorted(command for command in venue_app(name).resolved_commands() if not command.startswith("-"))


def venue_app(name: str) -> App:
    """The command group of a venue: its own commands, `backtest` with its options, and `serve` if it has routes."""
    venue = venue_named(name)
    if venue.commands:
        module, _, attribute = venue.commands.partition(":")
        app = getattr(import_module(module), attribute)
    else:
        app = App(name=name)
    app.help = venue.help_line()
    if "backtest" not in app.resolved_commands():
        app.command(command_for([venue], f"{name} backtest"), name="backtest")
    if venue.routes and "serve" not in app.resolved_commands():
        app.command(serve_command(venue), name="serve")
    return app


def __getattr__(name: str) -> App:
    """The command group of a venue by its name, built on first use."""
    if name in installed():
        return venue_app(name)
    raise AttributeError(name)
