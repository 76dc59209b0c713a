"""What only the stored journal does: leases, atomic commits inside the database, bytes that survive, seals on read.

What every journal does is in `tests/contracts/test_journal_contract.py`.
"""

import asyncio
import dataclasses
import random
import shutil
import sqlite3
import sys

import pytest
from sqlalchemy import insert
from sqlalchemy.dialects import postgresql

from pitboss.core.errors import InvariantError, ReplayMismatch, UserError
from pitboss.core.snapshot import GENESIS, ZERO_COST_EXTRA, seal
from pitboss.store import journal
from pitboss.store import run_history as history
from pitboss.store.compiled import ROWS_AT_ONCE, CompiledStatement
from pitboss.store.database import open_database
from pitboss.store.lifecycle import LeaseLost
from pitboss.store.recent_records import newest_records
from pitboss.store.schema import records as record_table
from pitboss.store.verify import verify_run
from pitboss.testing.journal import chained, state_after


def stored(bench, table):
    with bench.database.read() as connection:
        return connection.exec_driver_sql(f"SELECT * FROM {table}").fetchall()


def test_a_commit_that_fails_after_its_inserts_leaves_nothing(file_bench):
    bench = file_bench
    run_id, epoch = bench.running()
    kept, records = bench.journal(run_id, epoch), chained(5)
    bench.commit(kept, records[:2], 0.2)
    before = [stored(bench, table) for table in ("runs", "records", "run_states")]
    with bench.database.write() as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER break_it BEFORE UPDATE ON run_states BEGIN SELECT RAISE(ABORT, 'broken'); END"
        )

    with pytest.raises(sqlite3.IntegrityError, match="broken"):
        bench.commit(kept, records[2:], 0.9)

    assert [stored(bench, table) for table in ("runs", "records", "run_states")] == before
    with bench.database.write() as connection:
        connection.exec_driver_sql("DROP TRIGGER break_it")
    bench.commit(kept, records[2:], 0.9)
    assert list(kept.records()) == records


def test_a_full_disk_in_the_middle_of_a_commit_keeps_what_was_committed_before(file_bench):
    bench = file_bench
    run_id, epoch = bench.running()
    kept, records = bench.journal(run_id, epoch), chained(400)
    bench.commit(kept, records[:2])
    with bench.database.write_raw() as cursor:  # the connection that commits use keeps the limit
        (pages,) = cursor.execute("PRAGMA page_count").fetchone()
        cursor.execute(f"PRAGMA max_page_count={pages + 2}")

    with pytest.raises(UserError, match="disk is full"):
        bench.commit(kept, records[2:])

    assert list(kept.records()) == records[:2]
    assert verify_run(bench.database, run_id) == []


@pytest.mark.parametrize("count", [1, ROWS_AT_ONCE - 1, ROWS_AT_ONCE, 2 * ROWS_AT_ONCE + 3])
def test_a_batch_is_stored_whole_and_in_order_whatever_its_length(bench, count):
    """SQLite takes several rows in one statement."""
    run_id, epoch = bench.running()
    kept, records = bench.journal(run_id, epoch), chained(count)

    bench.commit(kept, records)

    assert list(kept.records()) == records
    assert verify_run(bench.database, run_id) == []


def test_a_journal_whose_lease_was_taken_fails_and_writes_nothing(bench):
    """E2, Q2: also between two commits, and also when it never committed before."""
    run_id, epoch = bench.running()
    zombie, asleep, records = bench.journal(run_id, epoch), bench.journal(run_id, epoch), chained(3)
    bench.commit(zombie, records[:1])

    heir = bench.journal(run_id, bench.runs.claim(run_id))
    for late in (zombie, asleep):
        with pytest.raises(LeaseLost, match="another worker took this run"):
            bench.commit(late, records[1:2])
    asyncio.run(heir.commit(records[1:], state_after(records), 0.9))

    assert list(heir.records()) == records
    with pytest.raises(LeaseLost):
        bench.commit(zombie, records[1:2])


