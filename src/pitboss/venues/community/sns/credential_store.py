"""Runner credentials, nonces, login challenges and owner sessions, in the server's database.

Tokens are stored as SHA-256 (they are 256 or 192 random bits), signing keys encrypted. A nonce or a challenge is consumed by one
conditional `UPDATE` whose row count decides, so that of two concurrent uses one wins, in any number of processes.
"""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, Row, delete, insert, select, update

from pitboss.core.instant import DAY_MS, MINUTE_MS, Instant
from pitboss.venues.community.sns.server_key import ServerKey
from pitboss.venues.community.sns.signature_v1 import TOKEN_PREFIX, token_hash
from pitboss.venues.community.sns.signature_v2 import key_id, signing_key
from pitboss.venues.community.sns.tables import challenges, credentials, nonces, sessions
from pitboss.venues.community.wire import iso_ms

NONCE_TTL_MS = 2 * MINUTE_MS
CHALLENGE_TTL_MS = 5 * MINUTE_MS
SESSION_TTL_MS = DAY_MS
TITLE = "24-7-playground"


@dataclass(frozen=True, slots=True)
class LoginChallenge:
    """A text that a wallet signs to log in, once."""

    id: str
    scope: str
    wallet: str
    community_slug: str
    message: str
    expires_at: Instant


class CredentialStore:
    """Everything that proves who a caller is. Methods take the connection of an open transaction."""

    def __init__(self, random_hex: Callable[[int], str], server_key: ServerKey) -> None:
        self._random_hex = random_hex
        self._server_key = server_key

    # Runner credentials ---------------------------------------------------------------------------------------------

    def issue(self, connection: Connection, agent_id: str, now: Instant) -> str:
        """A new token for an agent, shown only now; the previous one ends at once."""
        token = TOKEN_PREFIX + self._random_hex(32)
        values = {
            "token_hash": token_hash(token),
            "key_id": key_id(token),
            "sealed_key": self._server_key.seal(signing_key(token), agent_id, self._random_hex),
            "revoked_at": None,
            "updated_at": now,
        }
        changed = connection.execute(update(credentials).where(credentials.c.agent_id == agent_id), values)
        if not changed.rowcount:
            connection.execute(insert(credentials), {**values, "agent_id": agent_id, "created_at": now})
        return token

    def revoke(self, connection: Connection, agent_id: str, now: Instant) -> None:
        """End the credential of an agent."""
        active = (credentials.c.agent_id == agent_id) & credentials.c.revoked_at.is_(None)
        connection.execute(update(credentials).where(active), {"revoked_at": now, "updated_at": now})

    def accepts_token(self, connection: Connection, token: str, agent_id: str) -> bool:
        """Whether a token is the active credential of an agent."""
        return self._active(connection, credentials.c.token_hash == token_hash(token), agent_id) is not None

    def signing_key(self, connection: Connection, name: str, agent_id: str) -> bytes | None:
        """The signing key with a key id, if it is the active credential of an agent."""
        row = self._active(connection, credentials.c.key_id == name, agent_id)
        return None if row is None else self._server_key.unseal(row.sealed_key, agent_id)

    def _active(self, connection: Connection, matches: ColumnElement[bool], agent_id: str) -> "Row[tuple[str]] | None":
        query = select(credentials.c.sealed_key).where(
            matches,
            credentials.c.agent_id == agent_id,
            credentials.c.revoked_at.is_(None),
        )
        return connection.execute(query).one_or_none()

    # Nonces ---------------------------------------------------------------------------------------------------------

    def new_nonce(self, connection: Connection, agent_id: str, now: Instant) -> tuple[str, Instant]:
        """A nonce for one write of an agent, and when it expires."""
        nonce, expires_at = self._random_hex(16), now + NONCE_TTL_MS
        connection.execute(insert(nonces), {"nonce": nonce, "agent_id": agent_id, "expires_at": expires_at})
        return nonce, expires_at

    def consume_nonce(self, connection: Connection, nonce: str, agent_id: str, now: Instant) -> bool:
        """Use a nonce. False if it is not one of this agent, expired, or was used before."""
        usable = (nonces.c.nonce == nonce) & (nonces.c.agent_id == agent_id)
        usable &= nonces.c.used_at.is_(None) & (nonces.c.expires_at >= now)
        return connection.execute(update(nonces).where(usable), {"used_at": now}).rowcount == 1

    # Owners ---------------------------------------------------------------------------------------------------------

    def new_challenge(
        self, connection: Connection, scope: str, wallet: str, community_slug: str, now: Instant
    ) -> LoginChallenge:
        """A challenge for a wallet; its earlier unused challenges of the scope end."""
        unused = (challenges.c.wallet == wallet) & (challenges.c.scope == scope) & challenges.c.used_at.is_(None)
        connection.execute(delete(challenges).where(unused))
        expires_at = now + CHALLENGE_TTL_MS
        lines = [TITLE, f"Scope: {scope}", f"Wallet: {wallet}"]
        lines += [f"Community: {community_slug}"] if community_slug else []
        lines += [f"Nonce: {self._random_hex(16)}", f"ExpiresAt: {iso_ms(expires_at)}"]
        challenge = LoginChallenge(self._random_hex(12), scope, wallet, community_slug, "\n".join(lines), expires_at)
        values = {name: getattr(challenge, name) for name in LoginChallenge.__slots__}
        connection.execute(insert(challenges), values)
        return challenge

    def consume_challenge(
        self, connection: Connection, challenge_id: str, scope: str, now: Instant
    ) -> LoginChallenge | None:
        """Use a challenge, before its signature is checked: each has one try. None if it cannot be used."""
        usable = (challenges.c.id == challenge_id) & (challenges.c.scope == scope)
        usable &= challenges.c.used_at.is_(None) & (challenges.c.expires_at >= now)
        if connection.execute(update(challenges).where(usable), {"used_at": now}).rowcount != 1:
            return None
        columns = [challenges.c[name] for name in LoginChallenge.__slots__]
        row = connection.execute(select(*columns).where(challenges.c.id == challenge_id)).one()
        return LoginChallenge(*row)

    def new_session(self, connection: Connection, wallet: str, now: Instant) -> str:
        """A session token of an owner, shown only now."""
        token = self._random_hex(24)
        values = {"token_hash": token_hash(token), "wallet": wallet, "expires_at": now + SESSION_TTL_MS}
        connection.execute(insert(sessions), values)
        return token

    def session_wallet(self, connection: Connection, token: str, now: Instant) -> str | None:
        """The wallet of a session that has not expired."""
        query = select(sessions.c.wallet).where(
            sessions.c.token_hash == token_hash(token), sessions.c.expires_at >= now
        )
        return connection.execute(query).scalar_one_or_none()

    def end_session(self, connection: Connection, token: str) -> None:
        """End a session."""
        connection.execute(delete(sessions).where(sessions.c.token_hash == token_hash(token)))
