"""Whether a stored run is still, byte for byte, what was written.

Checks the file, the seal of every row that belongs to the run, the chain of digests from its beginning, and that the run's
own digest is the end of the chain. It does not recompute metrics: that needs the simulator.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import zstandard
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from pitboss.core import codec, snapshot
from pitboss.core.errors import ReplayMismatch, UserError
from pitboss.core.snapshot import GENESIS
from pitboss.store import sealed_rows as rows
from pitboss.store import sqlite
from pitboss.store.compression import decompressor
from pitboss.store.database import Database
from pitboss.store.journal import PAGE, read_record
from pitboss.store.schema import records, run_states, runs, skill_versions, skills


def verify_run(database: Database, run_id: str) -> list[str]:
    """All problems of a stored run as sentences; empty if there are none."""
    problems: list[str] = []
    try:
        if database.journal_mode is not None:
            with database.read() as connection:
                problems += [f"the database file is damaged: {line}" for line in sqlite.damage(connection)]
        with database.read() as connection:
            run = rows.fetch(connection, runs, {"id": run_id})
            if run is None:
                return [*problems, f"there is no run {run_id}"]
            problems += _run_and_skill(connection, run)
        end, state, chain_problems = _chain(database, run_id)
        problems += [*chain_problems, *_state(state, *end)]
        if run["status"] == "complete" and run["digest"] != end[1]:
            problems.append("the run's digest is not that of its last record")
    except (UserError, DBAPIError) as error:
        # A changed byte can make a row unreadable for the driver itself; that is a problem of the run, not a failure.
        problems.append(f"the database cannot be read: {error}")
    return problems


def _run_and_skill(connection: Connection, run: Mapping[str, Any]) -> Iterator[str]:
    if not rows.intact(runs, run):
        yield "the run's row was changed"
    skill = rows.fetch(connection, skills, {"id": run["skill_id"]})
    if skill is None:
        yield "the run's skill is missing"
    elif not rows.intact(skills, skill):
        yield "the row of the run's skill was changed"
    key = {"skill_id": run["skill_id"], "version": run["skill_version"]}
    version = rows.fetch(connection, skill_versions, key)
    if version is None:
        yield "the run's skill version is missing"
    elif not rows.intact(skill_versions, version):
        yield "the row of the run's skill version was changed"


def _chain(database: Database, run_id: str) -> tuple[tuple[int, str], dict[str, Any] | None, list[str]]:
    """The end of the chain (next number, last digest), the state there, and the problems found.

    Continues after a bad record. The state is read together with the last records, because the run may be in progress.
    """
    problems: list[str] = []
    expected, digest, decompress = 0, GENESIS, decompressor()
    after = -(1 << 62)  # below any number: a record that sits before the first is found too
    while True:
        query = rows.raw(records).where(records.c.run_id == run_id, records.c.seq > after)
        with database.read() as connection:
            page = rows.fetch_all(connection, query.order_by(records.c.seq).limit(PAGE))
            state = rows.fetch(connection, run_states, {"run_id": run_id})
        for row in page:
            if not isinstance(row["seq"], int):  # sorts after every number, so nothing of the chain comes later
                return (expected, digest), state, [*problems, f"record {row['seq']!r} was changed"]
            after = row["seq"]
            if not rows.intact(records, row):
                problems.append(f"record {row['seq']} was changed")
            else:
                try:
                    snapshot.check(read_record(row, decompress), expected, digest)
                except ReplayMismatch as error:
                    problems.append(str(error))
                except (zstandard.ZstdError, ValueError, KeyError, TypeError):
                    problems.append(f"record {row['seq']} cannot be read")
            expected, digest = after + 1, row["digest"]
        if len(page) < PAGE:
            return (expected, digest), state, problems


def _state(row: Mapping[str, Any] | None, next_seq: int, digest: str) -> Iterator[str]:
    if row is None:
        if next_seq:
            yield "the run has records but no state"
        return
    if not rows.intact(run_states, row):
        yield "the run's state was changed"
        return
    try:
        state = codec.loads(decompressor()(row["body"]))
        ends = row["seq"], state["seq"], state["prev_digest"]
    except (zstandard.ZstdError, ValueError, KeyError, TypeError):
        yield "the run's state cannot be read"
        return
    if ends != (next_seq, next_seq, digest):
        yield "the run's state does not belong to its last record"
