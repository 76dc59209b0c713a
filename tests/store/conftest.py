"""`StoreBench`: a database with a manual clock and counted ids.

The fixture `bench` runs each test on SQLite and on a real Postgres; tests of SQLite alone take `file_bench`.
"""

import asyncio
import itertools
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import pytest

import postgres_server
from pitboss.core.snapshot import Record
from pitboss.store.database import Database, open_database
from pitboss.store.journal import StoredJournal
from pitboss.store.queue import Job, Queue
from pitboss.store.runs import Runs
from pitboss.store.skills import Skills
from pitboss.testing.journal import chained, state_after

SKILL_DIGEST = "5" * 64


@dataclass
class StoreBench:
    """A database and the stores on it."""

    database: Database
    at: int = 1_700_000_000_000
    _ids: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.database.clock = lambda: self.at  # in the place of the server's or the machine's

    def now(self) -> int:
        return self.at

    def new_id(self) -> str:
        return f"ab{next(self._ids):04d}"

    @property
    def runs(self) -> Runs:
        return Runs(self.database, self.now, self.new_id)

    @property
    def queue(self) -> Queue:
        return Queue(self.database, self.now, self.new_id)

    @property
    def skills(self) -> Skills:
        return Skills(self.database, self.now, self.new_id)

    def journal(self, run_id: str, epoch: int) -> StoredJournal:
        return StoredJournal(self.database, run_id, epoch)

    def queued(self) -> str:
        skill = self.skills.save("trend", SKILL_DIGEST, b'{"name":"trend"}')
        return self.runs.create(skill.id, skill.version, "policy/hold", {"from": "2025-06-01", "seed": 0}, "d" * 64)

    def job(self, **given: object) -> Job:
        skill = self.skills.save("trend", SKILL_DIGEST, b'{"name":"trend"}')
        return Job(skill.id, skill.version, "policy/hold", {"seed": 0}, "d" * 64, **given)

    def running(self) -> tuple[str, int]:
        run_id = self.queued()
        epoch = self.runs.claim(run_id)
        self.runs.set_status(run_id, "running", epoch)
        return run_id, epoch

    def commit(self, journal: StoredJournal, records: Sequence[Record], progress: float = 0.5) -> None:
        asyncio.run(journal.commit(records, state_after(records, {"cash": "10000"}), progress))

    def complete(self, count: int = 3) -> tuple[str, list[Record]]:
        run_id, epoch = self.running()
        records = chained(count)
        self.commit(self.journal(run_id, epoch), records)
        self.runs.set_status(run_id, "computing_metrics", epoch)
        self.runs.finish(
            run_id,
            epoch,
            digest=records[-1].digest,
            metrics={"sharpe": 1.25},
            baselines={"cash": {"sharpe": None}},
            cost_usd=Decimal("0.10"),
            wall_s=1.5,
            ticks=count,
            report="reports/one.html",
        )
        return run_id, records


@pytest.fixture(scope="session")
def make_bench() -> type[StoreBench]:
    return StoreBench


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pitboss.db"


@pytest.fixture(scope="session")
def empty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty migrated database, to be copied."""
    path = tmp_path_factory.mktemp("empty") / "pitboss.db"
    open_database(path).close()
    return path


@pytest.fixture
def file_bench(path: Path, empty_file: Path) -> Iterator[StoreBench]:
    with open_database(shutil.copy(empty_file, path)) as database:
        yield StoreBench(database)


@pytest.fixture(scope="session")
def empty_postgres() -> Iterator[str]:
    """An empty migrated database, to be copied."""
    address = postgres_server.new_database()
    open_database(address).close()
    yield address
    postgres_server.drop(address)


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, path: Path) -> Iterator[str]:
    """The address of an empty migrated database of either kind."""
    if request.param == "sqlite":
        yield str(shutil.copy(request.getfixturevalue("empty_file"), path))
        return
    with postgres_server.leased_database(request.getfixturevalue("empty_postgres")) as lent:
        yield lent


@pytest.fixture
def bench(address: str) -> Iterator[StoreBench]:
    with open_database(address) as database:
        yield StoreBench(database)
