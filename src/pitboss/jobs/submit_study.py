"""Submit a study to the queue: the estimate of its open runs, consent, and all its runs queued at once for workers.

Grids, random points and arenas know all their trials, so all their runs are queued. A search and a walk-forward choose later trials by
earlier results: their first runs are queued, and workers carry them on (`study_steps.py`). The cost of all expected trials is agreed
to at once. Repeating a submission continues the study.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from pitboss.bootstrap.workspace import Workspace
from pitboss.jobs.enqueue import ensure_workers
from pitboss.jobs.estimate import Estimate, estimate, pilot, worst_case
from pitboss.jobs.plan import PlannedRun, planned_runs
from pitboss.jobs.study_plans import BuiltPlan
from pitboss.jobs.study_queue import NO_OBSERVER, StudyBudget, StudySettings, ensure_queued
from pitboss.jobs.study_steps import begin_study
from pitboss.jobs.submit import Agree
from pitboss.sim.study.trial import FixedTrials


@dataclass(frozen=True, slots=True)
class StudySubmission:
    """A queued study: its id, the ids of its runs, and what those that are not complete are estimated to cost."""

    study_id: str
    run_ids: list[str]
    estimate: Estimate


def estimate_open_runs(
    workspace: Workspace, built: BuiltPlan, runs: Sequence[PlannedRun], with_pilot: bool = False
) -> Estimate:
    """The cost of the runs of a study that are not complete yet, with a pilot based on a few ticks of each model."""
    statuses = {row.id: row.status for row in workspace.studies.progress(built.plan.id)}
    requests = [run.request for run in runs if statuses.get(run.run_id(built.plan.id)) != "complete"]
    per_tick = asyncio.run(pilot(workspace, requests)) if with_pilot and requests else None
    return estimate(workspace, requests, per_tick)


def study_budget(workspace: Workspace, cost: Estimate) -> StudyBudget:
    """What the runs of an estimated study may spend."""
    return StudyBudget(lambda run: worst_case(cost, run.request), workspace.settings.daily_usd or None)


def submit_study(workspace: Workspace, built: BuiltPlan, agree: Agree) -> StudySubmission:
    """Queue the runs of a study that are missing or were interrupted, and start workers."""
    planned = planned_runs(built.plan, built.expected_trials)
    cost = estimate_open_runs(workspace, built, planned)
    agree(cost)
    if not isinstance(built.method, FixedTrials):
        first_ids = begin_study(workspace, built)
        ensure_workers(workspace)
        return StudySubmission(built.plan.id, first_ids, cost)
    settings = StudySettings("workers", budget=study_budget(workspace, cost))
    batch = ensure_queued(workspace, built.plan, planned, settings, NO_OBSERVER)
    ensure_workers(workspace)
    return StudySubmission(built.plan.id, list(dict.fromkeys(batch.ids)), cost)
