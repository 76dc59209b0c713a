"""The schema's history leads to the schema, from nothing and from anywhere in the middle (E7)."""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, event, inspect
from sqlalchemy import column as sa_column
from sqlalchemy import table as sa_table
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable
from zstandard import ZstdCompressor

import database_template
import postgres_server
from example_counts import cases
from forked_process import ForkedProcess
from pitboss.core import codec
from pitboss.core.errors import ReplayMismatch
from pitboss.store import migrations, postgres
from pitboss.store import sealed_rows as rows
from pitboss.store.api_tokens import ApiTokens
from pitboss.store.database import Database, open_database
from pitboss.store.journal import StoredJournal
from pitboss.store.migrate import migrate
from pitboss.store.run import new_run_row
from pitboss.store.runs import Runs
from pitboss.store.schema import SEAL, metadata
from pitboss.store.skills import Skills
from pitboss.store.studies import Studies
from pitboss.store.verify import verify_run
from pitboss.testing.journal import chained, state_after

HERE = Path(migrations.__file__).parent


@pytest.fixture(autouse=True)
def created_by_statements() -> Iterator[None]:
    """No database is a copy of an earlier one."""
    with database_template.created_by_statements():
        yield


@pytest.fixture(params=["sqlite", "postgres"])
def nowhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Addresses at which there is no table yet."""
    made: list[str] = []

    def new() -> str:
        file = request.param == "sqlite"
        made.append(str(tmp_path / f"{len(made)}.db") if file else postgres_server.new_database())
        return made[-1]

    yield new
    for address in made if request.param == "postgres" else ():
        postgres_server.drop(address)


def _bare(address: str) -> Engine:
    return create_engine(f"sqlite:///{address}" if "://" not in address else address)


def differences(database: Database) -> list[object]:
    with database.read() as connection:
        options = {"compare_type": True, "compare_server_default": True}
        return compare_metadata(MigrationContext.configure(connection, opts=options), metadata)


def test_the_migrations_make_exactly_the_schema(nowhere):
    address = nowhere()
    _make_old(address, migrations.REVISIONS[0])
    with open_database(address) as database:
        assert differences(database) == []


def test_a_database_made_at_once_is_the_one_that_all_the_steps_lead_to(tmp_path):
    old = str(tmp_path / "old.db")
    _make_old(old, migrations.REVISIONS[0])
    with open_database(old) as stepped, open_database(tmp_path / "new.db") as made:
        assert differences(made) == []
        assert _shape(made) == _shape(stepped)


def _shape(database: Database) -> dict[str, object]:
    """Every table with its columns, keys and indexes; the order of columns is nobody's business."""
    with database.read() as connection:
        inspector = inspect(connection)
        version = connection.execute(sa_table("alembic_version", sa_column("version_num")).select()).scalars().all()
        return {"version": version} | {
            name: (
                sorted(str(column) for column in inspector.get_columns(name)),
                inspector.get_pk_constraint(name),
                sorted(map(str, inspector.get_indexes(name))),
                sorted(map(str, inspector.get_unique_constraints(name))),
                sorted(map(str, inspector.get_foreign_keys(name))),
            )
            for name in inspector.get_table_names()
        }


def test_the_list_of_revisions_is_the_chain_of_the_files():
    config = Config()
    config.set_main_option("script_location", str(HERE))
    scripts = ScriptDirectory.from_config(config)

    assert tuple(script.revision for script in reversed(list(scripts.walk_revisions()))) == migrations.REVISIONS
    assert scripts.get_heads() == [migrations.HEAD]


def test_migrating_again_changes_nothing(file_bench, path):
    before = path.read_bytes()

    migrate(file_bench.database.write)

    assert path.read_bytes() == before
    assert differences(file_bench.database) == []


@pytest.mark.parametrize("name", ["pitboss.db", "not-yet-there.db"])
def test_opening_a_current_database_or_a_new_one_does_not_even_import_alembic(file_bench, path, name):
    path = path.with_name(path.name if name == "pitboss.db" else name)
    code = f"import sys; from pitboss.store.database import open_database; open_database({str(path)!r}).close()"
    process = subprocess.run(
        [sys.executable, "-c", f"{code}; sys.exit('alembic' in sys.modules)"], check=False, capture_output=True
    )

    assert (process.returncode, process.stderr) == (0, b"")


