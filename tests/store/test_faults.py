"""A database that goes away under a worker: what was committed stays, what was not is tried again, nothing is done twice."""

import asyncio
from contextlib import contextmanager
from decimal import Decimal

import pytest
from sqlalchemy import text

from history_check import check
from pitboss.core.errors import UserError
from pitboss.core.ports import ModelReply
from pitboss.store import events, postgres
from pitboss.store import retry as faults
from pitboss.store.answers import Answers
from pitboss.store.database import open_database
from pitboss.store.journal import StoredJournal
from pitboss.store.lifecycle import LeaseLost
from pitboss.store.retry import Unreachable, retry_while_unreachable
from pitboss.testing.journal import chained, state_after

REPLY = ModelReply("", (), finish_reason="stop")


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(faults, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(faults, "LONGEST_PAUSE_S", 0.001)


@contextmanager
def failing(database, when):
    """The next write fails as if the connection broke: before its commit was made, or after, with the answer lost."""
    real, left = database.write_raw, [1]

    @contextmanager
    def write(lazily=False):
        if left and when == "before":
            left.pop()
            with real(lazily) as cursor:
                yield cursor
                raise Unreachable("cut off before the commit")
        with real(lazily) as cursor:
            yield cursor
        if left:
            left.pop()
            raise Unreachable("cut off after the commit")

    database.write_raw = write
    try:
        yield
    finally:
        del database.write_raw


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_commit_whose_connection_broke_is_made_exactly_once(bench, when):
    run_id, epoch = bench.running()
    journal, records = StoredJournal(bench.database, run_id, epoch, logged=True), chained(3)
    bench.commit(journal, records[:1])

    with failing(bench.database, when):
        bench.commit(journal, records[1:2])
    bench.commit(journal, records[2:])

    assert list(journal.records()) == records
    assert check(events.read_events(bench.database), ended=False).violations == []
    assert [event.detail for event in events.read_events(bench.database) if event.kind == "committed"] == [
        "0-1",
        "1-2",
        "2-3",
    ]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_worker_that_lost_its_run_while_the_database_was_away_writes_nothing_more(bench, when):
    run_id, epoch = bench.running()
    journal, records = StoredJournal(bench.database, run_id, epoch), chained(3)
    bench.commit(journal, records[:1])
    real = bench.database.read

    @contextmanager
    def taken_meanwhile():
        bench.database.read = real
        bench.runs.claim(run_id)
        with real() as connection:
            yield connection

    bench.database.read = taken_meanwhile
    with failing(bench.database, when), pytest.raises(LeaseLost):
        bench.commit(journal, records[1:])

    assert len(list(journal.records())) == (1 if when == "before" else 3)


def test_a_commit_gives_up_when_the_database_does_not_come_back(bench):
    run_id, epoch = bench.running()
    journal = StoredJournal(bench.database, run_id, epoch, patience_s=0.01)

    @contextmanager
    def away(lazily=False):
        raise Unreachable("away")
        yield

    bench.database.write_raw = away
    with pytest.raises(Unreachable, match="away"):
        bench.commit(journal, chained(1))


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_answer_that_was_paid_for_is_kept_and_counted_once_when_the_connection_broke(bench, when, monkeypatch):
    monkeypatch.setattr("pitboss.store.answers.FIRST_PAUSE_S", 0.001)
    answers = Answers(bench.database, bench.now)

    with failing(bench.database, when):
        asyncio.run(answers.put("a" * 64, "m", "run1", Decimal("0.01"), REPLY))

    assert answers.paid_usd("run1") == Decimal("0.01")
    assert answers.get("a" * 64) is not None


def test_trying_again_stops_at_the_first_other_error():
    tries = []

    def do():
        tries.append(1)
        raise Unreachable("away") if len(tries) < 3 else UserError("no")

    with pytest.raises(UserError, match="no"):
        asyncio.run(retry_while_unreachable(do, 5))
    assert len(tries) == 3


@pytest.fixture
def server_bench(empty_postgres, make_bench):
    import postgres_server

    address = postgres_server.copy_of(empty_postgres)
    with open_database(address) as database:
        yield make_bench(database)
    postgres_server.drop(address)


def cut_all(bench):
    """End every connection to the database, as a restart of the server does."""
    import psycopg

    import postgres_server

    name = bench.database.engine.url.database
    with psycopg.connect(postgres_server.server(), autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))


def test_a_run_goes_on_after_the_server_cut_every_connection(server_bench):
    bench = server_bench
    run_id, epoch = bench.running()
    journal, records = StoredJournal(bench.database, run_id, epoch), chained(4)
    answers = Answers(bench.database, bench.now)
    for number, record in enumerate(records):
        asyncio.run(journal.commit([record], state_after(records[: number + 1]), 0.1))
        asyncio.run(answers.put(f"{number}" * 64, "m", run_id, Decimal(1), REPLY))
        assert answers.get(f"{number}" * 64) is not None
        cut_all(bench)
        bench.runs.heartbeat(run_id, epoch)
        cut_all(bench)
        assert answers.get(f"{number}" * 64) is not None

    assert list(journal.records()) == records
    assert answers.paid_usd(run_id) == 4


def test_a_worker_that_stops_inside_a_transaction_blocks_no_other_for_ever(server_bench, monkeypatch):
    """SIGSTOP in the middle of a commit: the server ends the transaction, and the sweep takes the run."""
    bench = server_bench
    monkeypatch.setattr(postgres, "IDLE_MS", 500)
    (run_id,) = bench.queue.enqueue([bench.job()])
    address = bench.database.engine.url.render_as_string(hide_password=False)
    with open_database(address) as frozen:
        frozen.clock = bench.now
        zombie = type(bench)(frozen, bench.at)
        lease = bench.queue.claim("w1")
        records = chained(1)
        stopped = StoredJournal(frozen, run_id, lease.epoch, patience_s=0)
        stopped._append = lambda *_: _held_until_free(bench, run_id)
        bench.at += 30_000
        with pytest.raises((Unreachable, LeaseLost)):
            zombie.commit(stopped, records)
    assert bench.queue.sweep().requeued == [run_id]
    assert list(bench.journal(run_id, 0).records()) == []


def _held_until_free(bench, run_id):
    """The worker stands still until the server has taken its lock away."""
    for _ in range(200):
        with bench.database.write() as connection:
            query = text(f"SELECT 1 FROM runs WHERE id = '{run_id}' FOR UPDATE SKIP LOCKED")
            if connection.execute(query).first() is not None:
                return
            connection.execute(text("SELECT pg_sleep(0.02)"))
    raise AssertionError("the lock was never freed")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("57P01", Unreachable),
        ("57P03", Unreachable),
        ("08006", Unreachable),
        ("40P01", Unreachable),
        ("55P03", Unreachable),
        ("25P03", Unreachable),
        ("53300", Unreachable),
        ("28P01", UserError),
        ("3D000", UserError),
        ("53100", UserError),
        ("25006", UserError),
        ("42501", UserError),
        ("42601", None),
        ("23505", None),
    ],
)
def test_what_passes_by_itself_is_distinguished_from_what_a_person_must_put_right(code, kind):
    class Failed(Exception):
        sqlstate = code

    error = postgres.explain(Failed("said"), "postgresql://me:***@host/name")

    assert (None if error is None else type(error)) is kind


def test_a_busy_file_is_worth_another_try(file_bench, path):
    import sqlite3

    with file_bench.database.read() as connection:
        connection.exec_driver_sql("PRAGMA busy_timeout=0")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")

    with pytest.raises(Unreachable, match="is busy"):
        file_bench.queued()

    other.close()