def test_a_journal_that_lost_its_run_before_its_first_commit_is_reported_as_that_and_not_as_a_broken_chain(bench):
    run_id, epoch = bench.running()
    records = chained(4)
    bench.commit(bench.journal(run_id, epoch), records[:1])
    zombie = bench.journal(run_id, bench.runs.claim(run_id))  # resumes here, and is stopped
    heir = bench.journal(run_id, bench.runs.claim(run_id))
    bench.commit(heir, records[1:2])

    with pytest.raises(LeaseLost):
        bench.commit(zombie, records[1:2])
    with pytest.raises(ReplayMismatch):
        bench.commit(heir, records[3:])


def test_two_journals_under_one_lease_cannot_both_write_a_record(bench):
    run_id, epoch = bench.running()
    one, other, records = bench.journal(run_id, epoch), bench.journal(run_id, epoch), chained(3)
    bench.commit(one, records[:1])
    bench.commit(other, records[:2][1:])

    with pytest.raises(ReplayMismatch, match="already holds"):
        bench.commit(one, records[1:3])

    assert list(one.records()) == records[:2]


@pytest.mark.parametrize("end", ["error", "cancelled"])
def test_an_ended_run_takes_no_more_records(bench, end):
    run_id, epoch = bench.running()
    late, records = bench.journal(run_id, epoch), chained(2)
    bench.commit(late, records[:1])
    if end == "error":
        bench.runs.fail(run_id, epoch, "why")
    else:
        bench.runs.set_status(run_id, end, epoch)

    with pytest.raises(InvariantError, match=f"has ended .{end}."):
        bench.commit(late, records[1:])


def test_a_commit_notes_progress_and_a_sign_of_life_and_progress_never_falls(bench):
    """Q4."""
    run_id, epoch = bench.running()
    kept, records = bench.journal(run_id, epoch), chained(3)
    seen = []
    for number, progress in enumerate([0.25, 0.75, 0.5]):
        bench.at += 1000
        bench.commit(kept, [records[number]], progress)
        run = bench.runs.get(run_id)
        seen.append((run.progress, run.heartbeat_at - bench.at))

    assert seen == [(0.25, 0), (0.75, 0), (0.75, 0)]


@pytest.mark.parametrize("processes", ["several", "one"])
def test_reopening_gives_identical_bytes(path, processes, make_bench):
    with open_database(path, processes) as database:
        bench = make_bench(database)
        run_id, records = bench.complete(600)
        state = bench.journal(run_id, 1).latest_state()
        rows = [stored(bench, table) for table in ("runs", "records", "run_states", "skills", "skill_versions")]

    with open_database(path, processes) as database:
        again = make_bench(database)
        assert list(again.journal(run_id, 1).records()) == records
        assert again.journal(run_id, 1).latest_state() == state
        assert [stored(again, table) for table in ("runs", "records", "run_states", "skills", "skill_versions")] == rows
        assert verify_run(database, run_id) == []


def test_a_cancel_request_reaches_the_worker_with_its_next_commit(bench):
    run_id, epoch = bench.running()
    kept, records = bench.journal(run_id, epoch), chained(3)
    bench.commit(kept, records[:1])
    assert not kept.cancel_requested

    bench.runs.request_cancel(run_id)
    bench.commit(kept, records[1:2])

    assert kept.cancel_requested
    bench.commit(kept, records[2:])
    assert kept.cancel_requested


def test_reading_records_slowly_does_not_hold_up_the_run(bench, monkeypatch):
    monkeypatch.setattr(journal, "PAGE", 2)
    run_id, epoch = bench.running()
    kept, records = bench.journal(run_id, epoch), chained(6)
    bench.commit(kept, records[:4])
    reader = bench.journal(run_id, epoch).records()
    first = [next(reader), next(reader), next(reader)]

    bench.commit(kept, records[4:])

    assert first + list(reader) == records


def test_records_can_be_read_from_a_number_on(bench):
    run_id, records = bench.complete(5)

    assert list(bench.journal(run_id, 1).records(3)) == records[3:]


@pytest.mark.parametrize("column", ["kind", "tick_at", "prev_digest", "digest", "covered", "extra", "row_sha256"])
def test_reading_a_changed_record_fails_at_that_record(bench, column):
    run_id, records = bench.complete(3)
    with bench.database.write() as connection:
        value = "7" if column == "tick_at" else "'x'"
        connection.exec_driver_sql(f"UPDATE records SET {column} = {value} WHERE seq = 1")
    reader = bench.journal(run_id, 1).records()

    assert next(reader) == records[0]
    with pytest.raises(ReplayMismatch, match="records was changed"):
        next(reader)


