"""Inserting a run that was not executed here tick by tick: from a bundle, or as the branch of another run.

One transaction inserts the run with all its records, its state and its replies, or nothing. The caller has checked the data.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import insert

from pitboss.core import codec
from pitboss.core.money import text
from pitboss.core.snapshot import Record
from pitboss.store import sealed_rows as rows
from pitboss.store.answers import StoredReply, answer_row
from pitboss.store.compression import compressor
from pitboss.store.database import Database
from pitboss.store.journal import PAGE
from pitboss.store.runs import Run
from pitboss.store.schema import SEAL, answers, records, run_states, runs

T = TypeVar("T")


def insert_run(
    database: Database, run: Run, chain: Iterable[Record], state: Any, replies: Iterable[StoredReply] = ()
) -> None:
    """Insert a run. `state` is that after its last record, None if it has no records; replies that are stored already stay."""
    compress = compressor()
    insert_reply = rows.insert_unless_there(database.engine.dialect, answers)
    with database.write() as connection:
        rows.add(connection, runs, _run_row(run))
        for page in _pages(chain):
            connection.execute(insert(records), [_record_row(run.id, record, compress) for record in page])
        if state is not None:
            body = compress(codec.dumps(state))
            seq = state["seq"] if isinstance(state, dict) else state.seq
            rows.add(connection, run_states, {"run_id": run.id, "seq": seq, "body": body})
        for page in _pages(replies):
            connection.execute(insert_reply, [answer_row(reply, compress) for reply in page])


def _pages(items: Iterable[T]) -> Iterator[list[T]]:
    iterator = iter(items)
    while page := list(islice(iterator, PAGE)):
        yield page


def _run_row(run: Run) -> dict[str, object]:
    row: dict[str, object] = {name: getattr(run, name) for name in rows.sealed_columns(runs)}
    row |= {"queued_at": None, "requeues": 0, "worker": None, "study_id": None}  # not in the queue, and of no study
    for name in ("params", "metrics", "baselines"):
        row[name] = None if row[name] is None else codec.dumps(row[name])
    for name in ("cost_usd", "saved_usd", "wasted_usd"):
        row[name] = text(getattr(run, name))
    return row


def _record_row(run_id: str, record: Record, compress: Any) -> dict[str, object]:
    row = {**asdict(record), "run_id": run_id, "covered": compress(record.covered), "extra": compress(record.extra)}
    return {**row, SEAL: rows.seal_of(records, row)}
