"""Users and their tokens, as the command line and the server add and change them. A password or token is stored by its hash."""

import hashlib
from collections.abc import Callable, Collection
from typing import Any

from pitboss.bootstrap.machine import new_id, random_hex
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import DAY_MS, HOUR_MS, Instant, iso
from pitboss.core.role import ROLES, Role
from pitboss.store.api_tokens import ApiToken, ApiTokens
from pitboss.store.passwords import SALT_BYTES, check_password, hash_password
from pitboss.store.sessions import Sessions
from pitboss.store.users import User, UserChanges, Users

TOKEN_MARK = "pb_"
TOKEN_BYTES = 32
MOST_DAYS = 3_650


def digest_of(secret: str) -> str:
    """What is stored of a random secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def least_role(first: Role, second: Role) -> Role:
    """The role of the two that may do less."""
    return ROLES[min(ROLES.index(first), ROLES.index(second))]


class Accounts:
    """The users, sessions and tokens of a workspace."""

    def __init__(
        self,
        workspace: Workspace,
        now: Callable[[], Instant] | None = None,
        random: Callable[[int], str] = random_hex,
    ) -> None:
        settings, database = workspace.settings, workspace.database
        self.now = now or workspace.now
        self.random_hex = random
        self.users = Users(database, self.now)
        self.sessions = Sessions(
            database, self.now, int(settings.session_idle_h * HOUR_MS), int(settings.session_max_h * HOUR_MS)
        )
        self.tokens = ApiTokens(database, self.now, new_id)

    def add_user(self, name: str, role: Role, password: str, owner: str = "") -> User:
        """Add a user. Raises `UserError` for a password that is too short, or an invalid name."""
        check_password(password)
        return self.users.add(name, role, self._hash(password), owner)

    def change_user(
        self,
        name: str,
        *,
        role: Role | None = None,
        disabled: bool | None = None,
        owner: str | None = None,
        password: str | None = None,
        keep_session: str = "",
    ) -> User:
        """Change a user. Its sessions end with a new password, and when it is disabled; `keep_session` is the digest of one
        that stays.
        """
        changes: UserChanges = {}
        if role is not None:
            changes["role"] = role
        if disabled is not None:
            changes["disabled"] = disabled
        if owner is not None:
            changes["owner"] = owner
        if password is not None:
            check_password(password)
            changes["password"] = self._hash(password)
        user = self.users.change(name, **changes)
        if password is not None or disabled:
            self.sessions.end_all(name, keep_session)
        return user

    def create_token(
        self, user: User, label: str, role: Role, days: int | None, scopes: Collection[str] | None = None
    ) -> tuple[str, ApiToken]:
        """A new token of a user and what is stored of it. It may do no more than its user; `scopes` limit it further."""
        if days is not None and not 1 <= days <= MOST_DAYS:
            raise UserError(f"a token is valid for 1 to {MOST_DAYS} days", "leave it out for one without an end")
        token = TOKEN_MARK + self.random_hex(TOKEN_BYTES)
        expires_at = None if days is None else self.now() + days * DAY_MS
        at_most = least_role(role, user.role)
        return token, self.tokens.add(digest_of(token), user.name, label, at_most, expires_at, scopes)

    def _hash(self, password: str) -> str:
        return hash_password(password, self.random_hex(SALT_BYTES))


def user_document(user: User) -> dict[str, Any]:
    """A user for a list."""
    return {
        "name": user.name,
        "owner": user.owner,
        "role": user.role,
        "disabled": user.disabled,
        "created_at": iso(user.created_at),
    }


def token_document(token: ApiToken, now: Instant) -> dict[str, Any]:
    """A token for a list: never the token itself."""
    state = "valid" if token.is_valid(now) else "revoked" if token.revoked else "expired"
    return {
        "id": token.id,
        "user": token.user_name,
        "label": token.label,
        "role": token.role,
        "scopes": None if token.scopes is None else sorted(token.scopes),
        "state": state,
        "created_at": iso(token.created_at),
        "last_used_at": None if token.last_used_at is None else iso(token.last_used_at),
        "expires_at": None if token.expires_at is None else iso(token.expires_at),
    }
