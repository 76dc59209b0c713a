"""`SignIn`: which credentials belong to whom. A start token for the person who started the server, and sessions made from it."""

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field

from pitboss.server.access.caller import Caller

OWNER = "local"
"""The owner of what the command line makes; the person who starts the server on this machine is the same."""


def digest(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


@dataclass
class SignIn:
    """The credentials of one server."""

    start_token_digest: str
    random_hex: Callable[[int], str]
    link_used: bool = False
    sessions: dict[str, Caller] = field(default_factory=dict)

    def by_token(self, token: str) -> Caller | None:
        """The caller with a bearer token."""
        if hmac.compare_digest(digest(token), self.start_token_digest):
            return Caller(OWNER, OWNER, "admin")
        return None

    def by_session(self, session: str) -> Caller | None:
        """The caller with a session cookie."""
        return self.sessions.get(digest(session))

    def exchange(self, token: str) -> str | None:
        """A new session for the one-time link; None if the token is wrong or was used."""
        if self.link_used or not hmac.compare_digest(digest(token), self.start_token_digest):
            return None
        self.link_used = True
        session = self.random_hex(32)
        self.sessions[digest(session)] = Caller(OWNER, OWNER, "admin", self.random_hex(16))
        return session
