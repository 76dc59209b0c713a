"""`StoredJournal`: a run's records and its state in the database, one transaction per commit.

The hot path of the store. It speaks to the driver directly with statements that SQLAlchemy compiled, so the SQL stays
portable and a commit costs little more than its inserts. Compression is per record; seals are over what is stored.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any, cast

import zstandard
from sqlalchemy import Table, bindparam, func, insert, select, update
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.dml import UpdateBase
from sqlalchemy.sql.selectable import Select

from pitboss.core import codec
from pitboss.core.errors import InvariantError, ReplayMismatch
from pitboss.core.instant import Instant
from pitboss.core.snapshot import FREE, GENESIS, Record, RecordKind
from pitboss.core.state import State
from pitboss.store import rows
from pitboss.store.database import Database
from pitboss.store.lifecycle import ENDED, LeaseLost, Status
from pitboss.store.schema import SEAL, records, run_states, runs

PAGE = 256
"""Records read at a time. Between pages no lock is held, so a slow reader never makes the run wait."""

_RUN_NAMES = rows.sealed_columns(runs)
_STATUS = _RUN_NAMES.index("status")
_PROGRESS = _RUN_NAMES.index("progress")
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


class _Prepared:
    """A statement compiled once for the driver at hand: the values to set first, then those to find the row by."""

    def __init__(
        self, statement: UpdateBase | Select[Any], sets: Sequence[str], finds: Sequence[str], dialect: Dialect
    ) -> None:
        compiled = statement.compile(dialect=dialect, column_keys=list(sets))
        self.sql = str(compiled)
        order = cast("Sequence[str] | None", getattr(compiled, "positiontup", None))
        self._names = (*sets, *finds)
        self._places = None if order is None else tuple(self._names.index(name) for name in order)
        self._as_is = self._places == tuple(range(len(self._names)))

    def bind(self, values: Sequence[object]) -> Any:
        """The values in the form that the driver wants."""
        if self._as_is:
            return values
        if self._places is None:
            return dict(zip(self._names, values, strict=True))
        return tuple(values[place] for place in self._places)


@dataclass(frozen=True, slots=True)
class _HeldRow:
    """The run's row as it was last seen, encoded for its seal."""

    encoded: tuple[bytes, ...]
    status: Status
    progress: float
    seal: str

    @classmethod
    def of(cls, row: dict[str, Any]) -> "_HeldRow":
        return cls(tuple(rows.encode(row[name]) for name in _RUN_NAMES), row["status"], row["progress"], row[SEAL])

    def renewed(self, status: Status, progress: float, heartbeat_at: Instant) -> "_HeldRow":
        encoded = list(self.encoded)
        encoded[_STATUS] = rows.encode(status)
        encoded[_PROGRESS] = rows.encode(progress)
        encoded[_HEARTBEAT] = rows.encode(heartbeat_at)
        return _HeldRow(tuple(encoded), status, progress, rows.seal("runs", encoded))


@dataclass(frozen=True, slots=True)
class _Statements:
    """Everything a commit says, compiled for one driver."""

    read_run: _Prepared
    beat: _Prepared
    insert_record: _Prepared
    insert_state: _Prepared
    change_state: _Prepared


@lru_cache(maxsize=4)  # the dialect of an engine lives as long as the engine
def _statements(dialect: Dialect) -> _Statements:
    of_run = bindparam("of_run")
    return _Statements(
        _Prepared(select(*runs.columns).where(runs.c.id == of_run).with_for_update(), [], ["of_run"], dialect),
        _Prepared(
            update(runs).where(
                runs.c.id == of_run, runs.c.lease_epoch == bindparam("epoch"), runs.c[SEAL] == bindparam("old_seal")
            ),
            ["status", "progress", "heartbeat_at", SEAL],
            ["of_run", "epoch", "old_seal"],
            dialect,
        ),
        _whole_row(records, dialect),
        _whole_row(run_states, dialect),
        _Prepared(update(run_states).where(run_states.c.run_id == of_run), ["seq", "body", SEAL], ["of_run"], dialect),
    )


