"""Local workers: as many as there is work for, at most as many as allowed, and none without work."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_workspace import JobWorkspace

import history_check
from pitboss.bootstrap.child_settings import surroundings, variables
from pitboss.bootstrap.settings import Settings
from pitboss.build import build, source_digest
from pitboss.core.errors import UserError
from pitboss.jobs import children
from pitboss.jobs import placement as place
from pitboss.jobs.capacity import LocalWorkerSlot, WorkerSlots, worker_target
from pitboss.jobs.executors import local
from pitboss.jobs.heartbeat import HeartbeatSettings
from pitboss.jobs.worker import Worker, WorkerSettings
from pitboss.store import events
from pitboss.store.queue import QueueDepth


@pytest.fixture
def fast_workspace(job_workspace: JobWorkspace) -> Iterator[JobWorkspace]:
    """Settings under which a lost worker is noticed soon; all workers are stopped at the end of the test."""
    changes = {"max_workers": 2, "worker_idle_s": 0.3, "lease_heartbeat_s": 0.2, "lease_stale_s": 1.0, "scan_s": 0.2}
    settings = job_workspace.settings.model_copy(update=changes)
    before = tuple(local._started)
    try:
        yield JobWorkspace(replace(job_workspace.workspace, settings=settings), job_workspace.queue)
    finally:
        for process in local._started:  # those that ended are taken out of it whenever others are started
            if process not in before:
                process.kill()
                process.wait(10)


def wait_until(holds: Callable[[], bool]) -> None:
    """Polls a condition. The timeout of the test ends a wait for one that never holds."""
    pause = threading.Event()
    while not holds():
        pause.wait(0.02)


def workers(job_workspace: JobWorkspace) -> int:
    slots = WorkerSlots(job_workspace.workspace.home)
    with slots.lock():
        return len(slots.occupied(8))


def check_history(job_workspace: JobWorkspace, ids: list[str]) -> history_check.Findings:
    log = history_check.check(events.read_events(job_workspace.workspace.database), expected=ids)
    assert log.violations == []
    return log


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50), st.integers(1, 16))
def test_there_are_as_many_workers_as_runs_up_to_the_limit(ready: int, later: int, working: int, most: int) -> None:
    assert worker_target(QueueDepth(ready, later, working), most) == min(most, ready + working)


@pytest.mark.usefixtures("forked_programs")
def test_workers_started_for_the_queue_do_it_and_are_gone(fast_workspace: JobWorkspace) -> None:
    """Two callers that start workers at the same moment start no more than the limit. One worker is killed on the way."""
    ids = fast_workspace.enqueue(6, model="standin/analyst", hours=12)
    together, started = threading.Barrier(2), [0, 0]

    def begin(number: int) -> None:
        together.wait()
        started[number] = local.ensure(fast_workspace.settings, fast_workspace.queue, any_build=True)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sum(started), workers(fast_workspace)) == (2, 2)
    assert local.ensure(fast_workspace.settings, fast_workspace.queue, any_build=True) == 0

    wait_until(
        lambda: any(event.kind == "committed" for event in events.read_events(fast_workspace.workspace.database))
    )
    local._started[-1].kill()
    wait_until(lambda: all(fast_workspace.status(run_id) == "complete" for run_id in ids))
    wait_until(lambda: not workers(fast_workspace))

    digests = {fast_workspace.workspace.runs.get(run_id).digest for run_id in ids}
    assert len(digests) == 1  # the stand-in is deterministic
    assert check_history(fast_workspace, ids).ends == {"complete": 6}


def test_a_worker_asked_to_exit_by_a_signal_gives_its_run_back(fast_workspace: JobWorkspace) -> None:
    settings = fast_workspace.settings.model_copy(update={"worker_idle_s": 600.0, "max_workers": 1})
    (run_id,) = fast_workspace.enqueue(model="standin/analyst", every="5m")
    assert local.ensure(settings, fast_workspace.queue, any_build=True) == 1
    wait_until(lambda: fast_workspace.status(run_id) == "running")

    process = local._started[-1]
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == min(19, mine + settings.worker_nice)
    process.send_signal(signal.SIGTERM)

    assert process.wait(60) == 0, WorkerSlots(fast_workspace.workspace.home).log_path(0).read_text()
    assert fast_workspace.status(run_id) in ("queued", "complete")
    assert fast_workspace.workspace.runs.get(run_id).requeues == 0


@pytest.mark.usefixtures("forked_programs")
def test_a_child_that_is_killed_takes_only_its_own_run_along_and_that_goes_on_in_another(
    fast_workspace: JobWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "MIN_PROCESS_RUN_S", 0.0)
    ids = fast_workspace.enqueue(2, model="standin/analyst", hours=6) + fast_workspace.enqueue(1)
    real, killed = children.WorkerChild.work, []

    async def once(child: children.WorkerChild, lease: object) -> None:
        if not killed:
            killed.append(child.pid)
            os.kill(child.pid, signal.SIGKILL)
        await real(child, lease)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(children.WorkerChild, "work", once)
    real_start, started = children.WorkerChild.start, []

    async def counted(settings: Settings, worker: str) -> children.WorkerChild:
        started.append(worker)
        return await real_start(settings, worker)

    monkeypatch.setattr(children.WorkerChild, "start", counted)
    terms = WorkerSettings(processes=2, idle_exit_s=2.0, heartbeat=HeartbeatSettings(0.1, 0.5, 0.1), logged=True)
    asyncio.run(Worker(fast_workspace.workspace, fast_workspace.queue, "parent", terms).run())

    assert [fast_workspace.status(run_id) for run_id in ids] == ["complete"] * 3
    log = check_history(fast_workspace, ids)
    assert (log.requeues, log.ends) == (1, {"complete": 3})
    assert len(started) <= log.claims == 4  # children are used again: three as a rule, and never more than claims


PRINTING = """
import sys
from pitboss.jobs import child
work = child.work

