"""One changed byte anywhere in a stored run is found."""

import random
import shutil
import sqlite3
import struct
from contextlib import contextmanager

import pytest
from sqlalchemy import update

from pitboss.core.errors import UserError
from pitboss.core.snapshot import GENESIS, ZERO_COST_EXTRA, seal
from pitboss.store import schema, verify
from pitboss.store import sealed_rows as rows
from pitboss.store.database import open_database
from pitboss.store.verify import verify_run
from pitboss.testing.journal import chained

TABLES = ("skills", "skill_versions", "runs", "records", "run_states")
COLUMNS = [(name, column.name) for name in TABLES for column in schema.metadata.tables[name].columns]
RECORDS = 4


@pytest.fixture(scope="module")
def finished(tmp_path_factory, make_bench):
    """One finished run in a file, made once; every test works on a copy."""
    path = tmp_path_factory.mktemp("finished") / "pitboss.db"
    with open_database(path) as database:
        run_id, _ = make_bench(database).complete(RECORDS)
    return path, run_id


@pytest.fixture
def copied(finished, tmp_path):
    path, run_id = finished
    return shutil.copy(path, tmp_path / "pitboss.db"), run_id


def free(count):
    """Records of a policy: nothing was asked and nothing paid for."""
    prev, made = GENESIS, []
    for seq in range(count):
        made.append(seal(seq, "span", seq, prev, {"receipts": [], "equity": []}, ZERO_COST_EXTRA))
        prev = made[-1].digest
    return made


def flips(value):
    """The value with one byte changed: the first, a middle one, the last. A NULL becomes something."""
    if value is None:
        return ["", 0]
    if isinstance(value, int):
        return [value ^ 1, value ^ (1 << 40)]
    if isinstance(value, float):
        data = struct.pack(">d", value)
        return [struct.unpack(">d", data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])[0] for at in (0, 4, 7)]
    data = value.encode() if isinstance(value, str) else value
    changed = [data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] for at in {0, len(data) // 2, len(data) - 1}]
    return [item.decode() if isinstance(value, str) else item for item in changed]


def problems(path, run_id):
    with open_database(path) as database:
        return verify_run(database, run_id)


def test_an_untouched_run_has_no_problems(copied):
    assert problems(*copied) == []


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_one_changed_byte_in_any_column_of_any_row_is_found(copied, table, column):
    path, run_id = copied
    with sqlite3.connect(path, isolation_level=None) as connection:
        found = connection.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
        cases = [(rowid, value, changed) for rowid, value in found for changed in flips(value)]
        refused = 0
        for rowid, value, changed in cases:
            try:
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (changed, rowid))
            except sqlite3.IntegrityError:  # would be another row's key
                refused += 1
                continue
            assert problems(path, run_id), f"row {rowid}: {value!r} became {changed!r}"
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, rowid))
    connection.close()
    assert refused < len(cases)
    assert problems(path, run_id) == []


@pytest.mark.parametrize("table", TABLES)
def test_a_missing_row_is_found(copied, table):
    path, run_id = copied
    for which in ("ASC", "DESC"):
        with sqlite3.connect(path) as connection:
            rowid = connection.execute(f"SELECT rowid FROM {table} ORDER BY rowid {which}").fetchone()[0]
            columns = ", ".join(column.name for column in schema.metadata.tables[table].columns)
            row = connection.execute(f"SELECT {columns} FROM {table} WHERE rowid = ?", (rowid,)).fetchone()
            connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (rowid,))
        connection.close()
        assert problems(path, run_id)
        with sqlite3.connect(path) as connection:
            connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({', '.join('?' * len(row))})", row)
        connection.close()
    assert problems(path, run_id) == []


@pytest.mark.parametrize("times", [60, pytest.param(20_000, marks=pytest.mark.proof)])
def test_one_changed_byte_anywhere_in_the_file_is_found_or_changes_nothing_that_is_read(finished, tmp_path, times):
    """The file, not the rows: a byte may also fall on the database's own structure, or on space that holds nothing."""
    path, run_id = finished
    original = path.read_bytes()
    result = {name: _dump(path, name) for name in TABLES}
    chance, caught = random.Random(2), 0
    used = [at for at, byte in enumerate(original) if byte]  # most of a small database is empty pages
    for number in range(times):
        at = chance.choice(used) if number % 4 else chance.randrange(len(original))
        image = tmp_path / "image.db"
        image.write_bytes(original[:at] + bytes([original[at] ^ (1 << chance.randrange(8))]) + original[at + 1 :])
        try:
            found = problems(image, run_id)
        except UserError:  # not even opened: the person is told
            found = ["refused"]
        if found:
            caught += 1
        else:
            assert {name: _dump(image, name) for name in TABLES} == result, f"byte {at} changed unseen"
    assert caught > times // 4


def _dump(path, table):
    with sqlite3.connect(path) as connection:
        found = connection.execute(f"SELECT * FROM {table}").fetchall()
    connection.close()
    return found


def _reseal(bench, table, key, changes):
    """Change a row as someone would who knows how seals are made."""
    with bench.database.write() as connection:
        rows.change(connection, table, rows.fetch(connection, table, key), changes)


