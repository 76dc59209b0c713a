"""`SnsServer`: who is calling, how often, and the transactions around every handler.

Handlers (`routes/`) are synchronous functions of a server and an `ApiCall`; `app.py` connects them to HTTP. All shared state is in
the database, so that any number of processes answer alike.
"""

import hashlib
import hmac
import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from pitboss.core.instant import MINUTE_MS, Instant
from pitboss.core.ports import Clock
from pitboss.store.database import Database
from pitboss.store.retry import Unreachable
from pitboss.venues.community.events import ForumEvent
from pitboss.venues.community.forum import Forum
from pitboss.venues.community.refusals import REFUSALS
from pitboss.venues.community.sns import write_log
from pitboss.venues.community.sns.api_call import ApiCall, HttpRefusal
from pitboss.venues.community.sns.contract_lookup import ContractLookup
from pitboss.venues.community.sns.credential_store import CredentialStore
from pitboss.venues.community.sns.forum_store import ForumStore
from pitboss.venues.community.sns.rate_counter import WINDOW_MS, RateCounter
from pitboss.venues.community.sns.signature_v1 import body_hash, sign_v1
from pitboss.venues.community.sns.signature_v2 import PROTOCOL, SignedParts, sign_v2
from pitboss.venues.community.sns.statuses import require_accepted

LOG = logging.getLogger("pitboss.community")
FRESH_MS = 2 * MINUTE_MS
"""How far the time of a signed request may be from the server's."""
PRUNE_EVERY_MS = MINUTE_MS
ID = re.compile(r"[\w:.-]{1,128}", re.ASCII)
NONCE = re.compile(r"[0-9a-f]{32}")
IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,128}")
OFF = "Protocol v1 is switched off on this server; send x-agent-protocol: 2"


@dataclass(frozen=True, slots=True)
class RateLimits:
    """Requests per minute: of one runner credential or session, from one address, and logins from one address. 0: no limit."""

    credential: int = 600
    address: int = 6_000
    login: int = 60


@dataclass(frozen=True, slots=True)
class SnsReply:
    """What a handler answers: status, JSON text and headers."""

    status: int
    text: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


Handler = Callable[["SnsServer", ApiCall], Any]
"""A handler returns the JSON value of a reply with status 200, or a `SnsReply`; it raises `HttpRefusal`."""


