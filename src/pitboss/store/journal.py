"""`StoredJournal`: a run's records and its state in the database, one transaction per commit.

The hot path of the store. It speaks to the driver directly with statements that SQLAlchemy compiled, so the SQL stays
portable and a commit costs little more than its inserts. Compression is per record; seals are over what is stored.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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
from pitboss.store.lifecycle import ENDED, LeaseLost
from pitboss.store.schema import SEAL, records, run_states, runs

PAGE = 256
"""Records read at a time. Between pages no lock is held, so a slow reader never makes the run wait."""

_RUN_NAMES = rows.sealed_columns(runs)
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
    progress: float
    seal: str

    @classmethod
    def of(cls, row: dict[str, Any]) -> "_HeldRow":
        return cls(tuple(rows.encode(row[name]) for name in _RUN_NAMES), row["progress"], row[SEAL])

    def renewed(self, progress: float, heartbeat_at: Instant) -> "_HeldRow":
        encoded = list(self.encoded)
        encoded[_PROGRESS] = rows.encode(progress)
        encoded[_HEARTBEAT] = rows.encode(heartbeat_at)
        return _HeldRow(tuple(encoded), progress, rows.seal("runs", encoded))


LEVEL = -3
"""zstd's fast side: a third more bytes than level 1 for half its time, and a tick waits for it."""
FREE_PRESSED = zstandard.ZstdCompressor(level=LEVEL).compress(FREE)
"""The commonest half of all, pressed once."""
FREE_SHA256 = sha256(FREE_PRESSED).digest()


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
        self._unpress = zstandard.ZstdDecompressor().decompress
        dialect = database.engine.dialect
        self._held: _HeldRow | None = None
        self.cancel_requested = False
        """Whether somebody had asked for the run to stop when the last commit was made. Costs nothing to ask."""
        self._run_columns = [column.name for column in runs.columns]
        self._read_run = _Prepared(
            select(*runs.columns).where(runs.c.id == bindparam("of_run")).with_for_update(), [], ["of_run"], dialect
        )
        self._beat = _Prepared(
            update(runs).where(
                runs.c.id == bindparam("of_run"),
                runs.c.lease_epoch == bindparam("epoch"),
                runs.c[SEAL] == bindparam("old_seal"),
            ),
            ["progress", "heartbeat_at", SEAL],
            ["of_run", "epoch", "old_seal"],
            dialect,
        )
        self._insert_record = _whole_row(records, dialect)
        self._insert_state = _whole_row(run_states, dialect)
        self._change_state = _Prepared(
            update(run_states).where(run_states.c.run_id == bindparam("of_run")),
            ["seq", "body", SEAL],
            ["of_run"],
            dialect,
        )

    async def commit(self, batch: Sequence[Record], state: State, progress: float) -> None:
        """Append records, replace the state, note the progress: all or nothing.

        Not a real suspension point: the work is shorter than a hop to a thread and back.
        """
        if self._tail is None:
            self._tail = self._stored_tail()
        tail = follow(self._tail, batch, state, progress)
        record_rows = [self._insert_record.bind(self._record_row(record)) for record in batch]
        body = self._press(codec.dumps(state))
        state_seal = rows.seal("run_states", map(rows.encode, (self.run_id, state.seq, body)))
        with self._database.write_raw() as cursor:
            held = self._renew(cursor, progress)
            if record_rows:
                self._append(cursor, record_rows)
            cursor.execute(self._change_state.sql, self._change_state.bind((state.seq, body, state_seal, self.run_id)))
            if cursor.rowcount == 0:
                cursor.execute(
                    self._insert_state.sql, self._insert_state.bind((self.run_id, state.seq, body, state_seal))
                )
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

    def _renew(self, cursor: Any, progress: float) -> "_HeldRow":
        """Check the lease and renew it; the row stays locked until the commit.

        The row is taken to be as we left it, and the UPDATE matches only if it is. It is read again when somebody else
        wrote it: asked for a cancel, say, or took the run.
        """
        if self._held is not None:
            renewed = self._beat_from(cursor, self._held, progress)
            if renewed is not None:
                return renewed
        cursor.execute(self._read_run.sql, self._read_run.bind((self.run_id,)))
        found = cursor.fetchone()
        row = None if found is None else dict(zip(self._run_columns, found, strict=True))
        if row is None or row["lease_epoch"] != self.epoch:
            raise LeaseLost(self.run_id)
        rows.require_intact(runs, row)
        if row["status"] in ENDED:
            raise InvariantError(f"run {self.run_id} has ended ({row['status']}) and takes no more records")
        self.cancel_requested = bool(row["cancel_requested"])
        renewed = self._beat_from(cursor, _HeldRow.of(row), progress)
        if renewed is None:
            raise LeaseLost(self.run_id)
        return renewed

    def _beat_from(self, cursor: Any, held: "_HeldRow", progress: float) -> "_HeldRow | None":
        """Write progress and sign of life over the row that we hold; None if that is not what is stored."""
        progress, heartbeat_at = max(float(progress), held.progress), self._now()
        after = held.renewed(progress, heartbeat_at)
        values = (progress, heartbeat_at, after.seal, self.run_id, self.epoch, held.seal)
        cursor.execute(self._beat.sql, self._beat.bind(values))
        return after if cursor.rowcount == 1 else None

    def _append(self, cursor: Any, record_rows: Sequence[Any]) -> None:
        try:
            cursor.executemany(self._insert_record.sql, record_rows)
        except self._database.engine.dialect.loaded_dbapi.IntegrityError as error:
            raise ReplayMismatch(f"run {self.run_id} already holds some of these records") from error

    def _record_row(self, record: Record) -> tuple[object, ...]:
        """The row of a record with its seal, which is `rows.seal` of the values written out in one go."""
        covered = self._press(record.covered)
        free = record.extra == FREE
        extra = FREE_PRESSED if free else self._press(record.extra)
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
                sha256(covered).digest(),
                len(extra),
                FREE_SHA256 if free else sha256(extra).digest(),
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


def _whole_row(table: Table, dialect: Dialect) -> _Prepared:
    return _Prepared(insert(table), [column.name for column in table.columns], [], dialect)