def test_a_forged_record_with_a_fresh_seal_breaks_the_chain(bench):
    run_id, records = bench.complete(3)
    forged = seal(1, "tick", records[1].tick_at, records[0].digest, {"text": "bought at the low"}, {})
    journal = bench.journal(run_id, 1)
    changes = {"digest": forged.digest, "covered": journal._compress(forged.covered)}
    _reseal(bench, schema.records, {"run_id": run_id, "seq": 1}, changes)

    assert verify_run(bench.database, run_id) == ["record 2 is not the next link after 1"]


def test_a_forged_end_with_fresh_seals_is_not_the_runs_digest(bench):
    run_id, records = bench.complete(3)
    forged = seal(2, "tick", records[2].tick_at, records[1].digest, {"text": "bought at the low"}, {})
    journal = bench.journal(run_id, 1)
    changes = {"digest": forged.digest, "covered": journal._compress(forged.covered)}
    _reseal(bench, schema.records, {"run_id": run_id, "seq": 2}, changes)

    assert verify_run(bench.database, run_id) == [
        "the run's state does not belong to its last record",
        "the run's digest is not that of its last record",
    ]


def test_a_record_whose_columns_lie_about_its_content_is_found(bench):
    run_id, _ = bench.complete(3)
    _reseal(bench, schema.records, {"run_id": run_id, "seq": 1}, {"tick_at": 5})

    assert verify_run(bench.database, run_id) == ["record 1 does not hold what its columns say"]


def test_a_record_that_cannot_be_unpacked_is_found(bench):
    run_id, _ = bench.complete(3)
    _reseal(bench, schema.records, {"run_id": run_id, "seq": 1}, {"extra": b"not zstd"})

    assert verify_run(bench.database, run_id) == ["record 1 cannot be read"]


def test_a_hole_in_an_unfinished_run_is_found(bench):
    run_id, epoch = bench.running()
    bench.commit(bench.journal(run_id, epoch), chained(5))
    with bench.database.write() as connection:
        connection.exec_driver_sql("DELETE FROM records WHERE seq = 2")

    assert verify_run(bench.database, run_id) == ["record 3 is not the next link after 1"]


def test_an_unfinished_run_that_lost_its_last_records_is_found(bench):
    run_id, epoch = bench.running()
    bench.commit(bench.journal(run_id, epoch), chained(5))
    with bench.database.write() as connection:
        connection.exec_driver_sql("DELETE FROM records WHERE seq >= 3")

    assert verify_run(bench.database, run_id) == ["the run's state does not belong to its last record"]


def test_a_queued_run_and_one_in_the_middle_have_no_problems(bench):
    queued = bench.queued()
    run_id, epoch = bench.running()
    bench.commit(bench.journal(run_id, epoch), chained(2))

    assert verify_run(bench.database, queued) == []
    assert verify_run(bench.database, run_id) == []


def test_an_unknown_run_is_a_problem(bench):
    assert verify_run(bench.database, "nowhere") == ["there is no run nowhere"]


def test_another_runs_damage_is_not_this_ones(bench):
    sound, _ = bench.complete(3)
    hurt, _ = bench.complete(3)
    with bench.database.write() as connection:
        where = (schema.records.c.run_id == hurt, schema.records.c.seq == 1)
        connection.execute(update(schema.records).where(*where).values(extra=b"0"))

    assert verify_run(bench.database, sound) == []
    assert verify_run(bench.database, hurt) == ["record 1 was changed"]


def test_a_run_that_is_being_worked_on_while_it_is_checked_has_no_problems(bench, monkeypatch):
    run_id, epoch = bench.running()
    journal, records = bench.journal(run_id, epoch), chained(40)
    bench.commit(journal, records[:4])
    read, done = bench.database.read, [4]

    @contextmanager
    def read_and_let_the_worker_go_on():
        with read() as connection:
            yield connection
        if done[0] < len(records):
            bench.commit(journal, records[done[0] : done[0] + 2])
            done[0] += 2

    monkeypatch.setattr(verify, "PAGE", 3)
    monkeypatch.setattr(bench.database, "read", read_and_let_the_worker_go_on)

    assert verify_run(bench.database, run_id) == []
    assert done[0] > 8


@pytest.mark.parametrize("body", [b"[]", b"{}", b"not zstd"])
def test_a_state_with_a_fresh_seal_that_is_none_is_found(bench, body):
    run_id, epoch = bench.running()
    journal = bench.journal(run_id, epoch)
    bench.commit(journal, chained(2))
    body = body if body == b"not zstd" else journal._compress(body)
    _reseal(bench, schema.run_states, {"run_id": run_id}, {"body": body})

    assert verify_run(bench.database, run_id) == ["the run's state cannot be read"]


def test_one_changed_byte_of_a_free_record_is_found(file_bench):
    bench = file_bench
    run_id, epoch = bench.running()
    (record,) = free(1)
    bench.commit(bench.journal(run_id, epoch), [record])
    assert verify_run(bench.database, run_id) == []

    for at in range(len(record.covered)):
        changed = record.covered[:at] + bytes([record.covered[at] ^ 1]) + record.covered[at + 1 :]
        with bench.database.write() as connection:
            connection.execute(update(schema.records).values(covered=changed))
        assert verify_run(bench.database, run_id) == ["record 0 was changed"]
