"""Executing a study: its runs are enqueued and executed here or by workers, until its method asks for no more trials.

Every run is an ordinary one: it can be shown, verified, resumed and deleted by itself. All state is in the store, so a study
that was stopped continues when the same study is requested again: finished runs are reused, interrupted ones resumed from
their last record. Replies of models are shared by all runs, in this study and others; runs of one process that send the same
request at the same time share one call (`models/cached.py`).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal

from pitboss.bootstrap.decider_source import may_cost
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import InvariantError, RunCancelled, UserError
from pitboss.core.money import ZERO
from pitboss.jobs.batch import JobBuilder
from pitboss.jobs.build import build
from pitboss.jobs.enqueue import ensure_workers
from pitboss.jobs.plan import PlannedRun, StudyPlan, planned_runs
from pitboss.jobs.study_lock import StudyLock
from pitboss.jobs.worker_settings import open_queue
from pitboss.runs.run import resume
from pitboss.sim.study.trial import Method, Trial
from pitboss.sim.watch import Watch
from pitboss.store.budgets import cost_of_run
from pitboss.store.lifecycle import ACTIVE, ENDED, LeaseLost
from pitboss.store.queue import Job, Queue
from pitboss.store.runs import Run
from pitboss.store.studies import RunLine, RunsExist, unique_runs

Placement = Literal["here", "workers"]

POLL_S = 0.3
"""How often the status of runs executed elsewhere is read."""
STALL_S = 60.0
"""After how long without progress the runs are executed here: there may be no workers of this build."""


@dataclass(frozen=True, slots=True)
class StudyObserver:
    """Callbacks of the caller: `began` and `moved` report progress, `note` a line of text, `stop` whether to stop."""

    began: Callable[[Sequence[PlannedRun], Sequence[str]], None] = lambda planned, ids: None
    moved: Callable[[str, str, float], None] = lambda run_id, status, progress: None
    note: Callable[[str], None] = lambda text: None
    stop: Callable[[], bool] = lambda: False


NO_OBSERVER = StudyObserver()


@dataclass(frozen=True, slots=True)
class StudyBudget:
    """What a study may spend: the worst case reserved for one run, and the daily limit of the user who pays."""

    each_usd: Callable[[PlannedRun], Decimal] = lambda run: ZERO
    daily_usd: Decimal | None = None


@dataclass(frozen=True, slots=True)
class StudySettings:
    """How a study is executed. `concurrency` is the number of simultaneous runs in this process."""

    placement: Placement = "here"
    concurrency: int = 4
    budget: StudyBudget = field(default_factory=StudyBudget)


@dataclass(frozen=True, slots=True)
class StudyResult:
    """A finished study: every trial with the runs of its repeats."""

    id: str
    trials: Mapping[Trial, Sequence[Run]]

    @property
    def failed(self) -> list[Run]:
        """Runs without a result."""
        return [run for runs in self.trials.values() for run in runs if run.status != "complete"]


@dataclass(frozen=True, slots=True)
class StudyBatch:
    """Run ids in order."""

    ids: Sequence[str]


async def study(
    workspace: Workspace,
    plan: StudyPlan,
    method: Method,
    settings: StudySettings,
    observer: StudyObserver = NO_OBSERVER,
) -> StudyResult:
    """Execute a study, or continue it. Raises `RunCancelled` when the observer requests a stop; all results are kept."""
    _require_own(workspace, plan)
    workspace.studies.save(plan.id, plan.document())
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
                await _execute_here(workspace, batch, unique_ids, settings.concurrency, observer, lock.acquire())
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


def ensure_queued(
    workspace: Workspace,
    plan: StudyPlan,
    planned: Sequence[PlannedRun],
    settings: StudySettings,
    observer: StudyObserver,
) -> StudyBatch:
    """Enqueue the planned runs that are missing, and those that were interrupted once more."""
    _require_own(workspace, plan)
    ids = [run.run_id(plan.id) for run in planned]
    by_id = dict(zip(ids, planned, strict=True))  # a search may suggest a point twice
    budget, jobs, builder = settings.budget, dict[str, Job](), JobBuilder(workspace)
    while True:
        statuses = {line.id: line.status for line in workspace.studies.progress(plan.id)}
        missing = [run_id for run_id in by_id if run_id not in statuses]
        for run_id in missing:
            if observer.stop():
                raise RunCancelled
            if run_id not in jobs:
                jobs[run_id] = _job(builder, plan, by_id[run_id], budget)
        queue = Queue(workspace.database, workspace.now, iter(missing).__next__)
        try:
            with unique_runs():
                queue.enqueue([jobs[run_id] for run_id in missing], budget.daily_usd if _costs(planned) else None)
            break
        except RunsExist:
            continue  # with the runs that are still missing
    interrupted = [run_id for run_id in by_id if statuses.get(run_id) in ("error", "cancelled")]
    for run_id in interrupted:
        _enqueue_again(workspace, run_id, by_id[run_id], budget)
    return StudyBatch(ids)


def _require_own(workspace: Workspace, plan: StudyPlan) -> None:
    """The ids of a study and its runs depend on the owner: a plan for another one would find the wrong ones."""
    if plan.owner != workspace.owner:
        raise InvariantError(f"a study of {plan.owner} cannot be executed for {workspace.owner}")


def _enqueue_again(workspace: Workspace, run_id: str, planned: PlannedRun, budget: StudyBudget) -> None:
    """Enqueue an interrupted run once more, with the limit of this command instead of the one it was begun with.

    Where only the daily budget limits it, that is what it has paid and the new reservation for the rest.
    """
    reserve, daily_usd = _reservation(planned, budget)
    most_usd = planned.request.max_cost_usd
    if reserve is not None:
        paid_usd = cost_of_run(workspace.database, run_id)
        if most_usd is not None:
            reserve = max(ZERO, most_usd - paid_usd)
        elif reserve:
            most_usd = paid_usd + reserve
    open_queue(workspace).enqueue_again(run_id, reserve, daily_usd, params={"max_cost_usd": most_usd})


def _job(builder: JobBuilder, plan: StudyPlan, planned: PlannedRun, budget: StudyBudget) -> Job:
    request, reserve = planned.request, None
    if budget.daily_usd is not None:
        reserve, _ = _reservation(planned, budget)
        if may_cost(request) and request.max_cost_usd is None and reserve:
            # A run may spend no more than its reservation; otherwise the daily limit would not hold.
            request = replace(request, max_cost_usd=reserve)
    fields = {"owner": plan.owner, "study_id": plan.id, "build": build(), "reserve_usd": reserve or ZERO}
    job = builder.job(request, **fields)
    return replace(job, params={**job.params, "study": planned.mark()})


def _reservation(planned: PlannedRun, budget: StudyBudget) -> tuple[Decimal | None, Decimal | None]:
    """What is reserved for a run, and from which daily limit; None where there is no limit."""
    if budget.daily_usd is None:
        return None, None
    if not may_cost(planned.request):
        return ZERO, budget.daily_usd
    own = planned.request.max_cost_usd
    return (budget.each_usd(planned) if own is None else own), budget.daily_usd


def _costs(planned: Sequence[PlannedRun]) -> bool:
    return any(may_cost(run.request) for run in planned)


async def _execute_here(
    workspace: Workspace,
    batch: StudyBatch,
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
            await _execute_here(workspace, batch, unfinished, 1, observer, lock.acquire())
        await asyncio.sleep(POLL_S)


def cancel_study(workspace: Workspace, study_id: str) -> int:
    """Remove the runs of a study that have not begun from the queue and request a cancel of the others; returns how many."""
    count = 0
    for line in workspace.studies.progress(study_id):
        if line.status not in ENDED:
            try:
                workspace.runs.request_cancel(line.id)
                count += 1
            except UserError:
                continue  # it has ended meanwhile
    return count
