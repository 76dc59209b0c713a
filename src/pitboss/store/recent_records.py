"""A run's records from the newest backwards, up to an instant: for queries that need only the last few.

Reading forwards is in `journal.py`. Every row is checked against its seal or digest; the chain between rows is not, because a query
for ten decisions must not read a year of them (`runs verify` does).
"""

from collections.abc import Iterator, Sequence

from sqlalchemy import func, select, tuple_

from pitboss.core.instant import Instant
from pitboss.core.snapshot import Record
from pitboss.store import sealed_rows as rows
from pitboss.store.compression import decompressor
from pitboss.store.database import Database
from pitboss.store.journal import COVERED, read_covered, read_record
from pitboss.store.schema import records

PAGE = 32


def newest(database: Database, run_id: str, until_at: Instant) -> Iterator[Record]:
    """The records of ticks at or before `until_at`, newest first. No lock is held between pages."""
    decompress = decompressor()
    below: int | None = None
    while True:
        query = rows.raw(records).where(records.c.run_id == run_id, records.c.tick_at <= until_at)
        if below is not None:
            query = query.where(records.c.seq < below)
        with database.read() as connection:
            page = rows.fetch_all(connection, query.order_by(records.c.seq.desc()).limit(PAGE))
        for row in page:
            rows.require_intact(records, row)
            yield read_record(row, decompress)
        if len(page) < PAGE:
            return
        below = page[-1]["seq"]


def numbered(database: Database, run_id: str, seq: int) -> Record | None:
    """The record with a number; nothing else is read."""
    with database.read() as connection:
        page = rows.fetch_all(
            connection, rows.raw(records).where(records.c.run_id == run_id, records.c.seq == seq).limit(1)
        )
    for row in page:
        rows.require_intact(records, row)
        return read_record(row, decompressor())
    return None


def at(database: Database, run_id: str, tick_at: Instant) -> Record | None:
    """The record of the tick at exactly this instant."""
    numbers = select(records.c.seq).where(
        records.c.run_id == run_id, records.c.tick_at == tick_at, records.c.kind == "tick"
    )
    with database.read() as connection:
        query = rows.raw(records).where(records.c.run_id == run_id, records.c.seq.in_(numbers.scalar_subquery()))
        page = rows.fetch_all(connection, query.limit(1))
    for row in page:
        rows.require_intact(records, row)
        return read_record(row, decompressor())
    return None


def newest_records(database: Database, run_id: str, after_seq: int, limit: int) -> list[Record]:
    """The newest records with a number above `after_seq`, oldest first, at most `limit`, as `read_covered` gives them."""
    query = COVERED.where(records.c.run_id == run_id, records.c.seq > after_seq)
    with database.read() as connection:
        page = rows.fetch_all(connection, query.order_by(records.c.seq.desc()).limit(limit))
    decompress = decompressor()
    return [read_covered(row, decompress, row["seq"]) for row in reversed(page)]


def newest_of(database: Database, run_ids: Sequence[str]) -> dict[str, Record]:
    """The newest record of each of some runs, by the id of the run, in one query, as `read_covered` gives it. Runs without
    records are left out.
    """
    last = select(records.c.run_id, func.max(records.c.seq)).where(records.c.run_id.in_(run_ids))
    is_last = tuple_(records.c.run_id, records.c.seq).in_(last.group_by(records.c.run_id))
    with database.read() as connection:
        query = COVERED.add_columns(records.c.run_id).where(is_last)
        page = rows.fetch_all(connection, query) if run_ids else []
    decompress = decompressor()
    return {row.pop("run_id"): read_covered(row, decompress, row["seq"]) for row in page}
