"""The outbox of transactions for a chain: stored before they are sent, so that a crash leaves at most one open question.

One row for each attempt at an order; its `state` changes only along `MOVES`, and every change is one transaction that first
checks the state the caller expects. Of two processes that make the same change, one succeeds. The content of the bytes and
the protocol of the chain are the broker's.

    intent   an order is to be sent; nothing is signed
    signed   the signed bytes are stored and were not sent
    sent     the bytes may have been sent; only the chain knows the result
    landed   the chain has executed it successfully
    failed   the chain has executed it without effect
    void     it was not executed and never will be; only then may another attempt follow
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from pitboss.core.instant import Instant
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.schema import outbox

State = Literal["intent", "signed", "sent", "landed", "failed", "void"]
MOVES: Mapping[State, tuple[State, ...]] = {
    "intent": ("signed", "void"),
    "signed": ("sent", "void"),
    "sent": ("sent", "landed", "failed", "void"),
    "landed": (),
    "failed": (),
    "void": (),
}
UNSENT: tuple[State, ...] = ("intent", "signed")
"""Made void in these states, the signed bytes are deleted, so that they cannot be sent."""


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """One attempt at an order. `request` and `outcome` are canonical JSON of the broker."""

    order_id: str
    attempt: int
    scope: str
    state: State
    owner: str
    tick_at: Instant
    created_at: Instant
    changed_at: Instant
    digest: str | None
    coin: str | None
    busy: str | None
    last_epoch: int | None
    note: str
    request: bytes
    tx: bytes | None
    signature: str | None
    outcome: bytes | None


class StoredOutbox:
    """The outbox in a database. `now` is the clock for its timestamps."""

    def __init__(self, database: Database, now: Callable[[], Instant]) -> None:
        self._database = database
        self._now = now

    def open(
        self, order_id: str, scope: str, owner: str, tick_at: Instant, request: bytes, most: int
    ) -> tuple[OutboxEntry, bool]:
        """Begin an attempt at an order: the new entry and True; or, with False, the entry that prevents it.

        That is an earlier attempt that is not void, another open order of the scope, or, after `most` attempts, the last
        of them.
        """
        try:
            with self._database.write() as connection:
                return self._claim(connection, order_id, scope, owner, tick_at, request, most)
        except IntegrityError:  # another process was faster, on a database with concurrent transactions
            with self._database.read() as connection:
                blocking = _busy(connection, scope) or _last(connection, order_id)
            if blocking is None:
                raise
            return blocking, False

    def _claim(
        self,
        connection: Connection,
        order_id: str,
        scope: str,
        owner: str,
        tick_at: Instant,
        request: bytes,
        most: int,
    ) -> tuple[OutboxEntry, bool]:
        last = _last(connection, order_id)
        if last is not None and (last.state != "void" or last.attempt >= most):
            return last, False
        blocking = _busy(connection, scope)
        if blocking is not None:
            return blocking, False
        now = self._now()
        row: dict[str, Any] = dict.fromkeys(rows.sealed_columns(outbox))
        row |= {
            "order_id": order_id,
            "attempt": 1 if last is None else last.attempt + 1,
            "scope": scope,
            "state": "intent",
            "owner": owner,
            "tick_at": tick_at,
            "created_at": now,
            "changed_at": now,
            "busy": scope,
            "note": "",
            "request": request,
        }
        rows.add(connection, outbox, row)
        return OutboxEntry(**row), True

    def sign(
        self,
        entry: OutboxEntry,
        request: bytes,
        tx: bytes,
        signature: str,
        digest: str | None,
        coin: str,
        last_epoch: int,
    ) -> OutboxEntry | None:
        """Store signed bytes before they can be sent. None if the entry has changed or the coin is already used.

        On a chain of accounts the coin is the nonce. `digest` is None if only the wallet that sends the bytes knows it.
        """
        values = {
            "request": request,
            "tx": tx,
            "signature": signature,
            "digest": digest,
            "coin": coin,
            "last_epoch": last_epoch,
        }
        try:
            with self._database.write() as connection:
                if rows.fetch(connection, outbox, {"coin": coin}) is not None:
                    return None
                return self._move(connection, entry, "signed", values)
        except IntegrityError:
            return None

    def send(self, entry: OutboxEntry) -> OutboxEntry | None:
        """Record that the bytes may be sent from now on. They must not be sent if this returns None."""
        with self._database.write() as connection:
            return self._move(connection, entry, "sent", {})

    def amend(self, entry: OutboxEntry, request: bytes, tx: bytes, digest: str) -> OutboxEntry | None:
        """Store another version of sent bytes that uses the same coin, before it is sent. None if the entry has changed.

        `request` must name the versions before, because any of them may be executed.
        """
        with self._database.write() as connection:
            return self._move(connection, entry, "sent", {"request": request, "tx": tx, "digest": digest})

    def close(self, entry: OutboxEntry, state: State, outcome: bytes | None, note: str) -> OutboxEntry | None:
        """Record the end of an attempt. None if the entry has changed."""
        deleted: dict[str, Any] = {}
        if state == "void" and entry.state in UNSENT:
            deleted = dict.fromkeys(("tx", "signature", "digest", "coin", "last_epoch"))
        with self._database.write() as connection:
            return self._move(connection, entry, state, {**deleted, "busy": None, "outcome": outcome, "note": note})

    def get(self, order_id: str) -> OutboxEntry | None:
        """The last attempt at an order."""
        with self._database.read() as connection:
            return _last(connection, order_id)

    def attempts(self, order_id: str) -> tuple[OutboxEntry, ...]:
        """All attempts at an order."""
        return self._fetch(rows.raw(outbox).where(outbox.c.order_id == order_id).order_by(outbox.c.attempt))

    def pending(self, scope: str) -> tuple[OutboxEntry, ...]:
        """The open order of a scope: one at most."""
        return self._fetch(rows.raw(outbox).where(outbox.c.busy == scope))

    def after(self, scope: str, tick_at: Instant) -> tuple[OutboxEntry, ...]:
        """The sent or landed orders of a scope for ticks after this one, oldest first."""
        query = rows.raw(outbox).where(
            outbox.c.scope == scope, outbox.c.tick_at > tick_at, outbox.c.state.in_(("sent", "landed"))
        )
        return self._fetch(query.order_by(outbox.c.tick_at, outbox.c.order_id))

    def closed(self, scope: str, most: int) -> tuple[OutboxEntry, ...]:
        """The orders of a scope that were closed last, with or without effect, oldest first."""
        query = rows.raw(outbox).where(outbox.c.scope == scope, outbox.c.state.in_(("landed", "failed", "void")))
        return self._fetch(query.order_by(outbox.c.changed_at.desc(), outbox.c.created_at.desc()).limit(most))[::-1]

    def with_coins(self, scope: str, least: str, most: int) -> tuple[OutboxEntry, ...]:
        """The entries of a scope whose coin is `least` or comes after it, last coin first."""
        query = rows.raw(outbox).where(outbox.c.scope == scope, outbox.c.coin >= least)
        return self._fetch(query.order_by(outbox.c.coin.desc()).limit(most))

    def taken(self, coins: Sequence[str]) -> frozenset[str]:
        """Which of these coins a stored transaction uses or has used up."""
        entries = self._fetch(rows.raw(outbox).where(outbox.c.coin.in_(coins)))
        return frozenset(entry.coin for entry in entries if entry.coin)

    def _fetch(self, query: Any) -> tuple[OutboxEntry, ...]:
        with self._database.read() as connection:
            return tuple(_entry(row) for row in rows.fetch_all(connection, query))

    def _move(
        self, connection: Connection, entry: OutboxEntry, state: State, values: Mapping[str, Any]
    ) -> OutboxEntry | None:
        key = {"order_id": entry.order_id, "attempt": entry.attempt}
        row = rows.fetch(connection, outbox, key, lock=True)
        if row is None or row["state"] != entry.state or state not in MOVES[entry.state]:
            return None
        changes = {**values, "state": state, "changed_at": self._now()}
        rows.change(connection, outbox, row, changes)
        return _entry({**row, **changes}, sealed=False)


def _last(connection: Connection, order_id: str) -> OutboxEntry | None:
    query = rows.raw(outbox).where(outbox.c.order_id == order_id).order_by(outbox.c.attempt.desc()).limit(1)
    page = rows.fetch_all(connection, query)
    return _entry(page[0]) if page else None


def _busy(connection: Connection, scope: str) -> OutboxEntry | None:
    row = rows.fetch(connection, outbox, {"busy": scope})
    return None if row is None else _entry(row)


def _entry(row: Mapping[str, Any], sealed: bool = True) -> OutboxEntry:
    if sealed:
        rows.require_intact(outbox, row)
    return OutboxEntry(**{name: row[name] for name in rows.sealed_columns(outbox)})