def test_records_can_be_read_without_what_their_digests_do_not_cover(bench):
    run_id, records = bench.complete(5)
    without = [dataclasses.replace(record, extra=ZERO_COST_EXTRA) for record in records]

    assert list(bench.journal(run_id, 1).covered_records()) == without
    assert list(bench.journal(run_id, 1).covered_records(3)) == without[3:]
    assert newest_records(bench.database, run_id, 1, 2) == without[3:]
    assert newest_records(bench.database, run_id, 1, 9) == without[2:]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("kind", "'x'"),
        ("kind", "'span'"),
        ("tick_at", "7"),
        ("prev_digest", "'x'"),
        ("digest", "'x'"),
        ("covered", "'x'"),
        ("covered", "x'00'"),
        ("covered", "(SELECT covered FROM records WHERE seq = 2)"),
    ],
)
def test_reading_what_a_digest_covers_fails_at_a_record_that_was_changed(file_bench, column, value):
    run_id, records = file_bench.complete(3)
    with file_bench.database.write() as connection:
        connection.exec_driver_sql(f"UPDATE records SET {column} = {value} WHERE seq = 1")
    reader = file_bench.journal(run_id, 1).covered_records()

    assert next(reader).digest == records[0].digest
    with pytest.raises(ReplayMismatch, match="record 1 "):
        next(reader)
    with pytest.raises(ReplayMismatch, match="record 1 "):
        newest_records(file_bench.database, run_id, 0, 9)


def test_reading_past_a_missing_record_fails(bench):
    run_id, _ = bench.complete(3)
    with bench.database.write() as connection:
        connection.exec_driver_sql("DELETE FROM records WHERE seq = 1")

    for read in (bench.journal(run_id, 1).records, bench.journal(run_id, 1).covered_records):
        with pytest.raises(ReplayMismatch, match="record 2 is not the next link after 0"):
            list(read())


@pytest.mark.parametrize("column", ["seq", "body", "row_sha256"])
def test_reading_a_changed_state_fails(bench, column):
    run_id, _ = bench.complete(3)
    with bench.database.write() as connection:
        connection.exec_driver_sql(f"UPDATE run_states SET {column} = {'7' if column == 'seq' else repr('7')}")

    with pytest.raises(ReplayMismatch, match="run_states was changed"):
        bench.journal(run_id, 1).latest_state()


def test_a_commit_does_not_launder_a_changed_run(bench):
    run_id, epoch = bench.running()
    kept, records = bench.journal(run_id, epoch), chained(2)
    bench.commit(kept, records[:1])
    with bench.database.write() as connection:
        connection.exec_driver_sql("UPDATE runs SET model = 'another'")

    bench.commit(kept, records[1:])

    assert verify_run(bench.database, run_id) == ["the run's row was changed"]


def test_a_journal_does_not_begin_on_a_run_that_was_changed(bench):
    run_id, epoch = bench.running()
    with bench.database.write() as connection:
        connection.exec_driver_sql("UPDATE runs SET model = 'another'")

    with pytest.raises(ReplayMismatch, match="runs was changed"):
        bench.commit(bench.journal(run_id, epoch), chained(1))


def test_a_resumed_run_does_not_go_on_from_a_changed_record(bench):
    run_id, epoch = bench.running()
    records = chained(2)
    bench.commit(bench.journal(run_id, epoch), records[:1])
    with bench.database.write() as connection:
        connection.exec_driver_sql(f"UPDATE records SET digest = '{'0' * 64}'")

    with pytest.raises(ReplayMismatch):
        bench.commit(bench.journal(run_id, epoch), records[1:])


def test_receipts_and_equity_are_read_out_of_the_records(bench):
    run_id, _ = bench.complete(3)
    kept = bench.journal(run_id, 1)

    assert list(history.equity(kept.records())) == [(0, "10000"), (300_000, "10000"), (600_000, "10000")]
    assert list(history.receipts(kept.records())) == []


def test_statements_bind_by_name_for_a_driver_that_wants_names():
    names = [column.name for column in record_table.columns]
    prepared = CompiledStatement(insert(record_table), names, [], postgresql.dialect())

    assert "%(covered)s" in prepared.sql
    assert prepared.bind(range(len(names))) == dict(zip(names, range(len(names)), strict=True))


