"""Opening a database: the journal mode by version, the lock, and one clear line for everything that is wrong."""

import os
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import create_engine
from sqlalchemy.exc import InterfaceError, OperationalError, ProgrammingError

from pitboss.core.errors import InvariantError, UserError
from pitboss.store import database_lock
from pitboss.store.database import Database, journal_note, open_database
from pitboss.store.database_lock import DatabaseLock

OLD, LAST_BAD, FIXED, NEWER = (3, 40, 1), (3, 51, 2), (3, 51, 3), (4, 0, 0)


@pytest.mark.parametrize(
    ("version", "processes", "mode"),
    [
        (OLD, "several", "truncate"),
        (OLD, "one", "wal"),
        (LAST_BAD, "several", "truncate"),
        (LAST_BAD, "one", "wal"),
        (FIXED, "several", "wal"),
        (FIXED, "one", "wal"),
        (NEWER, "several", "wal"),
    ],
)
def test_the_journal_mode_follows_the_version_and_the_number_of_processes(path, version, processes, mode):
    with open_database(path, processes, version) as database, database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == mode
        assert database.journal_mode == mode


def test_every_connection_is_durable_patient_and_strict(file_bench):
    for _ in range(2):
        with file_bench.database.read() as connection:
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
            assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 10_000
            assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1


def test_a_write_takes_the_write_lock_when_it_begins(file_bench, path):
    connection = sqlite3.connect(path, isolation_level=None, timeout=0)
    with file_bench.database.write(), pytest.raises(sqlite3.OperationalError, match="locked"):
        connection.execute("BEGIN IMMEDIATE")
    connection.execute("BEGIN IMMEDIATE")
    connection.close()


def test_a_database_locked_by_one_process_is_refused_to_the_next_with_what_to_do(path):
    with open_database(path, "one", OLD):
        with pytest.raises(UserError, match="in use by another pitboss process") as alone:
            open_database(path, "one", OLD)
        with pytest.raises(UserError, match="uses it alone") as shared:
            open_database(path, "several", OLD)
    assert "wait until it ends" in alone.value.hint
    assert "wait until it ends" in shared.value.hint

    open_database(path, "several", OLD).close()


def test_several_processes_share_a_database_and_none_may_then_have_it_alone(path):
    first, second = open_database(path, "several", OLD), open_database(path, "several", OLD)
    with first, second, pytest.raises(UserError, match="in use"):
        open_database(path, "one", OLD)

    open_database(path, "one", OLD).close()


def test_a_fixed_sqlite_needs_no_lock(path):
    with open_database(path, "one", FIXED), open_database(path, "several", FIXED):
        assert not path.with_name("pitboss.db.lock").exists()


def test_a_database_left_in_wal_mode_is_opened_with_a_rollback_journal_and_keeps_its_rows(path):
    with open_database(path, "one", OLD) as database:
        assert journal_note(database) is not None
    with open_database(path, "several", OLD) as database:
        assert database.journal_mode == "truncate"
        assert journal_note(database) is None


def test_the_note_about_the_journal_is_reported_once_per_database(path, tmp_path):
    with open_database(path, "several", OLD) as database:
        note = journal_note(database)
        assert note is not None
        assert "SQLite 3.40.1" in note
        assert "3.51.3" in note
        assert journal_note(database) is None
    with open_database(path, "several", OLD) as database:
        assert journal_note(database) is None
    with open_database(tmp_path / "other.db", "several", OLD) as other:
        assert journal_note(other) is not None


def test_a_fixed_sqlite_has_nothing_to_note(path):
    with open_database(path, "several", FIXED) as database:
        assert journal_note(database) is None


def test_a_file_that_is_no_database_is_named_and_left_alone(path):
    path.write_bytes(b"time,open,high,low,close\n" * 200)

    with pytest.raises(UserError, match=r"pitboss\.db is not a database"):
        open_database(path)

    assert path.read_bytes() == b"time,open,high,low,close\n" * 200


def test_a_database_of_another_program_is_refused_and_left_alone(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE trades (id INTEGER)")
    connection.close()

    with pytest.raises(UserError, match="belongs to another program"):
        open_database(path)

    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("trades",)]
    connection.close()


def test_a_newer_schema_is_refused_with_the_way_out(path):
    with open_database(path) as database, database.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0999'")

    with pytest.raises(UserError, match=r"newer pitboss \(schema 0999") as refused:
        open_database(path)

    assert "upgrade pitboss" in refused.value.hint


def test_a_missing_folder_is_a_mistake_and_is_not_made(tmp_path):
    with pytest.raises(UserError, match="there is no folder"):
        open_database(tmp_path / "nowhere" / "pitboss.db")

    assert not (tmp_path / "nowhere").exists()