@pytest.mark.parametrize("every", [11, pytest.param(1, marks=pytest.mark.proof)])
@pytest.mark.parametrize("processes", ["several", "one"])
def test_a_machine_that_stops_at_any_statement_of_a_migration_leaves_a_database_that_opens(tmp_path, processes, every):
    images: list[Path] = []
    (tmp_path / "live").mkdir()

    def stop_here(*_: object) -> None:
        image = tmp_path / f"image{len(images)}"
        shutil.copytree(tmp_path / "live", image)
        images.append(image)

    event.listen(Engine, "before_cursor_execute", stop_here)
    event.listen(Engine, "commit", stop_here)
    try:
        open_database(tmp_path / "live" / "pitboss.db", processes).close()
    finally:
        event.remove(Engine, "before_cursor_execute", stop_here)
        event.remove(Engine, "commit", stop_here)

    assert len(images) > 8
    for image in [*images[::every], *images[-2:]]:
        with open_database(image / "pitboss.db", processes) as database:
            assert differences(database) == []


KILLED = """
import os, signal, sys
from sqlalchemy import Engine, event
from pitboss.store.database import open_database
address, last = sys.argv[1], int(sys.argv[2])
count = 0
def kill(*_):
    global count
    count += 1
    if count == last:
        os.kill(os.getpid(), signal.SIGKILL)
for name in ("before_cursor_execute", "after_cursor_execute", "commit"):
    event.listen(Engine, name, kill)
open_database(address).close()
print(count)
"""


def _killed_at(address: str, number: int) -> int:
    process = ForkedProcess("-c", KILLED, address, number)
    out, err = process.communicate()
    assert process.returncode in (0, -9), err
    return int(out or 0)


@pytest.mark.parametrize(
    "which", [pytest.param((30, -1)), pytest.param(None, marks=pytest.mark.chaos, id="every statement")]
)
@pytest.mark.parametrize(
    "old",
    [
        pytest.param("", marks=pytest.mark.chaos, id="from nothing"),
        pytest.param(migrations.REVISIONS[0], id="from the first"),
    ],
)
def test_a_process_killed_anywhere_in_a_migration_leaves_a_database_that_the_next_start_brings_up_to_date(
    nowhere, which, old
):
    """E7: kill -9, before and after a statement, and inside a commit."""

    def start() -> str:
        address = nowhere()
        if old:
            _make_old(address, old)
        return address

    total = _killed_at(start(), 0)
    assert total > 30
    for number in which or range(1, total + 1):
        address = start()
        _killed_at(address, number % (total + 1))
        with open_database(address) as database:
            assert differences(database) == []


def test_an_error_inside_a_migration_leaves_the_database_as_it_was_and_the_next_start_does_it(path):
    def fail_on_the_last_table(_c: object, _cursor: object, statement: str, *_: object) -> None:
        if "CREATE TABLE facts" in statement:
            raise ZeroDivisionError

    event.listen(Engine, "before_cursor_execute", fail_on_the_last_table)
    try:
        with pytest.raises(ZeroDivisionError):
            open_database(path)
    finally:
        event.remove(Engine, "before_cursor_execute", fail_on_the_last_table)

    with open_database(path) as database:
        assert differences(database) == []


def test_processes_that_open_a_new_database_at_once_all_get_the_whole_schema(nowhere):
    address = nowhere()
    code = f"from pitboss.store.database import open_database; open_database({address!r}).close()"
    started = [ForkedProcess("-c", f"import warnings; warnings.simplefilter('error'); {code}") for _ in range(2)]

    assert [(process.communicate()[1], process.returncode) for process in started] == [("", 0)] * 2
    with open_database(address) as database:
        assert differences(database) == []


EARLIER = migrations.REVISIONS[:-1]
"""All steps are done from the first version; those between differ in where they begin."""


@pytest.mark.parametrize("nowhere", ["sqlite", "postgres"], indirect=True)
@pytest.mark.parametrize("old", cases(EARLIER, (EARLIER[0], EARLIER[-1])))
def test_a_database_of_any_earlier_version_opens_with_its_runs_intact_and_a_changed_one_still_changed(nowhere, old):
    address = nowhere()
    _make_old(address, old)

    with open_database(address) as database:
        assert differences(database) == []
        assert verify_run(database, "intact") == []
        assert verify_run(database, "broken") == ["the run's row was changed"]
        assert Skills(database, lambda: 0, str, "local").get("trend").version == 1
        studies = Studies(database, "local")
        assert studies.find("st") == "study1"
        with pytest.raises(ReplayMismatch):
            studies.document("other2")
        assert studies.document("study1") == {"kind": "grid"}
        if old >= "0007":
            tokens = ApiTokens(database, lambda: 2, str)
            token = tokens.find("d" * 64)
            assert (token and token.role, token and token.scopes) == ("author", None)
            assert tokens.find("e" * 64) is None
        run = Runs(database, lambda: 0, str).get("intact")
        assert (run.status, run.owner, run.queued_at, run.saved_usd, run.params) == ("running", "local", None, 0, {})
        records = list(StoredJournal(database, "intact", 1).records())
    assert records == chained(2)