def test_a_write_ahead_log_cut_anywhere_leaves_a_prefix_with_every_acknowledged_commit(tmp_path, make_bench):
    """E4, a hundredth of it: the machine stops, and of the log only the first bytes reached the disk."""
    live = tmp_path / "live"
    live.mkdir()
    log = live / "pitboss.db-wal"
    records, acknowledged = chained(20), []
    with open_database(live / "pitboss.db", "one") as database:
        bench = make_bench(database)
        run_id, epoch = bench.running()
        with database.engine.connect() as connection:  # from here on the whole story is in the log
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        kept = bench.journal(run_id, epoch)
        for number in range(len(records)):
            bench.commit(kept, records[number : number + 1], number / 20)
            acknowledged.append(log.stat().st_size)
        shutil.copytree(live, tmp_path / "image")

    content = (tmp_path / "image" / "pitboss.db-wal").read_bytes()
    assert len(content) == acknowledged[-1]
    chance = random.Random(8)
    for cut in [*acknowledged[:3], *(chance.randrange(len(content)) for _ in range(25))]:
        image = tmp_path / f"cut{cut}"
        shutil.copytree(tmp_path / "image", image, ignore=shutil.ignore_patterns("*-shm"), dirs_exist_ok=True)
        (image / "pitboss.db-wal").write_bytes(content[:cut])
        with open_database(image / "pitboss.db", "one") as database:
            found = list(make_bench(database).journal(run_id, epoch).records())
            assert verify_run(database, run_id) == []
        assert found == records[: len(found)]
        assert len(found) >= sum(size <= cut for size in acknowledged)


def free(count, kind="span"):
    """Records of a policy: nothing was asked and nothing paid for."""
    prev, made = GENESIS, []
    for seq in range(count):
        made.append(seal(seq, kind, seq, prev, {"receipts": [], "equity": []}, ZERO_COST_EXTRA))
        prev = made[-1].digest
    return made


def test_the_closing_record_of_a_running_run_moves_it_on_in_the_same_commit(bench):
    run_id, epoch = bench.running()
    kept, records = bench.journal(run_id, epoch), chained(3)
    assert kept.status is None
    bench.commit(kept, records[:2])
    assert (kept.status, bench.runs.get(run_id).status) == ("running", "running")
    last = seal(2, "close", 9, records[1].digest, {"receipts": [], "equity": []}, ZERO_COST_EXTRA)

    bench.commit(kept, [last], 1.0)

    assert (kept.status, bench.runs.get(run_id).status) == ("computing_metrics", "computing_metrics")
    assert verify_run(bench.database, run_id) == []


def test_a_closing_record_does_not_move_a_run_that_is_not_running(bench):
    run_id = bench.queued()
    kept = bench.journal(run_id, bench.runs.claim(run_id))

    bench.commit(kept, free(1, "close"), 1.0)

    assert bench.runs.get(run_id).status == "loading"


def test_a_closing_commit_that_fails_moves_nothing(file_bench):
    bench = file_bench
    run_id, epoch = bench.running()
    kept = bench.journal(run_id, epoch)
    with bench.database.write() as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER break_it BEFORE INSERT ON run_states BEGIN SELECT RAISE(ABORT, 'broken'); END"
        )

    with pytest.raises(sqlite3.IntegrityError, match="broken"):
        bench.commit(kept, free(1, "close"), 1.0)

    assert (kept.status, bench.runs.get(run_id).status) == (None, "running")


def test_a_journal_keeps_no_record_alive_after_its_commit(bench):
    run_id, epoch = bench.running()
    kept, records = bench.journal(run_id, epoch), free(2)
    records += chained(2, records)
    held = [sys.getrefcount(record.covered) for record in records]

    bench.commit(kept, records)

    assert [sys.getrefcount(record.covered) for record in records] == held


def test_a_second_beginning_of_a_chain_is_refused_and_the_first_goes_on(bench):
    run_id, epoch = bench.running()
    first, late, records = bench.journal(run_id, epoch), bench.journal(run_id, epoch), chained(4)
    bench.commit(first, records[:2])

    with pytest.raises(ReplayMismatch, match="already holds"):
        bench.commit(late, records[:3])
    bench.commit(late, records[2:])

    assert list(first.records()) == records
