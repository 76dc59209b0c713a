"""Stored replies of models by the digest of their request: everything that runs have paid for.

A reply is durable before `put` returns, so a process that uses it may be killed at any moment and finds it again. Replies that
arrive together share one commit. Which runs may use a reply, and how the key is computed, is in `models/cached.py`.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from itertools import count
from typing import Any

from sqlalchemy import bindparam, select, type_coerce
from sqlalchemy.pool import PoolProxiedConnection
from sqlalchemy.types import NULLTYPE

from pitboss.core import codec
from pitboss.core.errors import ReplayMismatch
from pitboss.core.instant import Instant
from pitboss.core.intent import Usage
from pitboss.core.money import ZERO, text
from pitboss.core.ports import ModelReply, ToolCall
from pitboss.store import sealed_rows as rows
from pitboss.store.compiled import CompiledStatement
from pitboss.store.compression import compressor, decompressor
from pitboss.store.database import Database
from pitboss.store.journal import PAGE
from pitboss.store.retry import FIRST_PAUSE_S, LONGEST_PAUSE_S, PATIENCE_S, Unreachable
from pitboss.store.schema import SEAL, answers

_COLUMNS = (*rows.sealed_columns(answers), SEAL)
_USAGE = tuple(field.name for field in fields(Usage))
DUPLICATE_MARK = ":"
"""Separates key and run id of a reply that is kept for accounting only: another run had just stored one for this key, or
the provider failed halfway."""
GATHER_S = 0.0015
"""How long a reply waits for others to share its commit: two or three of a batch of requests arrive in that time."""


@dataclass(frozen=True, slots=True)
class StoredReply:
    """A stored reply with the run that paid for it and its cost (None if unknown)."""

    key: str
    model: str
    run_id: str
    cost_usd: Decimal | None
    created_at: Instant
    reply: ModelReply


class Answers:
    """The replies in a database. One process may have several of these; several processes may share the database.

    Close it after use: reading from a file keeps a connection of its own open.
    """

    def __init__(self, database: Database, now: Callable[[], Instant]) -> None:
        self._database = database
        self._now = now
        dialect = database.engine.dialect
        columns = [answers.c[name] for name in _COLUMNS]
        by_key = select(*columns).where(answers.c.key == bindparam("of_key"))
        self._get_row = CompiledStatement(by_key, [], ["of_key"], dialect)
        self._put_row = CompiledStatement(rows.insert_unless_there(dialect, answers), _COLUMNS, [], dialect)
        self._connection: PoolProxiedConnection | None = None
        self._compress = compressor()
        self._decompress = decompressor()
        self._batch: _Batch | None = None
        self._flush_handle: asyncio.Handle | None = None

    def get(self, key: str) -> StoredReply | None:
        """The reply to a request, or None. Raises `ReplayMismatch` if it was changed after it was written."""
        try:
            return self._get(key)
        except Unreachable:  # the server may have restarted since the kept connection was opened
            return self._get(key)

    def _get(self, key: str) -> StoredReply | None:
        # Talks to the driver directly: a rerun from stored replies does this at every tick.
        if self._database.journal_mode is None:  # a server has a limited number of connections: one serves all
            with self._database.read_raw() as cursor:
                cursor.execute(self._get_row.sql, self._get_row.bind((key,)))
                row = cursor.fetchone()
            return None if row is None else self._read(row)
        with self._database.explained():
            connection = self._connection or self._connect()
            try:
                cursor = connection.cursor()
                cursor.execute(self._get_row.sql, self._get_row.bind((key,)))
                row = cursor.fetchone()
                cursor.close()
            except BaseException:
                self.close()
                raise
        return None if row is None else self._read(row)

    async def put(
        self, key: str, model: str, run_id: str, cost_usd: Decimal | None, reply: ModelReply, more: bool = False
    ) -> bool:
        """Store a reply; returns whether `get` returns it from now on. The first reply to a request stays.

        It is written even if the caller is cancelled: it has been paid for. `more` says that other replies may arrive at any
        moment: the commit, which costs as much as a tick, waits `GATHER_S` for them.
        """
        batch = self._add(StoredReply(key, model, run_id, cost_usd, self._now(), reply), more)
        await asyncio.shield(batch.committed)
        return key not in batch.superseded

    async def put_paid(self, key: str, model: str, run_id: str, cost_usd: Decimal | None, reply: ModelReply) -> None:
        """Store a reply for accounting only: `get` never returns it."""
        batch = self._add(StoredReply(key, model, run_id, cost_usd, self._now(), reply), more=False, serves=False)
        await asyncio.shield(batch.committed)

    def _add(self, reply: StoredReply, more: bool, serves: bool = True) -> "_Batch":
        """Add a reply to the next commit."""
        loop, batch = asyncio.get_running_loop(), self._batch
        if batch is None:
            # Replies of the same turn of the loop share the commit. Not on a thread: a commit there makes every
            # commit of a journal here wait for the database, which costs more than it saves.
            batch = self._batch = _Batch(loop.create_future())
            if more:
                self._flush_handle = loop.call_later(GATHER_S, self._flush, batch)
            else:
                loop.call_soon(self._flush, batch)
        elif not more and self._flush_handle is not None:  # no other reply is expected
            self._flush_handle.cancel()
            self._flush_handle = loop.call_soon(self._flush, batch)
        (batch.rows if serves else batch.paid_rows).append(answer_row(reply, self._compress))
        return batch

    def of_run(self, run_id: str) -> Iterator[StoredReply]:
        """The replies that a run paid for, by key."""
        query = rows.raw(answers).where(answers.c.run_id == run_id)
        for row in self._database.read_paged(query, answers.c.key, PAGE):
            yield self._read([row[name] for name in _COLUMNS])

    def paid_usd(self, run_id: str) -> Decimal:
        """What a run has paid for its replies, used or not; those of unknown cost are not counted."""
        query = select(type_coerce(answers.c.cost_usd, NULLTYPE)).where(answers.c.run_id == run_id)
        with self._database.read() as connection:
            costs = connection.execute(query.where(answers.c.cost_usd.is_not(None))).scalars().all()
        return sum((Decimal(str(cost)) for cost in costs), ZERO)

    def _connect(self) -> PoolProxiedConnection:
        """A dedicated connection for reading: to fetch one from the pool costs more than to read a reply."""
        self._connection = self._database.engine.raw_connection()
        self._connection.detach()
        return self._connection

    def close(self) -> None:
        """Close the connection for reading; the next read opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _flush(self, batch: "_Batch") -> None:
        if self._batch is batch:
            self._batch = self._flush_handle = None
        loop = asyncio.get_running_loop()
        try:
            self._commit(batch, is_retry=batch.deadline_s is not None)
        except Unreachable as error:
            # A reply that was paid for is not dropped because the database restarts.
            if batch.deadline_s is None:
                batch.deadline_s = loop.time() + PATIENCE_S
            if loop.time() + batch.pause_s > batch.deadline_s:
                batch.fail(error)
            else:
                loop.call_later(batch.pause_s, self._flush, batch)
                batch.pause_s = min(2 * batch.pause_s, LONGEST_PAUSE_S)
        except Exception as error:  # noqa: BLE001 – raised in the waiting callers
            batch.fail(error)
        else:
            batch.committed.set_result(None)

    def _commit(self, batch: "_Batch", is_retry: bool) -> None:
        with self._database.write_raw(lazily=True) as cursor:
            for row in batch.rows:
                if self._insert(cursor, row):
                    continue
                if is_retry and self._is_stored(cursor, row):  # a commit without a reply may have been made
                    continue
                # Another run, or a worker that has lost this run, stored a reply first. This one is paid for too.
                batch.superseded.add(str(row["key"]))
                self._insert_paid(cursor, row, is_retry)
            for row in batch.paid_rows:
                self._insert_paid(cursor, row, is_retry)

    def _insert_paid(self, cursor: Any, row: Mapping[str, object], is_retry: bool) -> None:
        """Insert a reply under the first free key that no request has."""
        for number in count():
            suffix = f"{DUPLICATE_MARK}{number}" if number else ""
            paid = {**row, "key": f"{row['key']}{DUPLICATE_MARK}{row['run_id']}{suffix}"}
            sealed = {**paid, SEAL: rows.seal_of(answers, paid)}
            if self._insert(cursor, sealed) or (is_retry and self._is_stored(cursor, sealed)):
                return

    def _is_stored(self, cursor: Any, row: Mapping[str, object]) -> bool:
        cursor.execute(self._get_row.sql, self._get_row.bind((row["key"],)))
        return cursor.fetchone()[-1] == row[SEAL]

    def _insert(self, cursor: Any, row: Mapping[str, object]) -> bool:
        cursor.execute(self._put_row.sql, self._put_row.bind([row[name] for name in _COLUMNS]))
        return bool(cursor.rowcount)

    def _read(self, row: Sequence[Any]) -> StoredReply:
        *values, seal = row
        if rows.seal("answers", map(rows.encode, values)) != seal:
            raise ReplayMismatch(f"a stored reply was changed after it was written (key {values[0]})")
        key, model, run_id, cost, created_at, body = values
        return StoredReply(
            key, model, run_id, None if cost is None else Decimal(cost), created_at, read_reply(self._decompress(body))
        )