def _make_old(address: str, version: str) -> None:
    """A database as an earlier version left it, with two runs, one of them changed behind its seal."""
    config = Config()
    config.set_main_option("script_location", str(HERE))
    engine = _bare(address)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, version)
        state = state_after(chained(2), {})
        press = ZstdCompressor().compress
        known = {"id": "s", "name": "trend", "latest_version": 1, "owner": "local"}
        _add(connection, "skills", known)
        _add(
            connection,
            "skill_versions",
            {"skill_id": "s", "version": 1, "digest": "5" * 64, "body": b"", "created_at": 1},
        )
        for run_id in ("intact", "broken"):
            row = new_run_row(run_id, "s", 1, "m", {}, None) | {"created_at": 1, "status": "running", "lease_epoch": 1}
            _add(connection, "runs", row)
            for record in chained(2):
                pressed = {"covered": press(record.covered), "extra": press(record.extra)}
                _add(connection, "records", {"run_id": run_id, **asdict(record), **pressed})
            _add(connection, "run_states", {"run_id": run_id, "seq": 2, "body": press(codec.dumps(state))})
        connection.exec_driver_sql("UPDATE runs SET ticks = 9 WHERE id = 'broken'")
        if "studies" in inspect(connection).get_table_names():
            for study in ("study1", "other2"):
                _add(connection, "studies", {"id": study, "document": '{"kind":"grid"}', "owner": "local"})
            connection.exec_driver_sql("UPDATE studies SET document = '{}' WHERE id = 'other2'")
            times = {"created_at": 1, "last_used_at": 1, "expires_at": None}
            for digest in ("d" * 64, "e" * 64):
                token = {"id": digest[:12], "digest": digest, "user_name": "anna", "label": "a", "role": "author"}
                _add(connection, "api_tokens", {**token, **times, "revoked": False, "scopes": None})
            connection.exec_driver_sql(f"UPDATE api_tokens SET role = 'admin' WHERE id = '{'e' * 12}'")
        else:
            for key in ("study/study1", "study/other2"):
                _add(connection, "facts", {"key": key, "value": '{"kind":"grid"}'})
            connection.exec_driver_sql("UPDATE facts SET value = '{}' WHERE key = 'study/other2'")
    engine.dispose()


def _add(connection: Connection, name: str, row: dict[str, Any]) -> None:
    """A sealed row with the columns that the table has at this version."""
    there = {column["name"] for column in inspect(connection).get_columns(name)}
    columns = [column for column in rows.sealed_columns(metadata.tables[name]) if column in there]
    seal = rows.seal(name, [rows.encode(row[column]) for column in columns])
    values = {column: row[column] for column in columns} | {SEAL: seal}
    table = sa_table(name, *[sa_column(column) for column in values])
    connection.execute(table.insert(), values)


def test_a_migration_in_postgres_is_not_cut_short_however_slow_the_machine(monkeypatch):
    monkeypatch.setattr(postgres, "IDLE_MS", 400)
    address = postgres_server.new_database()
    slow = []

    def dawdle(_c: object, _cursor: object, statement: str, *_: object) -> None:
        if "CREATE TABLE" in statement and len(slow) < 1:
            slow.append(time.sleep(0.6))  # the machine has other things to do

    event.listen(Engine, "before_cursor_execute", dawdle)
    try:
        open_database(address).close()
    finally:
        event.remove(Engine, "before_cursor_execute", dawdle)
        postgres_server.drop(address)
    assert len(slow) == 1


def test_text_is_in_the_order_of_its_bytes_in_both_databases(bench):
    names = ["b", "B", "a-b", "ab", "a b", "ä", "Z"]
    for number, name in enumerate(names):
        bench.skills.save(name, f"{number}" * 64, b"")

    assert [line.name for line in bench.skills.list()] == sorted(names)


def test_the_schema_compiles_for_postgres():
    for table in metadata.sorted_tables:
        created = str(CreateTable(table).compile(dialect=postgresql.dialect()))
        assert "BLOB" not in created
        for index in table.indexes:
            str(CreateIndex(index).compile(dialect=postgresql.dialect()))
