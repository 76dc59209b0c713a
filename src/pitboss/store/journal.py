"""`StoredJournal`: a run's records and its state in the database, one transaction per commit.

The hot path of the store. It talks to the driver directly with statements compiled by SQLAlchemy, so the SQL stays portable
and a commit costs little more than its inserts. Records are compressed one by one; seals cover the stored bytes. Heartbeats
are in the database's time. A commit waits for an unreachable database; if the reply to a commit was lost, it checks whether
the commit was made before it tries again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple, cast, get_args

from sqlalchemy import Table, bindparam, func, insert, select, update
from sqlalchemy.engine import Dialect
from zstandard import ZstdError

from pitboss.core import codec
from pitboss.core.errors import InvariantError, ReplayMismatch
from pitboss.core.instant import Instant
from pitboss.core.snapshot import GENESIS, ZERO_COST_EXTRA, Record, RecordKind, check
from pitboss.core.state import State
from pitboss.store import events
from pitboss.store import sealed_rows as rows
from pitboss.store.compiled import CompiledStatement
from pitboss.store.compression import compressor, decompressor
from pitboss.store.database import Database
from pitboss.store.lifecycle import ENDED, LeaseLost, Status
from pitboss.store.retry import Unreachable, retry_while_unreachable
from pitboss.store.schema import SEAL, records, run_events, run_states, runs

PAGE = 64
"""Records read at a time. No lock is held between pages, so a slow reader never blocks the run."""

_RUN_NAMES = rows.sealed_columns(runs)
_STATUS = _RUN_NAMES.index("status")
_PROGRESS = _RUN_NAMES.index("progress")
_EVENT_NAMES = (*rows.sealed_columns(run_events), SEAL)
PATIENCE_S = 30.0
"""How long a commit waits for an unreachable database."""
_HEARTBEAT = _RUN_NAMES.index("heartbeat_at")


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a chain: the number of the next record and the digest that it must refer to."""

    next_seq: int = 0
    digest: str = GENESIS


def follow(tail: Tail, batch: Sequence[Record], state: State, progress: float) -> Tail:
    """The tail after these records. Raises `ReplayMismatch` if they do not continue the chain or `state` is not its end.

    Every journal calls this before it writes. `progress` is the finished share of the run, 0 to 1.
    """
    if not 0.0 <= progress <= 1.0:
        raise InvariantError(f"progress {progress} is not a share from 0 to 1")
    seq, digest = tail.next_seq, tail.digest
    for record in batch:
        if record.seq != seq or record.prev_digest != digest:
            raise ReplayMismatch(f"record {record.seq} is not the next link after {seq - 1}")
        seq, digest = seq + 1, record.digest
    if state.seq != seq or state.prev_digest != digest:
        raise ReplayMismatch(f"the state of record {state.seq - 1} does not belong to a chain that ends at {seq - 1}")
    return Tail(seq, digest)


class _RunRow(NamedTuple):
    """The run's row as last read or written. `around` is the encoding of the columns that a commit does not change."""

    around: tuple[bytes, bytes, bytes, bytes]
    status: Status
    progress: float
    heartbeat_at: Instant
    worker: str | None
    seal: str

    @classmethod
    def of(cls, row: dict[str, Any]) -> "_RunRow":
        encoded = [rows.encode(row[name]) for name in _RUN_NAMES]
        around = (
            b"runs\0" + b"".join(encoded[:_STATUS]),
            b"".join(encoded[_STATUS + 1 : _PROGRESS]),
            b"".join(encoded[_PROGRESS + 1 : _HEARTBEAT]),
            b"".join(encoded[_HEARTBEAT + 1 :]),
        )
        return cls(around, row["status"], row["progress"], row["heartbeat_at"], row["worker"], row[SEAL])

    def renewed(self, status: Status, progress: float, heartbeat_at: Instant) -> "_RunRow":
        first, second, third, last = self.around
        encode = rows.encode
        encoded = first + encode(status) + second + encode(progress) + third + encode(heartbeat_at) + last
        return _RunRow(self.around, status, progress, heartbeat_at, self.worker, sha256(encoded).hexdigest())


@dataclass(frozen=True, slots=True)
class _JournalStatements:
    """The statements of a commit, compiled for one dialect."""

    read_run: CompiledStatement
    beat: CompiledStatement
    close: CompiledStatement
    insert_event: CompiledStatement
    insert_record: CompiledStatement
    insert_state: CompiledStatement
    change_state: CompiledStatement


