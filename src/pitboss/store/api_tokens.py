"""Tokens of the API, found by their digest: the token itself is shown once and not stored."""

import hmac
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pitboss.core.errors import UserError
from pitboss.core.instant import MINUTE_MS, Instant
from pitboss.core.role import Role
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.schema import api_tokens

USED_EVERY_MS = MINUTE_MS
"""How exactly the time of the last use is stored."""
LONGEST_LABEL = 200


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A token. It may do what its `role`, the role of its user and its `scopes` all allow; without scopes the roles alone count."""

    id: str
    digest: str
    user_name: str
    label: str
    role: Role
    created_at: Instant
    last_used_at: Instant | None
    expires_at: Instant | None
    revoked: bool
    scopes: frozenset[str] | None = None

    def is_valid(self, at: Instant) -> bool:
        """Whether it is accepted at an instant."""
        return not self.revoked and (self.expires_at is None or at < self.expires_at)


class ApiTokens:
    """The tokens in a database."""

    def __init__(self, database: Database, now: Callable[[], Instant], new_id: Callable[[], str]) -> None:
        self._database = database
        self._now = now
        self._new_id = new_id

    def add(
        self,
        digest: str,
        user_name: str,
        label: str,
        role: Role,
        expires_at: Instant | None,
        scopes: Collection[str] | None = None,
    ) -> ApiToken:
        """Store a token by its digest."""
        label = " ".join(label.replace("\0", "").split())
        if not 0 < len(label) <= LONGEST_LABEL:
            raise UserError(f"the label of a token has from 1 to {LONGEST_LABEL} characters", "say what it is for")
        now = self._now()
        if expires_at is not None and expires_at <= now:
            raise UserError("the token would have expired already", "choose a later end")
        row = {
            "id": self._new_id(),
            "digest": digest,
            "user_name": user_name,
            "label": label,
            "role": role,
            "created_at": now,
            "last_used_at": None,
            "expires_at": expires_at,
            "revoked": False,
            "scopes": None if scopes is None else " ".join(sorted(scopes)),
        }
        with self._database.write() as connection:
            rows.add(connection, api_tokens, row)
        return _token(row, sealed=False)

    def find(self, digest: str) -> ApiToken | None:
        """The valid token with this digest. Finding it counts as a use."""
        with self._database.read() as connection:
            row = rows.fetch(connection, api_tokens, {"digest": digest})
        if row is None or not rows.intact(api_tokens, row) or not hmac.compare_digest(row["digest"], digest):
            return None
        token, now = _token(row), self._now()
        if not token.is_valid(now):
            return None
        if token.last_used_at is None or now - token.last_used_at >= USED_EVERY_MS:
            self._change(token.id, {"last_used_at": now})
        return token

    def list(self, user_name: str | None = None) -> Sequence[ApiToken]:
        """The tokens of a user, or of all, newest first."""
        query = rows.raw(api_tokens)
        if user_name is not None:
            query = query.where(api_tokens.c.user_name == user_name)
        with self._database.read() as connection:
            stored = rows.fetch_all(connection, query.order_by(api_tokens.c.created_at.desc(), api_tokens.c.id))
        return [_token(row) for row in stored]

    def revoke(self, token_id: str, user_name: str | None = None) -> ApiToken:
        """Revoke a token; with `user_name` only one of that user."""
        with self._database.read() as connection:
            row = rows.fetch(connection, api_tokens, {"id": token_id})
        if row is None or (user_name is not None and row["user_name"] != user_name):
            raise UserError(f"there is no token {token_id!r}", "`pitboss tokens list` lists them")
        self._change(token_id, {"revoked": True})
        return _token({**row, "revoked": True}, sealed=False)

    def _change(self, token_id: str, changes: Mapping[str, object]) -> None:
        with self._database.write() as connection:
            row = rows.fetch(connection, api_tokens, {"id": token_id}, lock=True)
            if row is not None:
                rows.change(connection, api_tokens, row, changes)


def _token(row: Mapping[str, Any], sealed: bool = True) -> ApiToken:
    if sealed:
        rows.require_intact(api_tokens, row)
    values = {name: row[name] for name in rows.sealed_columns(api_tokens)}
    scopes = None if values["scopes"] is None else frozenset(values["scopes"].split())
    return ApiToken(**{**values, "revoked": bool(values["revoked"]), "scopes": scopes})