def test_a_folder_in_place_of_the_file_is_a_mistake(tmp_path):
    with pytest.raises(UserError, match="is a folder"):
        open_database(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_a_mistake(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(UserError, match="cannot"):
            open_database(tmp_path / "pitboss.db")
    finally:
        tmp_path.chmod(0o700)


def test_an_os_error_becomes_one_line_that_names_the_file(path):
    result = database_lock.unwritable(path, PermissionError(13, "Permission denied"))

    assert result.message == f"cannot use the database {path}: Permission denied"
    assert "--home" in result.hint


def test_a_write_to_a_read_only_database_is_a_mistake_in_one_line(file_bench):
    with file_bench.database.read() as connection:
        connection.exec_driver_sql("PRAGMA query_only=ON")

    with pytest.raises(UserError, match="cannot be written"):
        file_bench.queued()


def test_a_full_disk_is_reported_in_one_line_and_nothing_half_written_stays(file_bench):
    run_id, _ = file_bench.complete()
    with file_bench.database.read() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")

    with pytest.raises(UserError, match="disk is full") as full:
        file_bench.skills.save("big", "6" * 64, os.urandom(200_000))

    assert "everything committed so far is kept" in full.value.hint
    assert [skill.name for skill in file_bench.skills.list()] == ["trend"]
    assert file_bench.runs.get(run_id).status == "complete"


def test_a_busy_database_is_reported_in_one_line(file_bench, path):
    with file_bench.database.read() as connection:
        connection.exec_driver_sql("PRAGMA busy_timeout=0")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")

    with pytest.raises(UserError, match="is busy"):
        file_bench.queued()

    other.close()


def test_an_error_in_a_transaction_leaves_nothing_of_it(file_bench):
    with pytest.raises(ZeroDivisionError), file_bench.database.write() as connection:
        connection.exec_driver_sql("INSERT INTO facts VALUES ('a', 'b', 'c')")
        raise ZeroDivisionError

    with file_bench.database.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM facts").scalar() == 0


def test_a_programming_mistake_is_not_dressed_up_as_the_users(file_bench):
    with pytest.raises(Exception, match="UNIQUE") as failed, file_bench.database.write() as connection:
        for _ in range(2):
            connection.exec_driver_sql("INSERT INTO facts VALUES ('a', 'b', 'c')")

    assert not isinstance(failed.value, UserError)


def test_an_address_with_an_unknown_scheme_is_a_mistake_that_does_not_repeat_the_password():
    with pytest.raises(UserError) as refused:
        open_database("oracle9://me:hunter2@host/db")

    assert "hunter2" not in refused.value.message
    assert "postgresql+psycopg" in refused.value.hint


def test_a_sqlite_address_opens_the_file(path):
    with open_database(f"sqlite:///{path}"):
        assert path.is_file()


def test_closing_twice_is_harmless(path):
    database = open_database(path)
    database.close()
    database.close()
    with open_database(path):  # whoever comes next finds nothing held
        assert path.is_file()


@pytest.mark.parametrize("processes", ["several", "one"])
@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_not_one_byte_of_another_programs_database_changes(path, processes, mode):
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode={mode}")
    connection.execute("CREATE TABLE trades (id INTEGER)")
    connection.commit()
    connection.close()
    before = path.read_bytes()

    with pytest.raises(UserError, match="belongs to another program"):
        open_database(path, processes, OLD)

    assert path.read_bytes() == before


@pytest.mark.parametrize("processes", ["several", "one"])
@pytest.mark.parametrize("foreign", [True, False])
def test_nothing_is_left_next_to_a_file_that_is_refused(path, processes, foreign):
    if foreign:
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE trades (id INTEGER)")
        connection.close()
    else:
        path.write_bytes(b"time,open,high,low,close\n" * 200)

    with pytest.raises(UserError):
        open_database(path, processes, OLD)

    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_lock_that_was_there_before_stays_when_a_file_is_refused(path):
    path.write_bytes(b"time,open,high,low,close\n" * 200)
    lock = path.with_name("pitboss.db.lock")
    lock.touch()

    with pytest.raises(UserError):
        open_database(path, "several", OLD)

    assert lock.exists()


def test_a_lock_that_another_process_has_by_now_is_not_taken_away(path):
    first = DatabaseLock.acquire(path, shared=True)
    second = DatabaseLock.acquire(path, shared=True)

    first.undo()

    with pytest.raises(UserError, match="in use"):
        DatabaseLock.acquire(path, shared=False)
    second.close()


def test_a_lock_on_a_file_that_was_taken_away_is_taken_again_on_the_one_that_is_there(path, monkeypatch):
    lock = path.with_name("pitboss.db.lock")
    flock, taken_away = database_lock.fcntl.flock, []

    def late(handle, how):
        if not taken_away:  # between opening the file and locking it, its maker lets go of it
            taken_away.append(lock.unlink())
        flock(handle, how)

    monkeypatch.setattr(database_lock.fcntl, "flock", late)
    held = DatabaseLock.acquire(path, shared=False)
    monkeypatch.undo()

    with pytest.raises(UserError, match="in use"):
        DatabaseLock.acquire(path, shared=False)
    held.close()


class Refused(Exception):
    sqlstate = None


class Forbidden(Exception):
    sqlstate = "42501"


@pytest.mark.parametrize(
    ("kind", "cause", "message"),
    [
        (
            OperationalError,
            Refused("connection failed:\n\tConnection refused"),
            "connection failed: Connection refused",
        ),
        (InterfaceError, Refused("the connection is closed"), "cannot be reached"),
        (ProgrammingError, Forbidden("permission denied for schema public"), "does not allow"),
    ],
)
def test_a_server_that_cannot_be_used_is_reported_in_one_line_without_the_password(kind, cause, message):
    server = Database(create_engine("sqlite://"), "postgresql+psycopg://me:***@host/name")

    with pytest.raises(UserError, match=message) as refusal, server.explained():
        raise kind("SELECT 1", {"password": "hunter2"}, cause)

    assert "me:***@host" in refusal.value.message
    assert "\n" not in refusal.value.message
    assert "hunter2" not in refusal.value.message
    server.close()


def test_a_mistake_in_our_own_sql_is_not_dressed_up_as_the_servers():
    server = Database(create_engine("sqlite://"), "postgresql+psycopg://host/name")

    with pytest.raises(ProgrammingError), server.explained():
        raise ProgrammingError("SELEC 1", {}, Refused("syntax error"))
    server.close()


@pytest.mark.parametrize("address", ["postgresql+psycopg://me:hunter2@localhost:abc/x", "mysql+none://me:hunter2@h/x"])
def test_an_address_that_cannot_be_read_is_reported_without_its_password(address):
    with pytest.raises(UserError, match="cannot open a database at") as refusal:
        open_database(address)

    assert "hunter2" not in refusal.value.message


def test_a_missing_driver_is_reported_with_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(UserError, match="psycopg is not installed") as refusal:
        open_database("postgresql+psycopg://me@localhost/x")

    assert "pip install" in refusal.value.hint


def test_a_server_that_does_not_answer_is_a_mistake_in_one_line():
    pytest.importorskip("psycopg", reason="the driver for Postgres is not installed")

    with pytest.raises(UserError, match="cannot be reached") as refusal:
        open_database("postgresql+psycopg://me:hunter2@127.0.0.1:1/x")

    assert "hunter2" not in refusal.value.message


@pytest.mark.parametrize("version", ["0001", "ae1027a6acf"])
def test_a_database_that_another_program_migrates_in_the_same_way_is_not_taken_for_ours(path, version):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
        connection.execute("INSERT INTO alembic_version VALUES (?)", (version,))
        connection.execute("CREATE TABLE users (id INTEGER)")
    connection.close()

    with pytest.raises(UserError, match="belongs to another program"):
        open_database(path)


@pytest.mark.parametrize("place", ["{long}/pitboss.db", "{long}"])
def test_a_name_that_the_file_system_refuses_is_a_mistake(tmp_path, place):
    with pytest.raises(UserError, match=r"cannot use the database .*File name too long"):
        open_database(tmp_path / place.format(long="x" * 300))


@pytest.mark.parametrize("address", ["sqlite://", "sqlite+pysqlite:///{path}", "sqlite:///", "sqlite:///:memory:"])
def test_an_address_that_would_open_sqlite_without_its_safeguards_is_a_mistake(path, address, monkeypatch):
    monkeypatch.chdir(path.parent)

    with pytest.raises(UserError) as refused:
        open_database(address.format(path=path))

    assert "path" in refused.value.hint or "file" in refused.value.hint
    assert not path.exists()


def test_threads_that_write_past_the_layers_at_once_do_not_share_a_connection(bench):
    seen = set()

    def write(number):
        with bench.database.write_raw() as cursor:
            seen.add(id(cursor.connection))
            mark = "?" if bench.database.journal_mode else "%s"
            cursor.execute(f"INSERT INTO facts VALUES ({mark}, 'b', 'c')", (f"k{number}",))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(30)))

    with bench.database.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM facts").scalar() == 30
    assert len(bench.database._idle) <= 2


@pytest.mark.parametrize("outer", ["read", "write", "read_raw", "write_raw"])
@pytest.mark.parametrize("inner", ["read", "write", "read_raw", "write_raw"])
def test_a_transaction_inside_another_one_is_refused_and_the_outer_one_goes_on(bench, outer, inner):
    begin = {name: getattr(bench.database, name) for name in (outer, inner)}
    with begin[outer](), pytest.raises(InvariantError, match="inside another"):
        begin[inner]().__enter__()
    with begin[inner]():
        pass


def test_threads_have_transactions_of_their_own(file_bench):
    def read():
        with file_bench.database.read():
            return True

    with file_bench.database.read(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(read).result()


def test_commits_are_durable_after_one_without_a_flush_has_failed(path):
    with open_database(path, "one") as database:
        with pytest.raises(InvariantError), database.write_raw(lazily=True):
            raise InvariantError("in between")

        with database.write() as connection:
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_a_name_with_bytes_that_are_no_text_is_a_mistake_in_one_line(bench):
    with pytest.raises(UserError, match="not valid text"):
        bench.runs.get("\udcff")