@lru_cache(maxsize=4)  # the dialect of an engine lives as long as the engine
def _statements(dialect: Dialect) -> _JournalStatements:
    of_run = bindparam("of_run")
    own_row = update(runs).where(
        runs.c.id == of_run, runs.c.lease_epoch == bindparam("epoch"), runs.c[SEAL] == bindparam("old_seal")
    )
    finds = ["of_run", "epoch", "old_seal"]
    return _JournalStatements(
        CompiledStatement(select(*runs.columns).where(runs.c.id == of_run).with_for_update(), [], ["of_run"], dialect),
        # Setting the status, changed or not, would write an index at every commit.
        CompiledStatement(own_row, ["progress", "heartbeat_at", SEAL], finds, dialect),
        CompiledStatement(own_row, ["status", "progress", "heartbeat_at", SEAL], finds, dialect),
        CompiledStatement(insert(run_events), _EVENT_NAMES, [], dialect),
        _whole_row(records, dialect),
        _whole_row(run_states, dialect),
        CompiledStatement(
            update(run_states).where(run_states.c.run_id == of_run), ["seq", "body", SEAL], ["of_run"], dialect
        ),
    )


def _whole_row(table: Table, dialect: Dialect) -> CompiledStatement:
    return CompiledStatement(insert(table), [column.name for column in table.columns], [], dialect)


class _PendingCommit(NamedTuple):
    """The values of one commit, encoded."""

    first_seq: int
    tail: Tail
    record_rows: Sequence[Any]
    progress: float
    closing: bool
    body: bytes
    state_seal: str


COVERED = rows.raw(records).with_only_columns(
    *[column for column in rows.raw(records).selected_columns if column.key not in ("run_id", "extra", SEAL)]
)
"""SELECT of what `read_covered` reads: a tenth of the bytes of a record whose prompt was kept."""
_COMPRESSED_FREE = compressor()(ZERO_COST_EXTRA)
_COMPRESSED_FREE_SHA256 = sha256(_COMPRESSED_FREE).digest()
_KINDS: dict[RecordKind, bytes] = {kind: rows.encode(kind) for kind in get_args(RecordKind)}


def read_record(row: Mapping[str, Any], decompress: Callable[[bytes], bytes]) -> Record:
    """The record in a row of `records`."""
    return Record(
        seq=row["seq"],
        kind=cast("RecordKind", row["kind"]),
        tick_at=row["tick_at"],
        prev_digest=row["prev_digest"],
        digest=row["digest"],
        covered=decompress(row["covered"]),
        extra=decompress(row["extra"]),
    )


def read_covered(
    row: Mapping[str, Any], decompress: Callable[[bytes], bytes], seq: int, prev_digest: str | None = None
) -> Record:
    """The record in a row of `COVERED`, with the `extra` of a record without a model call. Raises `ReplayMismatch` if it was changed.

    It is checked against its digest, because the seal of a row covers the rest too.
    """
    try:
        record = Record(**{**row, "covered": decompress(row["covered"])}, extra=ZERO_COST_EXTRA)
    except (ZstdError, TypeError) as error:
        raise ReplayMismatch(f"record {row['seq']} was changed after it was written") from error
    check(record, seq, prev_digest or record.prev_digest)
    return record


