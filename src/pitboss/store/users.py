"""The users of a server: their roles, whose rows they see, and the hashes of their passwords. Users are disabled, never deleted."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from sqlalchemy import select

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.core.role import Role
from pitboss.core.suggestion import suggestion
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.schema import LOCAL, users

NAME = re.compile(r"[a-z0-9][a-z0-9._@-]{0,63}")


@dataclass(frozen=True, slots=True)
class User:
    """A user. `owner` is whose rows it sees, `password` the hash (empty: there is none to sign in with)."""

    name: str
    owner: str
    role: Role
    password: str
    created_at: Instant
    disabled: bool


MACHINE_USER = User(LOCAL, LOCAL, "admin", "", 0, disabled=False)
"""The user of the command line, and of the link that `pitboss serve` prints. It has no row."""


class UserChanges(TypedDict, total=False):
    """What can be changed of a user."""

    owner: str
    role: Role
    password: str
    disabled: bool


class Users:
    """The users in a database."""

    def __init__(self, database: Database, now: Callable[[], Instant]) -> None:
        self._database = database
        self._now = now

    def add(self, name: str, role: Role, password: str, owner: str = "") -> User:
        """Add a user with the hash of a password. By default it sees the rows of its own name."""
        check_user_name(name)
        if name == LOCAL:
            raise UserError(
                f"{LOCAL} is the name of the local user of the machine", f"choose another name, with {LOCAL} as owner"
            )
        if owner:
            check_user_name(owner)
        with self._database.write() as connection:
            self._database.lock_name(connection, f"user/{name}")
            if rows.fetch(connection, users, {"name": name}) is not None:
                raise UserError(f"there is a user {name} already", "change it, or choose another name")
            user = User(name, owner or name, role, password, self._now(), disabled=False)
            rows.add(connection, users, {column: getattr(user, column) for column in rows.sealed_columns(users)})
        return user

    def get(self, name: str) -> User | None:
        """A user; None if there is none of that name. The person at the machine is always there."""
        with self._database.read() as connection:
            row = rows.fetch(connection, users, {"name": name})
        if row is None:
            return MACHINE_USER if name == LOCAL else None
        return _user(row)

    def change(self, name: str, **changes: Unpack[UserChanges]) -> User:
        """Change a user."""
        with self._database.write() as connection:
            row = rows.fetch(connection, users, {"name": name}, lock=True)
            if row is None:
                names = connection.execute(select(users.c.name).order_by(users.c.name)).scalars().all()
                raise UserError(f"there is no user {name!r}", suggestion(name, names, "users:"))
            if changes:
                rows.change(connection, users, row, changes)
        return _user({**row, **changes}, sealed=False)

    def list(self) -> Sequence[User]:
        """All users by name."""
        with self._database.read() as connection:
            return [_user(row) for row in rows.fetch_all(connection, rows.raw(users).order_by(users.c.name))]

    def can_sign_in(self) -> bool:
        """Whether any user can sign in with a password."""
        query = select(users.c.name).where(users.c.disabled.is_(False), users.c.password != "").limit(1)
        with self._database.read() as connection:
            return connection.execute(query).first() is not None


def check_user_name(name: str) -> None:
    """Raise unless a text can be the name of a user or an owner."""
    if not NAME.fullmatch(name):
        raise UserError(
            "a user's name has up to 64 lower-case letters, digits and . _ @ -, and begins with a letter or digit",
            "for example anna, or anna@example.org",
        )


def _user(row: Mapping[str, Any], sealed: bool = True) -> User:
    if sealed:
        rows.require_intact(users, row)
    values = {column: row[column] for column in rows.sealed_columns(users)}
    return User(**{**values, "disabled": bool(values["disabled"])})
