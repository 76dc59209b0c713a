"""What is on its way to a chain: kept before it is sent, so that a crash never leaves more than one question open.

One row for each attempt at an order; its `state` only ever moves along `MOVES`, and every move is one transaction that
first looks whether the row is still where the caller believes it to be. Of two processes that want the same move, one
gets it. Nothing is known here of what the bytes mean or of how a chain is asked: that is the broker's business.

    intent   somebody means to send; nothing is signed
    signed   the signed bytes are here and have not left
    sent     they may have left, from here on only the chain knows
    landed   the chain has run it, and it went through
    failed   the chain has run it, and it did nothing
    void     it was never run and never will be; only then may another attempt follow
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
    "sent": ("landed", "failed", "void"),
    "landed": (),
    "failed": (),
    "void": (),
}
UNSENT: tuple[State, ...] = ("intent", "signed")
"""Made void in these states, the bytes are forgotten: what is not kept cannot be sent by anybody."""


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """One attempt at an order, as it stands. `request` and `outcome` are the broker's own canonical JSON."""

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
    """The outbox in a database. `now` is the clock by which its rows are dated."""

    def __init__(self, database: Database, now: Callable[[], Instant]) -> None:
        self._database = database
        self._now = now

    def open(
        self, order_id: str, scope: str, owner: str, tick_at: Instant, request: bytes, most: int
    ) -> tuple[OutboxEntry, bool]:
        """Claim an order: its new attempt and True; or, with False, what stands in the way.

        In the way is an earlier attempt at it that is not void, any other order of the scope that is still open, or, when
        there were `most` attempts, the last of them.
        """
        try:
            with self._database.write() as connection:
                return self._claim(connection, order_id, scope, owner, tick_at, request, most)
        except IntegrityError:  # somebody else was quicker, on a database that lets two look at once
            with self._database.read() as connection:
                found = _busy(connection, scope) or _last(connection, order_id)
            if found is None:
                raise
            return found, False

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
        other = _busy(connection, scope)
        if other is not None:
            return other, False
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
        self, entry: OutboxEntry, request: bytes, tx: bytes, signature: str, digest: str, coin: str, last_epoch: int
    ) -> OutboxEntry | None:
        """Keep signed bytes, for good, before they can leave. None where the claim is gone or the coin is spoken for."""
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
        """Note that the bytes may leave from now on. Whoever gets None must not send them."""
        with self._database.write() as connection:
            return self._move(connection, entry, "sent", {})

    def close(self, entry: OutboxEntry, state: State, outcome: bytes | None, note: str) -> OutboxEntry | None:
        """Note the end of an attempt. None where it is not where the caller believed it to be."""
        forgotten: dict[str, Any] = {}
        if state == "void" and entry.state in UNSENT:
            forgotten = dict.fromkeys(("tx", "signature", "digest", "coin", "last_epoch"))
        with self._database.write() as connection:
            return self._move(connection, entry, state, {**forgotten, "busy": None, "outcome": outcome, "note": note})

    def get(self, order_id: str) -> OutboxEntry | None:
        """Where an order stands: its last attempt."""
        with self._database.read() as connection:
            return _last(connection, order_id)

    def attempts(self, order_id: str) -> tuple[OutboxEntry, ...]:
        """Every attempt at an order."""
        return self._fetch(rows.raw(outbox).where(outbox.c.order_id == order_id).order_by(outbox.c.attempt))

    def pending(self, scope: str) -> tuple[OutboxEntry, ...]:
        """What is open in a scope: one order at most."""
        return self._fetch(rows.raw(outbox).where(outbox.c.busy == scope))

    def after(self, scope: str, tick_at: Instant) -> tuple[OutboxEntry, ...]:
        """What was sent or has landed in a scope for ticks after this one, oldest first."""
        query = rows.raw(outbox).where(
            outbox.c.scope == scope, outbox.c.tick_at > tick_at, outbox.c.state.in_(("sent", "landed"))
        )
        return self._fetch(query.order_by(outbox.c.tick_at, outbox.c.order_id))

    def taken(self, coins: Sequence[str]) -> frozenset[str]:
        """Which of these some transaction of ours uses or used up."""
        found = self._fetch(rows.raw(outbox).where(outbox.c.coin.in_(coins)))
        return frozenset(entry.coin for entry in found if entry.coin)

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
    found = rows.fetch_all(connection, query)
    return _entry(found[0]) if found else None


def _busy(connection: Connection, scope: str) -> OutboxEntry | None:
    found = rows.fetch(connection, outbox, {"busy": scope})
    return None if found is None else _entry(found)


def _entry(row: Mapping[str, Any], sealed: bool = True) -> OutboxEntry:
    if sealed:
        rows.require_intact(outbox, row)
    return OutboxEntry(**{name: row[name] for name in rows.sealed_columns(outbox)})
