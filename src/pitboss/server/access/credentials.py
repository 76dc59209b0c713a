"""`Credentials`: which credentials belong to whom: the start token, sessions, tokens of the API, names with passwords.

What a caller may do is in `caller.py`; `gate.py` asks here at every request, so that an answer is remembered for a moment.
"""

import hmac
from collections.abc import Callable
from threading import Lock

from pitboss.bootstrap.accounts import Accounts, digest_of, least_role
from pitboss.core.instant import MINUTE_MS, Instant
from pitboss.server.access.caller import Caller
from pitboss.server.access.rate_limit import RateLimit
from pitboss.server.access.sign_in import SignIn
from pitboss.server.problem import Problem
from pitboss.store.passwords import NO_PASSWORD, is_password
from pitboss.store.schema import LOCAL
from pitboss.store.users import User

SECRET_BYTES = 32
REMEMBERED_MS = 1_000
"""How long a session or token is not looked up again: the requests of one page. What is revoked elsewhere ends after it."""
MOST_REMEMBERED = 5_000
ATTEMPTS_MS = 15 * MINUTE_MS
PER_USER_AND_ADDRESS, PER_ADDRESS, PER_USER = 10, 50, 100
"""Attempts to sign in within that time."""


class Credentials:
    """The credentials that a server accepts. Used by all threads."""

    def __init__(self, accounts: Accounts, sign_in: SignIn) -> None:
        self.accounts = accounts
        self._now = accounts.now
        self._sign_in = sign_in
        self._attempts = RateLimit(accounts.now, ATTEMPTS_MS)
        self._lock = Lock()
        self._remembered: dict[str, tuple[Instant, Caller]] = {}

    def by_token(self, token: str) -> Caller | None:
        """The caller with a bearer token."""
        if self._sign_in.is_start_token(token):
            return Caller(LOCAL, LOCAL, "admin")
        return self._once(f"token {digest_of(token)}", lambda: self._find_token(digest_of(token)))

    def by_session(self, secret: str) -> Caller | None:
        """The caller with a session cookie."""
        return self._once(f"session {digest_of(secret)}", lambda: self._find_session(secret))

    def open_link(self, token: str) -> str | None:
        """The secret of a new session for the one-time link; None if the token is wrong or was used."""
        return self._begin(LOCAL) if self._sign_in.use_link(token) else None

    def sign_in(self, name: str, password: str, address: str) -> str:
        """The secret of a new session for a user with a password. Raises `Problem`, in the same words for every reason."""
        both = f"both {name}\n{address}"
        self._count({both: PER_USER_AND_ADDRESS, f"from {address}": PER_ADDRESS, f"user {name}": PER_USER})
        if not self._fits(self.accounts.users.get(name), password):
            raise Problem(401, "unauthorized", "the name or the password is wrong")
        self._attempts.forget(both)
        return self._begin(name)

    def sign_out(self, secret: str) -> None:
        """End a session."""
        self.accounts.sessions.end(digest_of(secret))
        self.forget()

    def check_own_password(self, name: str, password: str, address: str) -> None:
        """Raise unless this is the password of a user who is signed in."""
        both = f"both {name}\n{address}"
        self._count({both: PER_USER_AND_ADDRESS})
        if not self._fits(self.accounts.users.get(name), password):
            raise Problem(403, "forbidden", "the present password is wrong")
        self._attempts.forget(both)

    def forget(self) -> None:
        """Look everything up again: users, sessions or tokens have changed."""
        with self._lock:
            self._remembered.clear()

    def _count(self, limits: dict[str, int]) -> None:
        wait_s = self._attempts.wait_s(limits)
        if wait_s:
            hint = f"try again in {wait_s} s"
            raise Problem(429, "too_many_requests", "too many attempts to sign in", hint, retry_after_s=wait_s)

    def _fits(self, user: User | None, password: str) -> bool:
        """Whether a user may sign in with a password. Takes equally long if there is no such user."""
        stored = user.password if user is not None and not user.disabled else ""
        fits = is_password(password, stored or NO_PASSWORD)
        return bool(stored) and fits

    def _begin(self, name: str) -> str:
        secret = self.accounts.random_hex(SECRET_BYTES)
        self.accounts.sessions.begin(digest_of(secret), name)
        return secret

    def _find_session(self, secret: str) -> Caller | None:
        session = self.accounts.sessions.find(digest_of(secret))
        user = None if session is None else self._active(session.user_name)
        return None if user is None else Caller(user.name, user.owner, user.role, csrf_of(secret))

    def _find_token(self, token_digest: str) -> Caller | None:
        token = self.accounts.tokens.find(token_digest)
        user = None if token is None else self._active(token.user_name)
        if token is None or user is None:
            return None
        role = least_role(token.role, user.role)
        return Caller(user.name, user.owner, role, token_id=token.id, scopes=token.scopes)

    def _active(self, name: str) -> User | None:
        user = self.accounts.users.get(name)
        return None if user is None or user.disabled else user

    def _once(self, key: str, find: Callable[[], Caller | None]) -> Caller | None:
        now = self._now()
        with self._lock:
            remembered = self._remembered.get(key)
        if remembered is not None and 0 <= now - remembered[0] < REMEMBERED_MS:
            return remembered[1]
        caller = find()
        if caller is None:
            return None
        with self._lock:
            if len(self._remembered) >= MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[key] = now, caller
        return caller


def csrf_of(secret: str) -> str:
    """What a form of a session must send back. It follows from the secret of the session, which no page knows."""
    return digest_of(f"csrf {secret}")[:32]


def is_csrf(given: str, expected: str) -> bool:
    """Whether a request carries what its session expects."""
    return bool(expected) and hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())
