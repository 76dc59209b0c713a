"""`StoredJournal`: a run's records and its state in the database, one transaction per commit.

The hot path of the store. It speaks to the driver directly with statements that SQLAlchemy compiled, so the SQL stays
portable and a commit costs little more than its inserts. Compression is per record; seals are over what is stored.
Signs of life are in the database's time. A database that is away is waited for, and a commit whose answer was lost is
looked for before it is tried again.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple, cast, get_args

import zstandard
from sqlalchemy import Table, bindparam, func, insert, select, update
from sqlalchemy.engine import Dialect

from pitboss.core import codec
from pitboss.core.errors import InvariantError, ReplayMismatch
from pitboss.core.instant import Instant
from pitboss.core.snapshot import GENESIS, ZERO_COST_EXTRA, Record, RecordKind
from pitboss.core.state import State
from pitboss.store import events
from pitboss.store import sealed_rows as rows
from pitboss.store.compiled import CompiledStatement
from pitboss.store.database import Database
from pitboss.store.lifecycle import ENDED, LeaseLost, Status
from pitboss.store.retry import Unreachable, patiently
from pitboss.store.schema import SEAL, records, run_events, run_states, runs

PAGE = 256
"""Records read at a time. Between pages no lock is held, so a slow reader never makes the run wait."""

_RUN_NAMES = rows.sealed_columns(runs)
_STATUS = _RUN_NAMES.index("status")
_PROGRESS = _RUN_NAMES.index("progress")
_EVENT_NAMES = (*rows.sealed_columns(run_events), SEAL)
PATIENCE_S = 30.0
"""How long a commit waits for a database that is away."""
_HEARTBEAT = _RUN_NAMES.index("heartbeat_at")


@dataclass(frozen=True, slots=True)
class Tail:
    """Where a chain ends: the number that comes next and the digest it must name."""

    next_seq: int = 0
    digest: str = GENESIS


def follow(tail: Tail, batch: Sequence[Record], state: State, progress: float) -> Tail:
    """The tail after these records, or `ReplayMismatch` if they do not continue the chain or the state is not its end.

    Every journal asks this before it writes. `progress` is the share of the run that is done, 0 to 1.
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


class _HeldRow(NamedTuple):
    """The run's row as it was last seen. `around` is what lies between the values that a commit changes, encoded once."""

    around: tuple[bytes, bytes, bytes, bytes]
    status: Status
    progress: float
    heartbeat_at: Instant
    worker: str | None
    seal: str

    @classmethod
    def of(cls, row: dict[str, Any]) -> "_HeldRow":
        encoded = [rows.encode(row[name]) for name in _RUN_NAMES]
        around = (
            b"runs\0" + b"".join(encoded[:_STATUS]),
            b"".join(encoded[_STATUS + 1 : _PROGRESS]),
            b"".join(encoded[_PROGRESS + 1 : _HEARTBEAT]),
            b"".join(encoded[_HEARTBEAT + 1 :]),
        )
        return cls(around, row["status"], row["progress"], row["heartbeat_at"], row["worker"], row[SEAL])

    def renewed(self, status: Status, progress: float, heartbeat_at: Instant) -> "_HeldRow":
        first, second, third, last = self.around
        encode = rows.encode
        whole = first + encode(status) + second + encode(progress) + third + encode(heartbeat_at) + last
        return _HeldRow(self.around, status, progress, heartbeat_at, self.worker, sha256(whole).hexdigest())


