"""Carries on a queued study whose later trials depend on the results of earlier ones: a search, a walk-forward.

No process drives such a study. When a run of it has ended, its worker calls `continue_study`, which asks the method of the study
for the next trials, from all results so far, and queues their runs. All state is in the store and the ids of runs follow from
their content, so any number of processes may do this at once, and a step that was missed is made up for by the next worker that
starts.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import BudgetExceeded, InvariantError, UserError
from pitboss.core.instant import duration_text
from pitboss.jobs.estimate import estimate, worst_case
from pitboss.jobs.plan import PlannedRun, planned_runs
from pitboss.jobs.study_plans import BuiltPlan, sweep_plan
from pitboss.jobs.study_queue import NO_OBSERVER, StudyBudget, StudySettings, ensure_queued
from pitboss.runs.venues import venue_of
from pitboss.sim.study.axis import parse_axes
from pitboss.sim.study.trial import Trial
from pitboss.store.lifecycle import ENDED
from pitboss.store.queued_studies import (
    QueuedStudy,
    forget_queued_study,
    queued_studies,
    read_queued_study,
    write_queued_study,
)
from pitboss.store.retry import Unreachable
from pitboss.store.studies import study_runs

LOG = logging.getLogger("pitboss.jobs")
LIMITS = ("any_price", "max_cost_usd", "speculate", "max_waste_pct")
"""Fields of the base request that are not in the definition of a study."""


def begin_study(workspace: Workspace, built: BuiltPlan) -> list[str]:
    """Queue the first runs of a study, or the next ones of one that was begun, interrupted runs included. Returns their ids."""
    plan = built.plan
    limits = {name: value for name, value in codec.plain(replace(plan.request, skill={})).items() if name in LIMITS}
    expected = len(planned_runs(plan, built.expected_trials))
    workspace.studies.save(plan.id, plan.document())
    write_queued_study(workspace.database, plan.id, QueuedStudy(workspace.owner, expected, limits))
    return _queue_next(workspace, built, again=True)


def continue_study(workspace: Workspace, study_id: str) -> list[str]:
    """Queue the next runs of a study if those before have ended, and return their ids. Does nothing for any other study."""
    queued = read_queued_study(workspace.database, study_id)
    if queued is None or queued.stopped:
        return []
    own = workspace.owned_by(queued.owner)
    try:
        return _queue_next(own, _rebuilt(own, study_id, queued), again=False)
    except Unreachable:
        raise
    except (UserError, BudgetExceeded) as error:
        why = error.message if isinstance(error, UserError) else str(error)
        write_queued_study(workspace.database, study_id, replace(queued, stopped=why))
        LOG.warning("study stopped", extra={"fields": {"study_id": study_id, "error": why}})
        return []


def _queue_next(workspace: Workspace, built: BuiltPlan, again: bool) -> list[str]:
    """`again` queues interrupted runs once more; otherwise a failed run is a trial without a result, and a cancelled one ends the
    study.
    """
    plan = built.plan
    stored = {run.id: run for run in study_runs(workspace.runs, plan.id)}
    if not again and any(run.status == "cancelled" for run in stored.values()):
        forget_queued_study(workspace.database, plan.id)
        return []
    results: dict[Trial, list[Mapping[str, Any]]] = {}
    while trials := built.method.ask(results):
        batch = {run.run_id(plan.id): run for run in planned_runs(plan, trials)}
        missing = {
            run_id: run
            for run_id, run in batch.items()
            if run_id not in stored or (again and stored[run_id].status in ("error", "cancelled"))
        }
        if missing:
            _queue(workspace, built, list(missing.values()))
            return list(missing)
        if any(stored[run_id].status not in ENDED for run_id in batch):
            return []
        for run_id, run in batch.items():
            metrics = stored[run_id].metrics
            results.setdefault(run.trial, []).extend([] if metrics is None else [metrics])
    forget_queued_study(workspace.database, plan.id)
    return []


def _queue(workspace: Workspace, built: BuiltPlan, runs: list[PlannedRun]) -> None:
    cost = estimate(workspace, [run.request for run in runs])
    budget = StudyBudget(lambda run: worst_case(cost, run.request), workspace.settings.daily_usd or None)
    ensure_queued(workspace, built.plan, runs, StudySettings("workers", budget=budget), NO_OBSERVER)


def _rebuilt(workspace: Workspace, study_id: str, queued: QueuedStudy) -> BuiltPlan:
    """The plan of a stored study."""
    document = workspace.studies.document(study_id)
    values = {**document["request"], **queued.limits, "skill": document["skill"]}
    request = codec.parse(venue_of(document["skill"]).request_type(), values)
    method = document["method"]
    lengths = [duration_text(method[name]) for name in ("train_ms", "test_ms", "gap_ms") if method.get(name)]
    built = sweep_plan(
        request,
        parse_axes(document["vary"]),
        repeats=document["repeats"],
        by=document["by"],
        name=document["name"],
        random=method.get("random"),
        search=method.get("search"),
        walk="/".join(lengths),
        anchored=method.get("anchored", False),
        owner=queued.owner,
    )
    if built.plan.id != study_id:
        raise InvariantError(f"study {study_id} was stored by another version and cannot be carried on by this one")
    return built


class StudyContinuer:
    """Carries on the studies of a worker's runs, one after the other in a thread."""

    def __init__(self, workspace: Workspace, on_done: Callable[[], None] = lambda: None) -> None:
        """`on_done` is called after each step."""
        self._workspace = workspace
        self._on_done = on_done
        self._one_at_a_time = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def pending(self) -> int:
        """How many steps are still to be made."""
        return len(self._tasks)

    def schedule(self, study_id: str | None = None) -> None:
        """Carry on a study of which a run has ended; None: all of them, for steps that a dead worker did not make."""
        task = asyncio.create_task(self._step(study_id), name=f"study {study_id or ''}")
        self._tasks.add(task)
        task.add_done_callback(self._remove)

    async def close(self) -> None:
        """Drop the steps that are not begun. One that is being made is finished."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _step(self, study_id: str | None) -> None:
        async with self._one_at_a_time:
            await asyncio.to_thread(self._continue, study_id)

    def _continue(self, study_id: str | None) -> None:
        try:
            for each in queued_studies(self._workspace.database) if study_id is None else [study_id]:
                continue_study(self._workspace, each)
        except Exception as error:  # noqa: BLE001 - the worker continues; the next worker that starts tries again
            LOG.warning("study not carried on", extra={"fields": {"study_id": study_id, "error": repr(error)}})

    def _remove(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._on_done()