def _whole_row(table: Table, dialect: Dialect) -> _Prepared:
    return _Prepared(insert(table), [column.name for column in table.columns], [], dialect)


LEVEL = -3
"""zstd's fast side: a third more bytes than level 1 for half its time, and a tick waits for it."""
_PRESSED_FREE = zstandard.ZstdCompressor(level=LEVEL).compress(FREE)


def unpresser() -> Callable[[bytes], bytes]:
    """What gives a stored document back."""
    return zstandard.ZstdDecompressor().decompress


class StoredJournal:
    """The Journal port over a database. `epoch` is the lease under which the run was claimed."""

    def __init__(self, database: Database, run_id: str, epoch: int, now: Callable[[], Instant]) -> None:
        self.run_id = run_id
        self._row_start = b"records\0" + rows.encode(run_id)
        self.epoch = epoch
        self._database = database
        self._now = now
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
        before = self._tail
        if before is None:  # a chain that begins needs no look: were there one, its first record would be in the way
            before = Tail() if batch and batch[0].seq == 0 else self._stored_tail()
        tail = follow(before, batch, state, progress)
        say = _statements(self._database.engine.dialect)
        record_rows = [say.insert_record.bind(self._record_row(record)) for record in batch]
        closing = bool(batch) and batch[-1].kind == "close"
        body = self._press(codec.dumps(state))
        state_seal = rows.seal("run_states", map(rows.encode, (self.run_id, state.seq, body)))
        with self._database.write_raw() as cursor:
            held = self._renew(cursor, say, progress, closing)
            if record_rows:
                self._append(cursor, say, record_rows)
            cursor.execute(say.change_state.sql, say.change_state.bind((state.seq, body, state_seal, self.run_id)))
            if cursor.rowcount == 0:
                cursor.execute(say.insert_state.sql, say.insert_state.bind((self.run_id, state.seq, body, state_seal)))
        self._tail, self._held = tail, held

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

    def _renew(self, cursor: Any, say: _Statements, progress: float, closing: bool) -> _HeldRow:
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
        if row is None or row["lease_epoch"] != self.epoch:
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
        self, cursor: Any, say: _Statements, held: _HeldRow, progress: float, closing: bool
    ) -> _HeldRow | None:
        """Write progress and sign of life over the row that we hold; None if that is not what is stored."""
        status: Status = "computing_metrics" if closing and held.status == "running" else held.status
        progress, heartbeat_at = max(float(progress), held.progress), self._now()
        after = held.renewed(status, progress, heartbeat_at)
        values = (status, progress, heartbeat_at, after.seal, self.run_id, self.epoch, held.seal)
        cursor.execute(say.beat.sql, say.beat.bind(values))
        return after if cursor.rowcount == 1 else None

    def _append(self, cursor: Any, say: _Statements, record_rows: Sequence[Any]) -> None:
        try:
            cursor.executemany(say.insert_record.sql, record_rows)
        except self._database.engine.dialect.loaded_dbapi.IntegrityError as error:
            raise ReplayMismatch(f"run {self.run_id} already holds some of these records") from error

    def _record_row(self, record: Record) -> tuple[object, ...]:
        """The row of a record with its seal, which is `rows.seal` of the values written out in one go."""
        covered = self._press(record.covered)
        extra = _PRESSED_FREE if record.extra == FREE else self._press(record.extra)
        covered_sha256, extra_sha256 = sha256(covered).digest(), sha256(extra).digest()
        kind, prev, digest = record.kind.encode(), record.prev_digest.encode(), record.digest.encode()
        sealed = sha256(
            b"%bI%d;T%d:%bI%d;T%d:%bT%d:%bB%d:%bB%d:%b"
            % (
                self._row_start,
                record.seq,
                len(kind),
                kind,
                record.tick_at,
                len(prev),
                prev,
                len(digest),
                digest,
                len(covered),
                covered_sha256,
                len(extra),
                extra_sha256,
            )
        ).hexdigest()
        return (
            self.run_id,
            record.seq,
            record.kind,
            record.tick_at,
            record.prev_digest,
            record.digest,
            covered,
            extra,
            sealed,
        )

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