@dataclass(frozen=True, slots=True)
class _JournalStatements:
    """Everything a commit says, compiled for one driver."""

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
    ours = update(runs).where(
        runs.c.id == of_run, runs.c.lease_epoch == bindparam("epoch"), runs.c[SEAL] == bindparam("old_seal")
    )
    found = ["of_run", "epoch", "old_seal"]
    return _JournalStatements(
        CompiledStatement(select(*runs.columns).where(runs.c.id == of_run).with_for_update(), [], ["of_run"], dialect),
        # Naming the status, changed or not, would have an index written at every commit.
        CompiledStatement(ours, ["progress", "heartbeat_at", SEAL], found, dialect),
        CompiledStatement(ours, ["status", "progress", "heartbeat_at", SEAL], found, dialect),
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
    """One commit, ready to be written."""

    first_seq: int
    tail: Tail
    record_rows: Sequence[Any]
    progress: float
    closing: bool
    body: bytes
    state_seal: str


LEVEL = -3
"""zstd's fast side: a third more bytes than level 1 for half its time, and a tick waits for it."""
_PRESSED_FREE = zstandard.ZstdCompressor(level=LEVEL).compress(ZERO_COST_EXTRA)
_PRESSED_FREE_SHA256 = sha256(_PRESSED_FREE).digest()
_KINDS: dict[RecordKind, bytes] = {kind: rows.encode(kind) for kind in get_args(RecordKind)}


def unpresser() -> Callable[[bytes], bytes]:
    """What gives a stored document back."""
    return zstandard.ZstdDecompressor().decompress


class StoredJournal:
    """The Journal port over a database. `epoch` is the lease under which the run was claimed.

    `logged`, every commit is also told as an event, so that the history can be checked afterwards. `now` is not asked: a
    sign of life is in the database's time.
    """

    def __init__(
        self,
        database: Database,
        run_id: str,
        epoch: int,
        now: Callable[[], Instant] | None = None,
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
        self._press = zstandard.ZstdCompressor(level=LEVEL).compress
        self._unpress = unpresser()
        self._held: _HeldRow | None = None
        self.cancel_requested = False
        """Whether somebody had asked for the run to stop when the last commit was made. Costs nothing to ask."""

    @property
    def status(self) -> Status | None:
        """The run's status after the last commit; None before the first."""
        return None if self._held is None else self._held.status

    async def commit(self, batch: Sequence[Record], state: State, progress: float) -> None:
        """Append records, replace the state, note the progress: all or nothing.

        The closing record of a running run also moves it on to `computing_metrics`: it needs no write of its own.
        Not a real suspension point: the work is shorter than a hop to a thread and back.
        """
        try:
            await self._commit(batch, state, progress)
        except LeaseLost:
            events.refuse(self._database, self.run_id, self.epoch, f"commit {batch[0].seq if batch else ''}")
            raise

    async def _commit(self, batch: Sequence[Record], state: State, progress: float) -> None:
        before = self._tail
        if before is None:  # a chain that begins needs no look: were there one, its first record would be in the way
            begins = batch and batch[0].seq == 0
            before = Tail() if begins else await patiently(self._stored_tail, self._patience_s)
        try:
            tail = follow(before, batch, state, progress)
        except ReplayMismatch:
            self._require_lease()  # of one that has lost its run it is no wonder
            raise
        say = _statements(self._database.engine.dialect)
        record_rows = [say.insert_record.bind(self._record_row(record)) for record in batch]
        closing = bool(batch) and batch[-1].kind == "close"
        body = self._press(codec.dumps(state))
        state_seal = rows.seal("run_states", map(rows.encode, (self.run_id, state.seq, body)))
        entry = _PendingCommit(before.next_seq, tail, record_rows, progress, closing, body, state_seal)
        try:
            self._held = self._write(say, entry)
        except Unreachable:
            self._held = await patiently(lambda: self._write_again(say, entry), self._patience_s)
        self._tail = tail

    def records(self, start: int = 0) -> Iterator[Record]:
        """The stored records in order from number `start`. Raises `ReplayMismatch` at one that was changed."""
        expected, digest = start, None
        while True:
            query = rows.raw(records).where(records.c.run_id == self.run_id, records.c.seq >= expected)
            with self._database.read() as connection:
                page = rows.fetch_all(connection, query.order_by(records.c.seq).limit(PAGE))
            for row in page:
                rows.require_intact(records, row)
                if row["seq"] != expected or (digest is not None and row["prev_digest"] != digest):
                    raise ReplayMismatch(f"record {row['seq']} is not the next link after {expected - 1}")
                expected, digest = expected + 1, row["digest"]
                yield self._record(row)
            if len(page) < PAGE:
                return

    def latest_state(self) -> tuple[int, Any] | None:
        """The state after the last commit as plain values, with the number of the record that comes next."""
        with self._database.read() as connection:
            row = rows.fetch(connection, run_states, {"run_id": self.run_id})
        if row is None:
            return None
        rows.require_intact(run_states, row)
        return row["seq"], codec.loads(self._unpress(row["body"]))

    def _stored_tail(self) -> Tail:
        last = select(func.max(records.c.seq)).where(records.c.run_id == self.run_id).scalar_subquery()
        with self._database.read() as connection:
            query = rows.raw(records).where(records.c.run_id == self.run_id, records.c.seq == last)
            found = rows.fetch_all(connection, query)
        if not found:
            return Tail()
        (row,) = found
        rows.require_intact(records, row)
        return Tail(row["seq"] + 1, row["digest"])

    def _write(self, say: _JournalStatements, entry: _PendingCommit) -> _HeldRow:
        with self._database.write_raw() as cursor:
            held = self._renew(cursor, say, entry.progress, entry.closing)
            if entry.record_rows:
                self._append(cursor, say, entry.record_rows)
            changed = say.change_state.bind((entry.tail.next_seq, entry.body, entry.state_seal, self.run_id))
            cursor.execute(say.change_state.sql, changed)
            if cursor.rowcount == 0:
                made = say.insert_state.bind((self.run_id, entry.tail.next_seq, entry.body, entry.state_seal))
                cursor.execute(say.insert_state.sql, made)
            if self._logged:
                self._tell(cursor, say, held, f"{entry.first_seq}-{entry.tail.next_seq}")
        return held

    def _write_again(self, say: _JournalStatements, entry: _PendingCommit) -> _HeldRow | None:
        """The same after a connection broke: a commit that nobody answered may have been made."""
        self._require_lease()
        return None if self._stored_tail() == entry.tail else self._write(say, entry)

    def _require_lease(self) -> None:
        with self._database.read() as connection:
            row = rows.fetch(connection, runs, {"id": self.run_id})
        if row is None or row["lease_epoch"] != self.epoch:
            raise LeaseLost(self.run_id)

    def _tell(self, cursor: Any, say: _JournalStatements, held: _HeldRow, told: str) -> None:
        row = events.row_of(self.run_id, self.epoch, "committed", held.heartbeat_at, held.worker, told)
        cursor.execute(say.insert_event.sql, say.insert_event.bind([row[name] for name in _EVENT_NAMES]))

    def _renew(self, cursor: Any, say: _JournalStatements, progress: float, closing: bool) -> _HeldRow:
        """Check the lease and renew it; the row stays locked until the commit.

        The row is taken to be as we left it, and the UPDATE matches only if it is. It is read again when somebody else
        wrote it: asked for a cancel, say, or took the run.
        """
        if self._held is not None:
            renewed = self._beat_from(cursor, say, self._held, progress, closing)
            if renewed is not None:
                return renewed
        cursor.execute(say.read_run.sql, say.read_run.bind((self.run_id,)))
        found = cursor.fetchone()
        row = None if found is None else dict(zip(runs.columns.keys(), found, strict=True))
        if row is None or row["lease_epoch"] != self.epoch or row["status"] == "queued":
            raise LeaseLost(self.run_id)
        rows.require_intact(runs, row)
        if row["status"] in ENDED:
            raise InvariantError(f"run {self.run_id} has ended ({row['status']}) and takes no more records")
        self.cancel_requested = bool(row["cancel_requested"])
        renewed = self._beat_from(cursor, say, _HeldRow.of(row), progress, closing)
        if renewed is None:
            raise LeaseLost(self.run_id)
        return renewed

    def _beat_from(
        self, cursor: Any, say: _JournalStatements, held: _HeldRow, progress: float, closing: bool
    ) -> _HeldRow | None:
        """Write progress and sign of life over the row that we hold; None if that is not what is stored."""
        status: Status = "computing_metrics" if closing and held.status == "running" else held.status
        progress, heartbeat_at = max(float(progress), held.progress), self._database.now_raw(cursor)
        after = held.renewed(status, progress, heartbeat_at)
        values = (progress, heartbeat_at, after.seal, self.run_id, self.epoch, held.seal)
        if status == held.status:
            cursor.execute(say.beat.sql, say.beat.bind(values))
        else:
            cursor.execute(say.close.sql, say.close.bind((status, *values)))
        return after if cursor.rowcount == 1 else None

    def _append(self, cursor: Any, say: _JournalStatements, record_rows: Sequence[Any]) -> None:
        try:
            cursor.executemany(say.insert_record.sql, record_rows)
        except self._database.engine.dialect.loaded_dbapi.IntegrityError as error:
            raise ReplayMismatch(f"run {self.run_id} already holds some of these records") from error

    def _record_row(self, record: Record) -> tuple[object, ...]:
        """The row of a record with its seal, which is `rows.seal` of the values written out in one go."""
        covered = self._press(record.covered)
        covered_sha256 = sha256(covered).digest()
        if record.extra == ZERO_COST_EXTRA:
            extra, extra_sha256 = _PRESSED_FREE, _PRESSED_FREE_SHA256
        else:
            extra = self._press(record.extra)
            extra_sha256 = sha256(extra).digest()
        seq, kind, tick_at, prev, digest = record.seq, record.kind, record.tick_at, record.prev_digest, record.digest
        sealed = sha256(
            b"%bI%d;%bI%d;T64:%bT64:%bB%d:%bB%d:%b"  # a digest has 64 letters
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

    def _record(self, row: Any) -> Record:
        return Record(
            seq=row["seq"],
            kind=cast("RecordKind", row["kind"]),
            tick_at=row["tick_at"],
            prev_digest=row["prev_digest"],
            digest=row["digest"],
            covered=self._unpress(row["covered"]),
            extra=self._unpress(row["extra"]),
        )
