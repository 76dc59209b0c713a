"""Executing a study: its runs are enqueued and executed here or by workers, until its method asks for no more trials.

Every run is an ordinary one: it can be shown, verified, resumed and deleted by itself. All state is in the store, so a study
that was stopped continues when the same study is requested again: finished runs are reused, interrupted ones resumed from
their last record. Replies of models are shared by all runs, in this study and others; runs of one process that send the same
request at the same time share one call (`models/cached.py`).
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import RunCancelled, UserError
from pitboss.jobs.enqueue import ensure_workers
from pitboss.jobs.plan import StudyPlan, planned_runs
from pitboss.jobs.study_lock import StudyLock
from pitboss.jobs.study_queue import (
    NO_OBSERVER,
    Placement,
    StudyBatch,
    StudyObserver,
    StudySettings,
    ensure_queued,
    require_own,
)
from pitboss.jobs.worker_settings import open_queue
from pitboss.runs.run import resume
from pitboss.sim.study.trial import Method, Trial
from pitboss.sim.watch import Watch
from pitboss.store.lifecycle import ACTIVE, ENDED, LeaseLost
from pitboss.store.queued_studies import forget_queued_study
from pitboss.store.runs import Run
from pitboss.store.studies import RunLine

POLL_S = 0.3
"""How often the status of runs executed elsewhere is read."""
STALL_S = 60.0
"""After how long without progress the runs are executed here: there may be no workers of this build."""


@dataclass(frozen=True, slots=True)
class StudyResult:
    """A finished study: every trial with the runs of its repeats."""

    id: str
    trials: Mapping[Trial, Sequence[Run]]

    @property
    def failed(self) -> list[Run]:
        """Runs without a result."""
        return [run for runs in self.trials.values() for run in runs if run.status != "complete"]


async def study(
    workspace: Workspace,
    plan: StudyPlan,
    method: Method,
    settings: StudySettings,
    observer: StudyObserver = NO_OBSERVER,
) -> StudyResult:
    """Execute a study, or continue it. Raises `RunCancelled` when the observer requests a stop; all results are kept."""
    require_own(workspace, plan)
    with StudyLock(workspace.home, plan.id) as lock:
        return await _run_trials(workspace, plan, method, settings, observer, lock)


async def _run_trials(
    workspace: Workspace,
    plan: StudyPlan,
    method: Method,
    settings: StudySettings,
    observer: StudyObserver,
    lock: StudyLock,
) -> StudyResult:
    runs: dict[Trial, list[Run]] = {}
    results: dict[Trial, list[Mapping[str, Any]]] = {}
    while trials := method.ask(results):
        planned = planned_runs(plan, trials)
        try:
            batch = ensure_queued(workspace, plan, planned, settings, observer)
            observer.began(planned, batch.ids)
            if settings.placement == "here":
                unique_ids = list(dict.fromkeys(batch.ids))
                await _execute_here(workspace, unique_ids, settings.concurrency, observer, lock.acquire())
            await _wait_for_others(workspace, plan.id, batch, settings.placement, observer, lock)
        except BaseException:
            cancel_study(workspace, plan.id)
            raise
        for planned_run, run_id in zip(planned, batch.ids, strict=True):
            run = workspace.runs.get(run_id)
            runs.setdefault(planned_run.trial, []).append(run)
            results.setdefault(planned_run.trial, [])
            if run.metrics is not None:
                results[planned_run.trial].append(run.metrics)
    return StudyResult(plan.id, runs)


async def _execute_here(
    workspace: Workspace,
    ids: Sequence[str],
    concurrency: int,
    observer: StudyObserver,
    is_driver: bool,
) -> None:
    """Execute the runs that no other process works on, several at once. `is_driver`: this process holds the study lock, so
    an active run without a worker was left behind by a process that was killed.
    """
    remaining = iter(ids)

    async def work() -> None:
        for run_id in remaining:
            if observer.stop():
                raise RunCancelled
            run = workspace.runs.get(run_id)
            is_orphan = is_driver and run.status in ACTIVE and run.worker is None
            if run.status != "queued" and not is_orphan:  # it has ended, or another process works on it
                observer.moved(run_id, run.status, run.progress)
                continue
            await _execute_run(workspace, run_id, observer)

    tasks = [asyncio.create_task(work()) for _ in range(max(1, concurrency))]
    try:
        await asyncio.gather(*tasks)
    except RunCancelled:
        await asyncio.gather(*tasks, return_exceptions=True)  # each finishes its tick and records its state
        raise
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _execute_run(workspace: Workspace, run_id: str, observer: StudyObserver) -> None:
    observer.moved(run_id, "running", 0.0)
    watch = Watch(lambda progress: observer.moved(run_id, "running", progress), observer.stop, lambda text: None)
    try:
        await resume(workspace, run_id, watch)
    except LeaseLost:
        pass  # another process has claimed it
    except Exception as error:  # noqa: BLE001 - the other runs continue; the cause is stored with the run
        observer.note(f"run {run_id}: {error}")
    except RunCancelled:
        if observer.stop():
            raise
    run = workspace.runs.get(run_id)
    observer.moved(run_id, run.status, run.progress)


async def _wait_for_others(
    workspace: Workspace,
    study_id: str,
    batch: StudyBatch,
    placement: Placement,
    observer: StudyObserver,
    lock: StudyLock,
) -> None:
    """Wait for runs that other processes work on; starts workers, or executes the runs here if none makes progress."""
    ids, studies, last_lines = set(batch.ids), workspace.studies, dict[str, RunLine]()
    loop = asyncio.get_running_loop()
    moved_s = loop.time()
    while True:
        lines = [line for line in studies.progress(study_id) if line.id in ids]
        for line in lines:
            if last_lines.get(line.id) != line:
                observer.moved(line.id, line.status, line.progress)
                last_lines[line.id] = line
                moved_s = loop.time()
        if all(line.status in ENDED for line in lines):
            return
        if observer.stop():
            raise RunCancelled
        if placement == "workers" and loop.time() - moved_s < STALL_S:
            ensure_workers(workspace)
        else:
            if placement == "workers":
                observer.note(f"no worker has claimed a run for {STALL_S:.0f} s: the runs are executed here")
                placement = "here"
            open_queue(workspace).sweep()
            unfinished = [line.id for line in lines if line.status not in ENDED]
            await _execute_here(workspace, unfinished, 1, observer, lock.acquire())
        await asyncio.sleep(POLL_S)


def cancel_study(workspace: Workspace, study_id: str) -> int:
    """Remove the runs of a study that have not begun from the queue and request a cancel of the others; returns how many."""
    count = 0
    forget_queued_study(workspace.database, study_id)
    for line in workspace.studies.progress(study_id):
        if line.status not in ENDED:
            try:
                workspace.runs.request_cancel(line.id)
                count += 1
            except UserError:
                continue  # it has ended meanwhile
    return count
