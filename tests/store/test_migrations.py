"""The schema's history leads to the schema, from nothing and from anywhere in the middle (E7)."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, event
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from pitboss.store import migrations
from pitboss.store.database import Database, open_database
from pitboss.store.migrate import migrate
from pitboss.store.schema import metadata

HERE = Path(migrations.__file__).parent


def differences(database: Database) -> list[object]:
    with database.read() as connection:
        options = {"compare_type": True, "compare_server_default": True}
        return compare_metadata(MigrationContext.configure(connection, opts=options), metadata)


def test_the_migrations_make_exactly_the_schema(bench):
    assert differences(bench.database) == []


def test_the_list_of_revisions_is_the_chain_of_the_files():
    config = Config()
    config.set_main_option("script_location", str(HERE))
    scripts = ScriptDirectory.from_config(config)

    assert tuple(script.revision for script in reversed(list(scripts.walk_revisions()))) == migrations.REVISIONS
    assert scripts.get_heads() == [migrations.HEAD]


def test_migrating_again_changes_nothing(bench, path):
    before = path.read_bytes()

    migrate(bench.database.write)

    assert path.read_bytes() == before
    assert differences(bench.database) == []


def test_opening_a_current_database_does_not_even_import_alembic(bench, path):
    code = f"import sys; from pitboss.store.database import open_database; open_database({str(path)!r}).close()"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; sys.exit('alembic' in sys.modules)"], check=False, capture_output=True
    )

    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("processes", ["several", "one"])
def test_a_machine_that_stops_at_any_statement_of_a_migration_leaves_a_database_that_opens(tmp_path, processes):
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
    for image in images:
        with open_database(image / "pitboss.db", processes) as database:
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


def test_processes_that_open_a_new_database_at_once_all_get_the_whole_schema(path):
    code = f"from pitboss.store.database import open_database; open_database({str(path)!r}).close()"
    started = [subprocess.Popen([sys.executable, "-W", "error", "-c", code], stderr=subprocess.PIPE) for _ in range(2)]

    assert [(process.communicate()[1], process.returncode) for process in started] == [(b"", 0)] * 2
    with open_database(path) as database:
        assert differences(database) == []


def test_the_schema_compiles_for_postgres():
    for table in metadata.sorted_tables:
        made = str(CreateTable(table).compile(dialect=postgresql.dialect()))
        assert "BLOB" not in made
        for index in table.indexes:
            str(CreateIndex(index).compile(dialect=postgresql.dialect()))