@dataclass(slots=True)
class _Batch:
    """Replies that are committed together; `committed` is set afterwards."""

    committed: asyncio.Future[None]
    rows: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    paid_rows: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    """Replies that are kept for accounting only."""
    deadline_s: float | None = None
    pause_s: float = FIRST_PAUSE_S
    superseded: set[str] = field(default_factory=set[str])
    """Keys for which another reply was stored first."""

    def fail(self, error: Exception) -> None:
        """Raise an error in the waiting callers, if there are any."""
        self.committed.set_exception(error)
        self.committed.exception()  # marked as retrieved, even if all callers were cancelled


def answer_row(answer: StoredReply, compress: Callable[[bytes], bytes]) -> dict[str, object]:
    """The sealed row of a reply."""
    row: dict[str, object] = {
        "key": answer.key,
        "model": answer.model,
        "run_id": answer.run_id,
        "cost_usd": None if answer.cost_usd is None else text(answer.cost_usd),
        "created_at": answer.created_at,
        "body": compress(write_reply(answer.reply)),
    }
    return {**row, SEAL: rows.seal_of(answers, row)}


def write_reply(reply: ModelReply) -> bytes:
    """A reply as it is stored: canonical JSON without its cost, which depends on the run."""
    usage = reply.usage
    plain = {
        "text": reply.text,
        "calls": [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in reply.calls],
        "usage": {name: getattr(usage, name) for name in _USAGE},
        "finish_reason": reply.finish_reason,
        "latency_ms": reply.latency_ms,
        "provider_id": reply.provider_id,
        "model": reply.model,
        "state": reply.state,
        "problem": reply.problem,
    }
    try:
        return codec.dumps(plain)
    except TypeError:  # half a surrogate pair, which JSON can express and UTF-8 cannot
        return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()


def read_reply(body: bytes) -> ModelReply:
    """The inverse of `write_reply`. Fields of usage that this version does not know are dropped."""
    try:
        plain = codec.loads(body)
    except ValueError:
        plain = json.loads(body)
    usage = plain["usage"]
    return ModelReply(
        plain["text"],
        tuple([ToolCall(call["id"], call["name"], call["arguments"]) for call in plain["calls"]]),
        Usage(**{name: usage[name] for name in _USAGE if name in usage}),
        plain["finish_reason"],
        plain["latency_ms"],
        plain["provider_id"],
        plain["model"],
        plain["state"],
        plain["problem"],
    )