async def printing(*arguments, **more):
    print("a plug-in prints this", flush=True)
    await work(*arguments, **more)

child.work = printing
child.main(*sys.argv[1:])
"""


def test_what_a_run_prints_in_a_child_is_not_taken_for_its_outcome(
    fast_workspace: JobWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "MIN_PROCESS_RUN_S", 0.0)
    monkeypatch.setattr(children, "program", lambda module, *arguments: [sys.executable, "-c", PRINTING, *arguments])
    ids = fast_workspace.enqueue(2)
    asyncio.run(
        Worker(
            fast_workspace.workspace,
            fast_workspace.queue,
            "parent",
            WorkerSettings(processes=2, idle_exit_s=0.5),
        ).run()
    )
    assert [fast_workspace.status(run_id) for run_id in ids] == ["complete"] * 2


def test_a_worker_that_leaves_gives_its_place_up_before_it_looks_a_last_time(
    fast_workspace: JobWorkspace,
) -> None:
    """Whoever queues a run in between finds the place free, or is found."""
    slots = WorkerSlots(fast_workspace.workspace.home)
    with slots.lock():
        handle = slots.acquire(0)
    assert handle is not None
    slot = LocalWorkerSlot(slots, 0, handle, fast_workspace.queue, 2)
    assert slot.try_release()
    assert workers(fast_workspace) == 0
    slot.reacquire()
    assert workers(fast_workspace) == 1

    ids: list[str] = []

    class QueueingSlot:
        def try_release(self) -> bool:
            left = slot.try_release()
            if not ids:
                ids.extend(fast_workspace.enqueue())  # and at that moment a run is queued
            return left

        def reacquire(self) -> None:
            slot.reacquire()

    asyncio.run(
        Worker(
            fast_workspace.workspace,
            fast_workspace.queue,
            "last",
            WorkerSettings(idle_exit_s=0.0),
            QueueingSlot(),
        ).run()
    )
    assert (fast_workspace.status(ids[0]), workers(fast_workspace)) == ("complete", 0)


def test_the_last_two_workers_stay_while_another_is_at_work(fast_workspace: JobWorkspace) -> None:
    """Another worker must notice if it is lost."""
    slots = WorkerSlots(fast_workspace.workspace.home)
    with slots.lock():
        handles = [slots.acquire(number) for number in range(3)]
    fast_workspace.enqueue()
    assert fast_workspace.queue.claim("busy") is not None
    worker_slots = [
        LocalWorkerSlot(slots, number, handle or -1, fast_workspace.queue, 3) for number, handle in enumerate(handles)
    ]

    assert [slot.try_release() for slot in worker_slots] == [True, False, False]
    for slot in worker_slots:
        slot.close()


def test_workers_are_not_started_next_to_a_process_that_has_the_database_for_itself(
    fast_workspace: JobWorkspace,
) -> None:
    settings = fast_workspace.settings.model_copy(update={"sqlite_processes": "one"})
    with pytest.raises(UserError, match="for itself"):
        local.ensure(settings, fast_workspace.queue)


def test_a_process_is_given_the_settings_by_variables_and_its_arguments_say_nothing(tmp_path: Path) -> None:
    settings = Settings.model_construct(
        **{**Settings(home=tmp_path).model_dump(), "database_url": "postgresql://u:pw@h/d"}
    )
    assert variables(settings)["PITBOSS_DATABASE_URL"] == "postgresql://u:pw@h/d"
    assert surroundings(settings)["PATH"] == os.environ["PATH"]


def test_the_build_changes_with_any_file_and_not_with_what_python_keeps_next_to_them(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("1")
    (tmp_path / "data.toml").write_text("a = 1")
    before = source_digest(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "one.pyc").write_text("x")
    assert source_digest(tmp_path) == before
    (tmp_path / "data.toml").write_text("a = 2")
    changed = source_digest(tmp_path)
    (tmp_path / "data.toml").rename(tmp_path / "date.toml")
    assert len({before, changed, source_digest(tmp_path)}) == 3
    assert build() == build()
