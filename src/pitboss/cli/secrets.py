"""`pitboss secrets …`: provider keys, stored encrypted. Values are read from a prompt or a pipe and never printed."""

import sys
from getpass import getpass
from typing import Annotated

from cyclopts import App, Parameter

from pitboss.core.errors import UserError
from pitboss.core.instant import iso
from pitboss.terminal import screen
from pitboss.terminal.options import Json
from pitboss.terminal.workspace_options import Location

app = App(name="secrets", help="Store API keys of model providers and MCP servers, encrypted. Values are never shown.")

Surplus = Annotated[str, Parameter(show=False)]
"""Surplus arguments. They may contain the secret, so no message may repeat them."""


@app.command(name="set")
def set_(name: str, /, *more: Surplus, location: Location) -> int:
    """Store a key. Its value is read from a hidden prompt or a pipe, never from the command line.

    For example:

        pitboss secrets set groq
        pass show groq | pitboss secrets set GROQ_API_KEY

    Parameters
    ----------
    name
        A provider, such as groq, or the environment variable of its key, such as GROQ_API_KEY.
    """
    from pitboss.bootstrap.keys import open_secrets, owners, variable_of
    from pitboss.bootstrap.mcp_servers import key_users
    from pitboss.bootstrap.redact import REDACTOR

    if more or "=" in name:
        raise UserError(
            "a value is never given on the command line, where it stays in the shell's history",
            "give the name alone: the value is read from a prompt or a pipe",
        )
    variable = variable_of(name)
    store = open_secrets(location.settings().home)
    value = _value(variable)
    REDACTOR.add(value)
    replaced = store.set(variable, value)
    screen.note(f"{variable} is {'replaced' if replaced else 'stored'}")
    if variable not in owners() and variable not in key_users(location.settings()):
        screen.note(
            f"no provider of this version uses {variable}; `pitboss models list` and `pitboss mcp list` list those in use"
        )
    if _in_environment(variable):
        screen.note(f"{variable} is also an environment variable, which takes precedence")
    return 0


@app.command(name="list")
def list_(*, json: Json = False, location: Location) -> int:
    """List the stored keys: name, provider, hosts they are sent to, and since when. Never their values.

    For example:

        pitboss secrets list
    """
    from pitboss.bootstrap.keys import open_secrets, owners
    from pitboss.bootstrap.mcp_servers import key_users

    users = {**key_users(location.settings()), **owners()}
    rows = [
        {
            "name": name,
            "providers": list(users.get(name, ((), ()))[0]),
            "hosts": list(users.get(name, ((), ()))[1]),
            "set_at": iso(set_at),
            "in_environment": _in_environment(name),
        }
        for name, set_at in open_secrets(location.settings().home).names().items()
    ]
    if json:
        screen.put_json(rows)
        return 0
    if not rows:
        screen.note("no keys are stored here yet; `pitboss secrets set groq` stores one")
        return 0
    screen.put_table(
        ("name", "provider", "sent to", "set", "note"),
        [
            (
                row["name"],
                ", ".join(row["providers"]) or "none",
                ", ".join(row["hosts"]) or "nowhere",
                row["set_at"],
                "the environment variable takes precedence" if row["in_environment"] else "",
            )
            for row in rows
        ],
        folds=(2, 4),
    )
    return 0


@app.command
def rm(name: str, /, *, location: Location) -> int:
    """Delete a key.

    For example:

        pitboss secrets rm groq

    Parameters
    ----------
    name
        A provider or a variable, as `pitboss secrets list` shows it.
    """
    from pitboss.bootstrap.keys import open_secrets, variable_of

    variable = variable_of(name)
    open_secrets(location.settings().home).remove(variable)
    screen.note(f"{variable} is deleted")
    return 0


def _value(variable: str) -> str:
    """Read the value from a hidden prompt or a pipe."""
    try:
        if sys.stdin is not None and sys.stdin.isatty():
            return getpass(f"value of {variable}: ", stream=None).strip()
        lines = sys.stdin.read(20_000).strip().splitlines() if sys.stdin is not None else []
    except (EOFError, OSError, UnicodeDecodeError):
        lines = []
    if len(lines) > 1:
        raise UserError("the input has more than one line", "pipe the key alone")
    return lines[0] if lines else ""


def _in_environment(variable: str) -> bool:
    from pitboss.bootstrap.machine import environment

    return bool((environment(variable) or "").strip())