class StoredJournal:
    """The Journal port over a database. `epoch` is that of the lease under which the run was claimed.

    With `logged` every commit also appends an event, so that the history can be checked afterwards.
    """

    def __init__(
        self,
        database: Database,
        run_id: str,
        epoch: int,
        logged: bool = False,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.run_id = run_id
        self._row_start = b"records\0" + rows.encode(run_id)
        self.epoch = epoch
        self._database = database
        self._logged = logged
        self._patience_s = patience_s
        self._tail: Tail | None = None
        self._compress = compressor()
        self._decompress = decompressor()
        self._row: _RunRow | None = None
        self.cancel_requested = False
        """Whether a cancel was requested by the time of the last commit. Reading it costs nothing."""

    @property
    def status(self) -> Status | None:
        """The run's status after the last commit; None before the first."""
        return None if self._row is None else self._row.status

    async def commit(self, batch: Sequence[Record], state: State, progress: float) -> None:
        """Append records, replace the state and set the progress, all or nothing.

        The closing record of a running run also changes its status to `computing_metrics`, which saves a write. Does not
        suspend while the database is reachable: the work is shorter than a switch to a thread and back.
        """
        try:
            await self._commit(batch, state, progress)
        except LeaseLost:
            events.append_refusal(self._database, self.run_id, self.epoch, f"commit {batch[0].seq if batch else ''}")
            raise

    async def _commit(self, batch: Sequence[Record], state: State, progress: float) -> None:
        before = self._tail
        if before is None:  # the first record needs no query: a stored one would violate the key
            is_first = batch and batch[0].seq == 0
            before = Tail() if is_first else await retry_while_unreachable(self._stored_tail, self._patience_s)
        try:
            tail = follow(before, batch, state, progress)
        except ReplayMismatch:
            self._require_lease()  # a lost lease explains the mismatch
            raise
        statements = _statements(self._database.engine.dialect)
        record_rows = [statements.insert_record.bind(self._record_row(record)) for record in batch]
        closing = bool(batch) and batch[-1].kind == "close"
        body = self._compress(codec.dumps(state))
        state_seal = rows.seal("run_states", map(rows.encode, (self.run_id, state.seq, body)))
        entry = _PendingCommit(before.next_seq, tail, record_rows, progress, closing, body, state_seal)
        try:
            self._row = self._write(statements, entry)
        except Unreachable:
            self._row = await retry_while_unreachable(lambda: self._write_again(statements, entry), self._patience_s)
        self._tail = tail

    def records(self, start: int = 0) -> Iterator[Record]:
        """The stored records in order from number `start`. Raises `ReplayMismatch` at one that was changed."""
        expected, digest = start, None
        query = rows.raw(records).where(records.c.run_id == self.run_id, records.c.seq >= start)
        for row in self._database.read_paged(query, records.c.seq, PAGE):
            rows.require_intact(records, row)
            if row["seq"] != expected or (digest is not None and row["prev_digest"] != digest):
                raise ReplayMismatch(f"record {row['seq']} is not the next link after {expected - 1}")
            expected, digest = expected + 1, row["digest"]
            yield read_record(row, self._decompress)

    def covered_records(self, start: int = 0) -> Iterator[Record]:
        """The same, as `read_covered` gives them."""
        expected, digest = start, None
        query = COVERED.where(records.c.run_id == self.run_id, records.c.seq >= start)
        for row in self._database.read_paged(query, records.c.seq, PAGE):
            record = read_covered(row, self._decompress, expected, digest)
            expected, digest = expected + 1, record.digest
            yield record

    def latest_state(self) -> tuple[int, Any] | None:
        """The number of the next record and the state after the last commit, as plain values."""
        with self._database.read() as connection:
            row = rows.fetch(connection, run_states, {"run_id": self.run_id})
        if row is None:
            return None
        rows.require_intact(run_states, row)
        return row["seq"], codec.loads(self._decompress(row["body"]))

    def _stored_tail(self) -> Tail:
        last = select(func.max(records.c.seq)).where(records.c.run_id == self.run_id).scalar_subquery()
        with self._database.read() as connection:
            query = rows.raw(records).where(records.c.run_id == self.run_id, records.c.seq == last)
            page = rows.fetch_all(connection, query)
        if not page:
            return Tail()
        (row,) = page
        rows.require_intact(records, row)
        return Tail(row["seq"] + 1, row["digest"])

    def _write(self, statements: _JournalStatements, entry: _PendingCommit) -> _RunRow:
        with self._database.write_raw() as cursor:
            row = self._renew(cursor, statements, entry.progress, entry.closing)
            if entry.record_rows:
                self._append(cursor, statements, entry.record_rows)
            new_state = statements.change_state.bind((entry.tail.next_seq, entry.body, entry.state_seal, self.run_id))
            cursor.execute(statements.change_state.sql, new_state)
            if cursor.rowcount == 0:
                new_state = statements.insert_state.bind(
                    (self.run_id, entry.tail.next_seq, entry.body, entry.state_seal)
                )
                cursor.execute(statements.insert_state.sql, new_state)
            if self._logged:
                self._append_event(cursor, statements, row, f"{entry.first_seq}-{entry.tail.next_seq}")
        return row

    def _write_again(self, statements: _JournalStatements, entry: _PendingCommit) -> _RunRow | None:
        """Write after a lost connection, unless the commit without a reply was made."""
        self._require_lease()
        return None if self._stored_tail() == entry.tail else self._write(statements, entry)

    def _require_lease(self) -> None:
        with self._database.read() as connection:
            row = rows.fetch(connection, runs, {"id": self.run_id})
        if row is None or row["lease_epoch"] != self.epoch:
            raise LeaseLost(self.run_id)

    def _append_event(self, cursor: Any, statements: _JournalStatements, run_row: _RunRow, detail: str) -> None:
        row = events.event_row(self.run_id, self.epoch, "committed", run_row.heartbeat_at, run_row.worker, detail)
        cursor.execute(statements.insert_event.sql, statements.insert_event.bind([row[name] for name in _EVENT_NAMES]))

    def _renew(self, cursor: Any, statements: _JournalStatements, progress: float, closing: bool) -> _RunRow:
        """Check the lease and renew it; the row stays locked until the commit.

        The UPDATE matches only if the row is unchanged since the last commit. Otherwise the row is read again: another
        process requested a cancel, for example, or claimed the run.
        """
        if self._row is not None:
            renewed = self._beat_from(cursor, statements, self._row, progress, closing)
            if renewed is not None:
                return renewed
        cursor.execute(statements.read_run.sql, statements.read_run.bind((self.run_id,)))
        values = cursor.fetchone()
        row = None if values is None else dict(zip(runs.columns.keys(), values, strict=True))
        if row is None or row["lease_epoch"] != self.epoch or row["status"] == "queued":
            raise LeaseLost(self.run_id)
        rows.require_intact(runs, row)
        if row["status"] in ENDED:
            raise InvariantError(f"run {self.run_id} has ended ({row['status']}) and takes no more records")
        self.cancel_requested = bool(row["cancel_requested"])
        renewed = self._beat_from(cursor, statements, _RunRow.of(row), progress, closing)
        if renewed is None:
            raise LeaseLost(self.run_id)
        return renewed

    def _beat_from(
        self, cursor: Any, statements: _JournalStatements, before: _RunRow, progress: float, closing: bool
    ) -> _RunRow | None:
        """Write progress and heartbeat over a known row; None if the stored row is another."""
        status: Status = "computing_metrics" if closing and before.status == "running" else before.status
        progress, heartbeat_at = max(float(progress), before.progress), self._database.now_raw(cursor)
        after = before.renewed(status, progress, heartbeat_at)
        values = (progress, heartbeat_at, after.seal, self.run_id, self.epoch, before.seal)
        if status == before.status:
            cursor.execute(statements.beat.sql, statements.beat.bind(values))
        else:
            cursor.execute(statements.close.sql, statements.close.bind((status, *values)))
        return after if cursor.rowcount == 1 else None

    def _append(self, cursor: Any, statements: _JournalStatements, record_rows: Sequence[Any]) -> None:
        try:
            statements.insert_record.insert_all(cursor, record_rows)
        except self._database.engine.dialect.loaded_dbapi.IntegrityError as error:
            raise ReplayMismatch(f"run {self.run_id} already holds some of these records") from error

    def _record_row(self, record: Record) -> tuple[object, ...]:
        """The row of a record with its seal: `rows.seal` of the values, inlined for speed."""
        covered = self._compress(record.covered)
        covered_sha256 = bytes.fromhex(record.digest) if covered is record.covered else sha256(covered).digest()
        if record.extra == ZERO_COST_EXTRA:
            extra, extra_sha256 = _COMPRESSED_FREE, _COMPRESSED_FREE_SHA256
        else:
            extra = self._compress(record.extra)
            extra_sha256 = sha256(extra).digest()
        seq, kind, tick_at, prev, digest = record.seq, record.kind, record.tick_at, record.prev_digest, record.digest
        sealed = sha256(
            b"%bI%d;%bI%d;T64:%bT64:%bB%d:%bB%d:%b"  # a digest has 64 characters
            % (
                self._row_start,
                seq,
                _KINDS[kind],
                tick_at,
                prev.encode(),
                digest.encode(),
                len(covered),
                covered_sha256,
                len(extra),
                extra_sha256,
            )
        ).hexdigest()
        return (self.run_id, seq, kind, tick_at, prev, digest, covered, extra, sealed)
