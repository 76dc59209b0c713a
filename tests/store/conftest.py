"""A database in a folder of its own, a clock that only moves when told, ids that count."""

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import pytest

from pitboss.core.snapshot import Record
from pitboss.store.database import Database, open_database
from pitboss.store.journal import StoredJournal
from pitboss.store.runs import Runs
from pitboss.store.skills import Skills
from pitboss.testing.journal import chained, state_after

SKILL_DIGEST = "5" * 64


@dataclass
class Bench:
    """A database with everything that works on it."""

    database: Database
    at: int = 1_700_000_000_000
    _ids: Iterator[int] = field(default_factory=itertools.count)

    def now(self) -> int:
        return self.at

    def new_id(self) -> str:
        return f"ab{next(self._ids):04d}"

    @property
    def runs(self) -> Runs:
        return Runs(self.database, self.now, self.new_id)

    @property
    def skills(self) -> Skills:
        return Skills(self.database, self.now, self.new_id)

    def journal(self, run_id: str, epoch: int) -> StoredJournal:
        return StoredJournal(self.database, run_id, epoch, self.now)

    def queued(self) -> str:
        skill = self.skills.save("trend", SKILL_DIGEST, b'{"name":"trend"}')
        return self.runs.create(skill.id, skill.version, "policy/hold", {"from": "2025-06-01", "seed": 0}, "d" * 64)

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
def make_bench() -> type[Bench]:
    return Bench


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pitboss.db"


@pytest.fixture
def bench(path: Path) -> Iterator[Bench]:
    with open_database(path) as database:
        yield Bench(database)
