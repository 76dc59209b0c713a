"""`pitboss tokens …`: tokens with which programs use the API of `pitboss serve`."""

from typing import Annotated

from cyclopts import App

from pitboss.core.errors import UserError
from pitboss.core.role import ROLES, Role
from pitboss.core.suggestion import suggestion
from pitboss.terminal import screen
from pitboss.terminal.options import Json, WholeNumber, option
from pitboss.terminal.workspace_options import Location

app = App(name="tokens", help="Tokens for programs that use the API. A token is shown once and stored by its digest.")


@app.command
def create(
    label: str,
    /,
    *,
    role: Annotated[Role, option("--role", f"What the token may do at most: {', '.join(ROLES)}.")] = "viewer",
    user: Annotated[str, option("--user", "Whose token it is. Default: who works at this machine.")] = "local",
    scope: Annotated[
        list[str] | None,
        option(
            "--scope",
            "Limit it to this area, such as runs:read or runs:write. May be repeated. Default: what its role allows.",
        ),
    ] = None,
    days: Annotated[WholeNumber | None, option("--days", "After how many days it expires. Default: never.")] = None,
    json: Json = False,
    location: Location,
) -> int:
    """Create a token and print it, once. Send it as `Authorization: Bearer TOKEN`.

    For example:

        pitboss tokens create "nightly backtests" --role author --scope runs:write --days 90

    Parameters
    ----------
    label
        What it is for.
    """
    from pitboss.bootstrap.accounts import Accounts, token_document
    from pitboss.store.audit_log import AuditLog

    if scope:
        from pitboss.server.access.scopes import check_scopes
        from pitboss.server.route_table import api_scopes

        check_scopes(scope, api_scopes())
    with location.workspace() as workspace:
        accounts = Accounts(workspace)
        token_user = accounts.users.get(user)
        if token_user is None:
            raise UserError(
                f"there is no user {user!r}", suggestion(user, [each.name for each in accounts.users.list()], "users:")
            )
        token, stored = accounts.create_token(token_user, label, role, days, scope or None)
        limits = " ".join(sorted(stored.scopes or ()))
        AuditLog(workspace.database, workspace.now).append(
            "local", "terminal", "tokens create", stored.id, f"{stored.role} of {user} {limits}".rstrip()
        )
        document = {**token_document(stored, workspace.now()), "token": token}
    if json:
        screen.put_json(document)
        return 0
    screen.put(token)
    within = f", only {limits}" if limits else ""
    screen.note(f"token {stored.id} of {user}, role {stored.role}{within}: it is not shown again")
    return 0


@app.command(name="list")
def list_(*, json: Json = False, location: Location) -> int:
    """List the tokens: label, role, when they were used and when they expire. Never the tokens themselves.

    For example:

        pitboss tokens list
    """
    from pitboss.bootstrap.accounts import Accounts, token_document

    with location.existing_workspace() as workspace:
        rows = [token_document(token, workspace.now()) for token in Accounts(workspace).tokens.list()]
    if json:
        screen.put_json(rows)
        return 0
    if not rows:
        screen.note("there are no tokens yet; `pitboss tokens create LABEL` creates one")
        return 0
    names = ("id", "user", "role", "scopes", "state", "label", "last_used_at", "expires_at")
    cells = [
        tuple(" ".join(row[name] or ["all"]) if name == "scopes" else str(row[name] or "never") for name in names)
        for row in rows
    ]
    screen.put_table(
        ("token", "user", "role", "scopes", "state", "label", "used", "expires"), cells, folds=(3, 5), drop=(6, 3, 7)
    )
    return 0


@app.command
def revoke(token: str, /, *, location: Location) -> int:
    """Refuse a token from now on.

    For example:

        pitboss tokens revoke 3f2a9c01d4e5

    Parameters
    ----------
    token
        Its id, as `pitboss tokens list` shows it.
    """
    from pitboss.bootstrap.accounts import Accounts
    from pitboss.store.audit_log import AuditLog

    with location.workspace() as workspace:
        stored = Accounts(workspace).tokens.revoke(token)
        AuditLog(workspace.database, workspace.now).append("local", "terminal", "tokens revoke", stored.id)
    screen.note(f"token {stored.id} is revoked")
    return 0