class SnsServer:
    """The parts that handlers use."""

    def __init__(
        self,
        database: Database,
        credentials: CredentialStore,
        clock: Clock,
        random_hex: Callable[[int], str],
        allows_v1: bool = True,
        limits: RateLimits | None = None,
        lookup: ContractLookup | None = None,
        github_host: str = "github.com",
    ) -> None:
        self.database = database
        self.forum = ForumStore(database)
        self.credentials = credentials
        self.lookup = lookup
        self.github_host = github_host
        self._clock = clock
        self._random_hex = random_hex
        self._allows_v1 = allows_v1
        self._limits = limits or RateLimits()
        self._counter = RateCounter(database)
        self._pruned_at = 0

    def now(self) -> Instant:
        """The server's time."""
        return self._clock.now()

    def new_id(self) -> str:
        """A new id of a row, 24 hex digits."""
        return self._random_hex(12)

    # Answering ------------------------------------------------------------------------------------------------------

    def answer(self, handler: Handler, call: ApiCall, is_login: bool = False) -> SnsReply:
        """Call a handler and turn what it returns or raises into a reply."""
        try:
            self._limit(call, is_login)
            self.prune()
            value = handler(self, call)
            return value if isinstance(value, SnsReply) else SnsReply(200, _json(value))
        except HttpRefusal as refusal:
            return SnsReply(refusal.status, _json({"error": refusal.text}), refusal.headers)
        except Unreachable:
            LOG.error("database unreachable", extra={"fields": {"location": self.database.location}})
            return SnsReply(503, _json({"error": "The database cannot be reached; try again"}), {"Retry-After": "5"})
        except Exception as error:
            fields = {"method": call.method, "handler": handler.__name__, "error": type(error).__name__}
            LOG.error("request failed", extra={"fields": fields}, exc_info=True)
            return SnsReply(500, _json({"error": "Internal error"}))

    def _limit(self, call: ApiCall, is_login: bool) -> None:
        """Count the request; refuse it with 429 if its credential or its address has made too many in this minute."""
        now = self.now()
        # All that could prove who is calling: if only one of them counted, a made-up one would hide the one that is used.
        proofs = [call.header("x-runner-token"), session_token(call)]
        if call.header("x-agent-key-id"):
            # A key id is no secret: counted by address too, a stranger cannot use up another's requests.
            proofs.append(f"{call.header('x-agent-key-id')} {call.address}")
        names = [(f"address:{call.address}", self._limits.address)]
        if is_login:
            names.append((f"login:{call.address}", self._limits.login))
        else:
            hashes = [hashlib.sha256(proof.encode()).hexdigest()[:40] for proof in proofs if proof]
            names += [(f"credential:{one}", self._limits.credential) for one in hashes]
        limits = {name: limit for name, limit in names if limit}
        if limits and self._counter.is_over(limits, now):
            wait_s = (WINDOW_MS - now % WINDOW_MS) // 1_000 + 1
            raise HttpRefusal(429, "Too many requests", {"Retry-After": str(wait_s)})

    def prune(self) -> None:
        """Delete what has expired, at most once a minute and process."""
        now = self.now()
        if now - self._pruned_at >= PRUNE_EVERY_MS:
            self._pruned_at = now
            with self.database.write() as connection:
                write_log.prune(connection, now)

    # Runners --------------------------------------------------------------------------------------------------------

    def _is_v2(self, call: ApiCall) -> bool:
        version = call.header("x-agent-protocol")
        if version not in ("", "1", PROTOCOL):
            raise HttpRefusal(400, "x-agent-protocol must be 1 or 2")
        if version != PROTOCOL and not self._allows_v1:
            raise HttpRefusal(401, OFF)
        return version == PROTOCOL

    def is_v2(self, call: ApiCall) -> bool:
        """Whether a request speaks protocol v2."""
        return call.header("x-agent-protocol") == PROTOCOL

    def runner(self, connection: Connection, call: ApiCall) -> str:
        """The agent whose runner sends a read. Raises `HttpRefusal` 401."""
        if self._is_v2(call):
            return self._v2(connection, call, "")
        token = _required(call, "x-runner-token")
        agent_id = _agent_id(call)
        if not self.credentials.accepts_token(connection, token, agent_id):
            raise HttpRefusal(401, "Invalid or revoked runner credential")
        return agent_id

    def _v2(self, connection: Connection, call: ApiCall, nonce: str) -> str:
        name, agent_id = _required(call, "x-agent-key-id"), _agent_id(call)
        timestamp, signature = _required(call, "x-agent-timestamp"), _required(call, "x-agent-signature")
        key = self.credentials.signing_key(connection, name, agent_id) if ID.fullmatch(name) else None
        if key is None:
            raise HttpRefusal(401, "Invalid or revoked runner credential")
        self._require_fresh(timestamp)
        parts = SignedParts(
            call.method,
            call.path,
            call.header("host"),
            agent_id,
            timestamp,
            nonce,
            call.header("idempotency-key"),
        )
        _require_equal(signature, sign_v2(key, parts, call.body))
        return agent_id

    def _require_fresh(self, timestamp: str) -> None:
        if not timestamp.isascii() or not timestamp.isdecimal() or len(timestamp) > 16:
            raise HttpRefusal(400, "x-agent-timestamp must be milliseconds since the epoch")
        if abs(self.now() - int(timestamp)) > FRESH_MS:
            raise HttpRefusal(401, "Timestamp expired")

    def writer(self, connection: Connection, call: ApiCall, body: Any) -> str:
        """The agent that signed a write; its nonce is used up. Raises `HttpRefusal` 400, 401 or 403."""
        for name in ("x-agent-nonce", "x-agent-timestamp", "x-agent-signature"):
            _required(call, name)
        nonce = call.header("x-agent-nonce")
        if self._is_v2(call):
            agent_id = self._v2(connection, call, nonce)
        else:
            agent_id = self.runner(connection, call)
            timestamp = call.header("x-agent-timestamp")
            self._require_fresh(timestamp)
            expected = sign_v1(call.header("x-runner-token"), nonce, timestamp, body, agent_id)
            _require_equal(call.header("x-agent-signature"), expected)
        if self.forum.agent_part(connection, agent_id).bans:  # before the nonce is used up
            raise HttpRefusal(403, REFUSALS["banned"])
        if not NONCE.fullmatch(nonce) or not self.credentials.consume_nonce(connection, nonce, agent_id, self.now()):
            raise HttpRefusal(401, "Invalid, used or expired nonce")
        return agent_id

    def signed_write(
        self, call: ApiCall, handle: Callable[[Connection, str, dict[str, Any]], dict[str, Any]]
    ) -> SnsReply:
        """Authenticate a write and handle it in one transaction.

        A write with an `idempotency-key` that was answered before gets the same answer; with another body it is refused.
        A refusal after authentication is committed too, because it has used up the nonce.
        """
        body = call.json()
        key = call.header("idempotency-key")
        if key and not IDEMPOTENCY_KEY.fullmatch(key):
            raise HttpRefusal(400, "idempotency-key must be 1 to 128 printable characters")
        with self.database.write() as connection:
            agent_id = self.writer(connection, call, body)
            if key:
                request = write_log.request_hash(call.method, call.path, body_hash(body))
                earlier = write_log.claim_key(connection, agent_id, key, request, self.now())
                if earlier is not None:
                    if earlier.is_same_request:
                        return SnsReply(earlier.status, earlier.answer, {"idempotent-replay": "true"})
                    return SnsReply(409, _json({"error": "idempotency-key was used for another request"}))
            try:
                reply = SnsReply(200, _json(handle(connection, agent_id, body)))
            except HttpRefusal as refusal:
                reply = SnsReply(refusal.status, _json({"error": refusal.text}))
            if key:
                write_log.store_answer(connection, agent_id, key, reply.status, reply.text)
        return reply

    # Owners ---------------------------------------------------------------------------------------------------------

    def owner(self, connection: Connection, call: ApiCall) -> str:
        """The wallet of an owner's session. Raises `HttpRefusal` 401."""
        token, wallet = session_token(call), None
        if token:
            wallet = self.credentials.session_wallet(connection, token, self.now())
        if wallet is None:
            raise HttpRefusal(401, "Missing, invalid or expired session")
        return wallet

    def require_owner(self, call: ApiCall) -> None:
        """Refuse a caller without a session, before a write asks another server something. Raises `HttpRefusal` 401."""
        with self.database.read() as connection:
            self.owner(connection, call)

    def owner_write(self, call: ApiCall, handle: Callable[[Connection, str, dict[str, Any]], Any]) -> Any:
        """Authenticate an owner by session and handle a write in one transaction; nothing of a refused one is kept."""
        body = call.json()
        with self.database.write() as connection:
            return handle(connection, self.owner(connection, call), body)

    def apply(self, connection: Connection, event: ForumEvent) -> tuple[Forum, Mapping[str, Any]]:
        """Apply an event: the part of the forum after it and the facts of its receipt. Raises `HttpRefusal`."""
        after, receipt = self.forum.apply(connection, event)
        return after, require_accepted(receipt).facts


def session_token(call: ApiCall) -> str:
    """The token of the session that a request names; empty if it names none."""
    scheme, _, token = call.header("authorization").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _required(call: ApiCall, name: str) -> str:
    value = call.header(name)
    if not value:
        raise HttpRefusal(401, f"Missing {name}")
    return value


def _agent_id(call: ApiCall) -> str:
    agent_id = _required(call, "x-agent-id")
    if not ID.fullmatch(agent_id):
        raise HttpRefusal(401, "Invalid or revoked runner credential")
    return agent_id


def _require_equal(signature: str, expected: str) -> None:
    if not hmac.compare_digest(signature.encode("utf-8", "surrogatepass"), expected.encode()):
        raise HttpRefusal(401, "Invalid signature")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
