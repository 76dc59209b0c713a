"""What is particular to Postgres: how it is named, what it refuses, how connections are set up and used again."""

import pytest
from sqlalchemy import make_url

import postgres_server
from pitboss.core.errors import UserError
from pitboss.store import postgres
from pitboss.store.database import open_database
from pitboss.store.retry import Unreachable


@pytest.fixture
def at(empty_postgres):
    address = postgres_server.copy_of(empty_postgres)
    yield address
    postgres_server.drop(address)


@pytest.fixture
def bare():
    address = postgres_server.new_database()
    yield address
    postgres_server.drop(address)


def say(address, statement):
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        return connection.execute(statement).fetchall() if "SELECT" in statement else connection.execute(statement)


@pytest.mark.parametrize("scheme", postgres.SCHEMES)
def test_every_way_to_write_its_address_opens_it(at, scheme):
    with open_database(at.replace("postgresql", scheme, 1)) as database:
        assert database.journal_mode is None
        assert database.location.startswith("postgresql://")
        with database.read() as connection:
            assert connection.exec_driver_sql("SHOW application_name").scalar() == "pitboss"


def test_a_database_of_another_program_is_refused_and_left_alone(bare):
    say(bare, "CREATE TABLE trades (id INTEGER)")

    with pytest.raises(UserError, match="belongs to another program"):
        open_database(bare)

    tables = say(bare, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
    assert tables == [("trades",)]


def test_a_newer_schema_is_refused(at):
    say(at, "UPDATE alembic_version SET version_num = '0999'")

    with pytest.raises(UserError, match=r"newer pitboss \(schema 0999"):
        open_database(at)


def test_a_database_that_is_not_there_is_a_mistake_that_waiting_does_not_mend(at):
    with pytest.raises(UserError, match="cannot be reached") as refused:
        open_database(make_url(at).set(database="nowhere").render_as_string(hide_password=False))

    assert type(refused.value) is UserError


def test_a_server_that_does_not_run_is_worth_another_try():
    with pytest.raises(Unreachable, match="cannot be reached"):
        open_database("postgresql://me:hunter2@127.0.0.1:1/x")


def test_who_only_looks_makes_nothing_and_cannot_write(at, bare, make_bench):
    with pytest.raises(UserError, match="earlier pitboss"):
        open_database(bare, read_only=True)
    assert say(bare, "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'") == [(0,)]

    with open_database(at, read_only=True) as database, pytest.raises(UserError, match="cannot be written"):
        make_bench(database).queued()


def test_every_connection_gives_up_locks_and_transactions_in_time_and_is_durable(at):
    with open_database(at) as one, open_database(at) as other, one.read() as first, other.read() as second:
        for connection in (first, second):
            shown = {
                name: connection.exec_driver_sql(f"SHOW {name}").scalar()
                for name in ("idle_in_transaction_session_timeout", "lock_timeout", "TimeZone", "synchronous_commit")
            }
            assert shown == {
                "idle_in_transaction_session_timeout": "5s",
                "lock_timeout": "10s",
                "TimeZone": "UTC",
                "synchronous_commit": "on",
            }


def test_what_the_address_says_about_a_connection_is_kept(at):
    with open_database(f"{at}&application_name=mine&connect_timeout=3") as database, database.read() as connection:
        assert connection.exec_driver_sql("SHOW application_name").scalar() == "mine"


def test_a_worker_with_many_runs_keeps_few_connections(at, make_bench):
    from pitboss.store.answers import Answers
    from pitboss.testing.journal import chained

    with open_database(at) as database:
        bench = make_bench(database)
        for _ in range(12):
            run_id, epoch = bench.running()
            bench.commit(bench.journal(run_id, epoch), chained(1))
            assert Answers(database, bench.now).get("a" * 64) is None
        name = make_url(at).database
        ((count,),) = say(postgres_server.server(), f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'")
    assert count <= 2


def test_the_text_columns_are_all_compared_by_their_bytes(at):
    columns = say(
        at,
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' "
        "AND data_type IN ('text', 'character varying') AND table_name <> 'alembic_version' "
        "AND collation_name IS DISTINCT FROM 'C'",
    )
    assert columns == []


def test_the_time_is_that_of_the_moment_and_not_of_the_beginning_of_the_transaction(at):
    with open_database(at) as database, database.write() as connection:
        first = database.now(connection)
        connection.exec_driver_sql("SELECT pg_sleep(0.01)")
        assert database.now(connection) >= first + 10


def test_two_who_say_the_same_name_are_never_in_at_once(at):
    with open_database(at) as database, open_database(at) as other, database.write() as connection:
        database.lock_name(connection, "x")
        database.lock_name(connection, "x")
        with other.write() as waiting:
            waiting.exec_driver_sql("SET LOCAL lock_timeout = 20")
            other.lock_name(waiting, "y")
        with pytest.raises(Unreachable), other.write() as waiting:
            waiting.exec_driver_sql("SET LOCAL lock_timeout = 20")
            other.lock_name(waiting, "x")
