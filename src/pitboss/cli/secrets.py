"""`pitboss secrets …`: provider keys, stored encrypted. Values are read from a prompt or a pipe and never printed."""

from typing import Annotated

from cyclopts import App, Parameter

from pitboss.core.errors import UserError
from pitboss.core.suggestion import did_you_mean, nearest
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
    from pitboss.bootstrap.key_entries import in_environment, set_key
    from pitboss.bootstrap.keys import owners, variable_of
    from pitboss.bootstrap.mcp_servers import key_users
    from pitboss.terminal.question import hidden_line

    if more or "=" in name:
        raise UserError(
            "a value is never given on the command line, where it stays in the shell's history",
            "give the name alone: the value is read from a prompt or a pipe",
        )
    variable = variable_of(name)
    value = hidden_line(f"value of {variable}: ", "pipe the key alone")
    _, replaced = set_key(location.settings(), variable, value)
    screen.note(f"{variable} is {'replaced' if replaced else 'stored'}")
    if variable not in owners() and variable not in key_users(location.settings()):
        similar = nearest(variable, [*owners(), *key_users(location.settings())], cutoff=0.8)
        hint = did_you_mean(similar, "`pitboss models list` and `pitboss mcp list` list those in use")
        screen.note(f"no provider of this version uses {variable}; {hint}")
    if in_environment(variable):
        screen.note(f"{variable} is also an environment variable, which takes precedence")
    return 0


@app.command(name="list")
def list_(*, json: Json = False, location: Location) -> int:
    """List the stored keys: name, provider, hosts they are sent to, and since when. Never their values.

    For example:

        pitboss secrets list
    """
    from pitboss.bootstrap.key_entries import stored_keys

    rows = stored_keys(location.settings())
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
        folds=(1, 2, 4),
        drop=(3, 1),
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
    from pitboss.bootstrap.key_entries import remove_key

    variable = remove_key(location.settings(), name)
    screen.note(f"{variable} is deleted")
    return 0
