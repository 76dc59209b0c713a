"""Answers of models by the digest of their question: what was paid for once is never paid for again.

An answer is durable before `put` returns, so whoever uses it may be killed at any moment and find it again. Answers that
come in together share one commit. Who may use an answer, and what the key of a question is, is `models/cached.py`.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import Any

import zstandard
from sqlalchemy import bindparam, event, select, type_coerce
from sqlalchemy.engine import Dialect
from sqlalchemy.pool import PoolProxiedConnection
from sqlalchemy.types import NULLTYPE

from pitboss.core import codec
from pitboss.core.errors import ReplayMismatch
from pitboss.core.instant import Instant
from pitboss.core.intent import Usage
from pitboss.core.money import ZERO, text
from pitboss.core.ports import ModelReply, ToolCall
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.journal import LEVEL, PAGE
from pitboss.store.retry import FIRST_PAUSE_S, LONGEST_PAUSE_S, PATIENCE_S, Unreachable
from pitboss.store.schema import SEAL, answers

_NAMES = rows.sealed_columns(answers)
_USAGE = tuple(one.name for one in fields(Usage))
AGAIN = ":"
"""Stands between a key and a run that paid for an answer somebody else had just stored: kept for the account only."""
GATHER_S = 0.0015
"""How long an answer waits for others to share its commit: two or three of a window asked together come in that time."""


@dataclass(frozen=True, slots=True)
class StoredReply:
    """A stored answer: what was said, which run paid for it, and what it cost (None where nobody knows)."""

    key: str
    model: str
    run_id: str
    cost_usd: Decimal | None
    created_at: Instant
    reply: ModelReply


class Answers:
    """The answers in a database. One process may have several of these; several processes may share the database."""

    def __init__(self, database: Database, now: Callable[[], Instant]) -> None:
        self._database = database
        self._now = now
        self._sql = _AnswerStatements(database.engine.dialect)
        self._kept: PoolProxiedConnection | None = None
        self._press = presser()
        self._unpress = zstandard.ZstdDecompressor().decompress
        self._waiting: _Batch | None = None
        self._later: asyncio.Handle | None = None

    def get(self, key: str) -> StoredReply | None:
        """The answer to a question, or None. Raises `ReplayMismatch` if it was changed after it was written."""
        try:
            return self._get(key)
        except Unreachable:  # the connection that is kept may be of a server that has restarted since
            return self._get(key)

    def _get(self, key: str) -> StoredReply | None:
        # Past the layers in between: a warm rerun asks this at every tick.
        if (
            self._database.journal_mode is None
        ):  # a server has only so many connections: the one that is kept serves all
            with self._database.read_raw() as cursor:
                cursor.execute(self._sql.get, self._sql.bind_key(key))
                found = cursor.fetchone()
            return None if found is None else self._answer(found)
        with self._database.explained():
            connection = self._kept or self._connect()
            try:
                cursor = connection.cursor()
                cursor.execute(self._sql.get, self._sql.bind_key(key))
                found = cursor.fetchone()
                cursor.close()
            except BaseException:
                self._disconnect()
                raise
        return None if found is None else self._answer(found)

    async def put(
        self, key: str, model: str, run_id: str, cost_usd: Decimal | None, reply: ModelReply, more: bool = False
    ) -> bool:
        """Keep an answer for good; whether it is what `get` gives from now on. The first answer to a question stays.

        Once begun it is written even if nobody waits for it any more: it has been paid for. With `more` others are under
        way that may come at any moment: a commit, which costs as much as a tick, waits that long to be shared.
        """
        loop, batch = asyncio.get_running_loop(), self._waiting
        if batch is None:
            # What else is ready in this turn of the loop shares the commit. Not on a thread: a commit there makes
            # every commit of a journal here wait for the database, which costs more than it gives.
            batch = self._waiting = _Batch(loop.create_future())
            if more:
                self._later = loop.call_later(GATHER_S, self._flush, batch)
            else:
                loop.call_soon(self._flush, batch)
        elif not more and self._later is not None:  # the last of those under way: nobody else is waited for
            self._later.cancel()
            self._later = loop.call_soon(self._flush, batch)
        batch.rows.append(sealed(StoredReply(key, model, run_id, cost_usd, self._now(), reply), self._press))
        await asyncio.shield(batch.done)
        return key not in batch.late

    def of_run(self, run_id: str) -> Iterator[StoredReply]:
        """The answers that a run paid for, by key."""
        after = ""
        while True:
            query = rows.raw(answers).where(answers.c.run_id == run_id, answers.c.key > after)
            with self._database.read() as connection:
                page = rows.fetch_all(connection, query.order_by(answers.c.key).limit(PAGE))
            for row in page:
                yield self._answer([row[name] for name in (*_NAMES, SEAL)])
            if len(page) < PAGE:
                return
            after = page[-1]["key"]

    def paid_usd(self, run_id: str) -> Decimal:
        """What a run has paid for its answers, used or not; those of unknown cost count nothing."""
        query = select(type_coerce(answers.c.cost_usd, NULLTYPE)).where(answers.c.run_id == run_id)
        with self._database.read() as connection:
            costs = connection.execute(query.where(answers.c.cost_usd.is_not(None))).scalars().all()
        return sum((Decimal(str(cost)) for cost in costs), ZERO)

    def _connect(self) -> PoolProxiedConnection:
        """A connection for reading that is kept: to fetch one from the pool costs more than to read an answer."""
        engine = self._database.engine
        self._kept = engine.raw_connection()
        self._kept.detach()
        event.listen(engine, "engine_disposed", self._disconnect, once=True)
        return self._kept

    def _disconnect(self, *_: object) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()

    def _flush(self, batch: "_Batch") -> None:
        if self._waiting is batch:
            self._waiting = self._later = None
        loop = asyncio.get_running_loop()
        try:
            self._commit(batch, tried=batch.until is not None)
        except Unreachable as error:
            # What has been paid for is not given up because the database restarts.
            if batch.until is None:
                batch.until = loop.time() + PATIENCE_S
            if loop.time() + batch.pause_s > batch.until:
                batch.fail(error)
            else:
                loop.call_later(batch.pause_s, self._flush, batch)
                batch.pause_s = min(2 * batch.pause_s, LONGEST_PAUSE_S)
        except Exception as error:  # noqa: BLE001 – whatever it is, it belongs to those who wait
            batch.fail(error)
        else:
            batch.done.set_result(None)

    def _commit(self, batch: "_Batch", tried: bool) -> None:
        with self._database.write_raw(lazily=True) as cursor:
            for row in batch.rows:
                cursor.execute(self._sql.put, self._sql.bind_row(row))
                if cursor.rowcount:
                    continue
                if tried:  # a commit that nobody answered may have been made
                    cursor.execute(self._sql.get, self._sql.bind_key(str(row["key"])))
                    if cursor.fetchone()[-1] == row[SEAL]:
                        continue
                # Somebody had the same answer first: another run, or one that has lost this run. Ours is paid for too.
                batch.late.add(str(row["key"]))
                again = {**row, "key": f"{row['key']}{AGAIN}{row['run_id']}"}
                cursor.execute(self._sql.put, self._sql.bind_row({**again, SEAL: rows.seal_of(answers, again)}))

    def _answer(self, found: Sequence[Any]) -> StoredReply:
        *values, seal = found
        if rows.seal("answers", map(rows.encode, values)) != seal:
            raise ReplayMismatch(f"a stored answer was changed after it was written (key {values[0]})")
        key, model, run_id, cost, created_at, body = values
        return StoredReply(
            key, model, run_id, None if cost is None else Decimal(cost), created_at, read_reply(self._unpress(body))
        )


@dataclass(slots=True)
class _Batch:
    """Answers that will be committed together, and the moment when they are."""

    done: asyncio.Future[None]
    rows: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    until: float | None = None
    pause_s: float = FIRST_PAUSE_S
    late: set[str] = field(default_factory=set[str])
    """Keys to which there was an answer already."""

    def fail(self, error: Exception) -> None:
        """Tell those who wait, if there are any."""
        self.done.set_exception(error)
        self.done.exception()  # seen, even if everybody who waited has gone


def sealed(answer: StoredReply, press: Callable[[bytes], bytes]) -> dict[str, object]:
    """The row of an answer."""
    row: dict[str, object] = {
        "key": answer.key,
        "model": answer.model,
        "run_id": answer.run_id,
        "cost_usd": None if answer.cost_usd is None else text(answer.cost_usd),
        "created_at": answer.created_at,
        "body": press(write_reply(answer.reply)),
    }
    return {**row, SEAL: rows.seal_of(answers, row)}


def presser() -> Callable[[bytes], bytes]:
    """What presses the body of an answer; not to be shared between threads."""
    return zstandard.ZstdCompressor(level=LEVEL).compress


def write_reply(reply: ModelReply) -> bytes:
    """A reply as it is stored: canonical JSON without its money, which depends on who asks."""
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
    except TypeError:  # half a surrogate pair, which JSON can name and UTF-8 cannot
        return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()


def read_reply(body: bytes) -> ModelReply:
    """The inverse of `write_reply`. Names that this version does not know are left out."""
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


class _AnswerStatements:
    """What is said to the driver, compiled once."""

    def __init__(self, dialect: Dialect) -> None:
        put = rows.insert_unless_there(dialect, answers).compile(dialect=dialect, column_keys=[*_NAMES, SEAL])
        columns = [answers.c[name] for name in (*_NAMES, SEAL)]
        get = select(*columns).where(answers.c.key == bindparam("of_key")).compile(dialect=dialect)
        self.get, self.put = str(get), str(put)
        order = getattr(put, "positiontup", None)
        self._order: Sequence[str] | None = order

    def bind_key(self, key: str) -> Any:
        """What finds one answer."""
        return {"of_key": key} if self._order is None else (key,)

    def bind_row(self, row: Mapping[str, object]) -> Any:
        """What makes one row."""
        return row if self._order is None else tuple([row[name] for name in self._order])
