"""Queues the runs of a study: those that are missing, and those that were interrupted once more, within the budget of the study.

Executing a study from beginning to end is in `study.py`, carrying on one that workers execute in `study_steps.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Literal

from pitboss.bootstrap.decider_source import may_cost
from pitboss.bootstrap.machine import new_id
from pitboss.bootstrap.workspace import Workspace
from pitboss.build import build
from pitboss.core.errors import InvariantError, RunCancelled
from pitboss.core.money import ZERO
from pitboss.jobs.batch import JobBuilder
from pitboss.jobs.plan import PlannedRun, StudyPlan
from pitboss.store.budgets import cost_of_run
from pitboss.store.queue import Job, Queue
from pitboss.store.studies import RunsExist, unique_runs

Placement = Literal["here", "workers"]


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
class StudyBatch:
    """Run ids in order."""

    ids: Sequence[str]


def ensure_queued(
    workspace: Workspace,
    plan: StudyPlan,
    planned: Sequence[PlannedRun],
    settings: StudySettings,
    observer: StudyObserver,
) -> StudyBatch:
    """Enqueue the planned runs that are missing, and those that were interrupted once more.

    The study itself is stored before its first run, but only once every run could be prepared.
    """
    require_own(workspace, plan)
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
        workspace.studies.save(plan.id, plan.document())
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


def require_own(workspace: Workspace, plan: StudyPlan) -> None:
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
    # not `worker_settings.open_queue`: workers import this module
    queue = Queue(workspace.database, workspace.now, new_id)
    queue.enqueue_again(run_id, reserve, daily_usd, params={"max_cost_usd": most_usd})


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
