"""A run's records from the newest back, up to an instant: for questions about its past that need only the last few.

Reading forward is `store.journal`. Every row is checked against its seal; the chain between rows is not, because a
question about ten decisions must not read a year of them (`runs verify` does that).
"""

from collections.abc import Iterator
from typing import Any, cast

from sqlalchemy import select

from pitboss.core.instant import Instant
from pitboss.core.snapshot import Record, RecordKind
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.journal import unpresser
from pitboss.store.schema import records

PAGE = 32


def newest(database: Database, run_id: str, until_at: Instant) -> Iterator[Record]:
    """The records of ticks at or before `until_at`, newest first. No lock is held between pages."""
    unpress = unpresser()
    below: int | None = None
    while True:
        query = rows.raw(records).where(records.c.run_id == run_id, records.c.tick_at <= until_at)
        if below is not None:
            query = query.where(records.c.seq < below)
        with database.read() as connection:
            page = rows.fetch_all(connection, query.order_by(records.c.seq.desc()).limit(PAGE))
        for row in page:
            rows.require_intact(records, row)
            yield _record(row, unpress)
        if len(page) < PAGE:
            return
        below = page[-1]["seq"]


def at(database: Database, run_id: str, tick_at: Instant) -> Record | None:
    """The record of the tick at exactly this instant."""
    found = select(records.c.seq).where(
        records.c.run_id == run_id, records.c.tick_at == tick_at, records.c.kind == "tick"
    )
    with database.read() as connection:
        query = rows.raw(records).where(records.c.run_id == run_id, records.c.seq.in_(found.scalar_subquery()))
        page = rows.fetch_all(connection, query.limit(1))
    for row in page:
        rows.require_intact(records, row)
        return _record(row, unpresser())
    return None


def _record(row: dict[str, Any], unpress: Any) -> Record:
    return Record(
        seq=row["seq"],
        kind=cast("RecordKind", row["kind"]),
        tick_at=row["tick_at"],
        prev_digest=row["prev_digest"],
        digest=row["digest"],
        covered=unpress(row["covered"]),
        extra=unpress(row["extra"]),
    )
