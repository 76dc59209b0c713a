"""`pitboss users …`: who may sign in to `pitboss serve`. Passwords are read from a prompt or a pipe, never from an argument."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from pitboss.core.errors import UserError
from pitboss.core.role import ROLES, Role
from pitboss.terminal import screen
from pitboss.terminal.options import Json, option
from pitboss.terminal.workspace_options import Location

if TYPE_CHECKING:
    from pitboss.bootstrap.workspace import Workspace
    from pitboss.store.users import User

app = App(name="users", help="Users of the web app and the API: names, roles, passwords.")

Surplus = Annotated[str, Parameter(show=False)]
"""Surplus arguments. They may be a password, so no message may repeat them."""
RoleOption = Annotated[Role, option("--role", f"What the user may do: {', '.join(ROLES)}; each includes those before.")]


@app.command
def add(
    name: str,
    /,
    *more: Surplus,
    role: RoleOption,
    owner: Annotated[str, option("--owner", "Whose skills and runs the user sees. Default: its own.")] = "",
    location: Location,
) -> int:
    """Add a user. The password is read from a hidden prompt or a pipe, never from the command line.

    A user sees and changes only what belongs to its owner; `--owner local` is what the command line makes.

    For example:

        pitboss users add anna --role admin
        pass show pitboss | pitboss users add watcher --role viewer --owner local

    Parameters
    ----------
    name
        Lower-case letters, digits and . _ @ -
    """
    from pitboss.bootstrap.accounts import Accounts

    _refuse_surplus(more)
    with location.workspace() as workspace:
        user = Accounts(workspace).add_user(name, role, _password(), owner)
        _enter(workspace, "users add", user, f"{user.role} of {user.owner}")
    screen.note(f"{user.name} is added as {user.role}, and sees what belongs to {user.owner}")
    return 0


@app.command(name="list")
def list_(*, json: Json = False, location: Location) -> int:
    """List the users with their roles.

    For example:

        pitboss users list
    """
    from pitboss.bootstrap.accounts import Accounts, user_document

    with location.existing_workspace() as workspace:
        rows = [user_document(user) for user in Accounts(workspace).users.list()]
    if json:
        screen.put_json(rows)
        return 0
    if not rows:
        screen.note("there are no users yet; `pitboss users add NAME --role admin` adds one")
        return 0
    names = ("name", "role", "owner", "state", "created")
    cells = [
        (row["name"], row["role"], row["owner"], "disabled" if row["disabled"] else "", row["created_at"])
        for row in rows
    ]
    screen.put_table(names, cells)
    return 0


@app.command
def role(name: str, role: Role, /, *, location: Location) -> int:
    """Change what a user may do.

    For example:

        pitboss users role anna operator
    """
    return _change(location, name, "role", role=role)


@app.command
def password(name: str, /, *more: Surplus, location: Location) -> int:
    """Set a new password, read from a hidden prompt or a pipe. All sessions of the user end.

    For example:

        pitboss users password anna
    """
    _refuse_surplus(more)
    return _change(location, name, "password", password=_password())


@app.command
def disable(name: str, /, *, location: Location) -> int:
    """End the sessions of a user, and refuse its password and tokens. What it owns stays.

    For example:

        pitboss users disable anna
    """
    return _change(location, name, "disable", disabled=True)


@app.command
def enable(name: str, /, *, location: Location) -> int:
    """Accept a disabled user again.

    For example:

        pitboss users enable anna
    """
    return _change(location, name, "enable", disabled=False)


def _change(
    location: Location,
    name: str,
    what: str,
    *,
    role: Role | None = None,
    disabled: bool | None = None,
    password: str | None = None,
) -> int:
    from pitboss.bootstrap.accounts import Accounts

    with location.workspace() as workspace:
        user = Accounts(workspace).change_user(name, role=role, disabled=disabled, password=password)
        _enter(workspace, f"users {what}", user, user.role if what == "role" else "")
    screen.note(f"{user.name} is changed")
    return 0


def _enter(workspace: "Workspace", action: str, user: "User", detail: str = "") -> None:
    from pitboss.store.audit_log import AuditLog

    AuditLog(workspace.database, workspace.now).append("local", "terminal", action, user.name, detail)


def _refuse_surplus(more: tuple[str, ...]) -> None:
    if more:
        raise UserError(
            "a password is never given on the command line, where it stays in the shell's history",
            "give the name alone: the password is read from a prompt or a pipe",
        )


def _password() -> str:
    from pitboss.terminal.question import hidden_line

    return hidden_line("password: ", "pipe the password alone")
