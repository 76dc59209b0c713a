"""Execute a study from the command line: show the estimate, confirm if needed, run it, show the result."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pitboss.bootstrap.decider_source import is_model
from pitboss.bootstrap.workspace import Workspace
from pitboss.cli.consent import asker, estimate_line
from pitboss.cli.study_options import StudyOptions
from pitboss.cli.study_result import show_estimate, show_study
from pitboss.cli.study_table import live_scoreboard
from pitboss.cli.venue_options import VenueOptions, given_range, venue_fields
from pitboss.core.errors import BudgetExceeded, RunCancelled, UserError
from pitboss.jobs.estimate import Estimate, require_consent
from pitboss.jobs.plan import PlannedRun, planned_runs, unchanged_fields
from pitboss.jobs.study import study
from pitboss.jobs.study_page import result_document, write_page
from pitboss.jobs.study_plans import BuiltPlan
from pitboss.jobs.study_queue import StudySettings
from pitboss.jobs.submit_study import estimate_open_runs, study_budget
from pitboss.report.figures import plural
from pitboss.report.metric import metric_meaning
from pitboss.runs.documents import read_file
from pitboss.runs.venues import venue_of
from pitboss.terminal import screen
from pitboss.terminal.exit_codes import INTERRUPTED
from pitboss.terminal.options import RangeOptions
from pitboss.terminal.workspace_options import WorkspaceOptions

MANY = 32
"""Number of compute-only runs from which on worker processes are started for them."""


def base_request(
    location: WorkspaceOptions, path: Path, options: RangeOptions, venue_options: VenueOptions, model: str = ""
) -> Any:
    """Build the base request, for the venue that the skill names."""
    options.check()
    settings = location.settings()
    document = read_file(path, options.set_, settings)
    fields_of_venue = venue_fields(location, document, venue_options)
    span = given_range(location, document, options, fields_of_venue)
    fields = {**options.fields(settings, span), **fields_of_venue}
    return venue_of(document).request_type()(skill=document, model=model, **fields)


def run_study(location: WorkspaceOptions, built: BuiltPlan, study_options: StudyOptions, yes: bool) -> int:
    """Estimate, confirm, run and show a study, and return the exit code. With `yes` there is no confirmation."""
    if not 1 <= study_options.concurrency <= 256:
        raise UserError("--concurrency: not from 1 to 256", "for example --concurrency 8")
    with location.workspace() as workspace:
        runs = planned_runs(built.plan, built.expected_trials)
        cost = estimate_open_runs(workspace, built, runs, study_options.pilot)
        if study_options.estimate:
            if study_options.json:
                screen.put_json({"study_id": built.plan.id, "estimate": cost.plain()})
            else:
                show_estimate(cost)
            return 0
        screen.note(f"study {built.plan.id}: {plural(len(runs), 'run')}; {estimate_line(cost)}")
        for name in unchanged_fields(runs):
            screen.note(f"warning: the values of {name} all give the same run: it changes nothing here")
        if cost.usd:
            for line in cost.basis:
                screen.note(f"  {line}")
        require_consent(cost, workspace.settings.confirm_above_usd, yes, asker(study_options.json))
        workspace, settings = _study_settings(workspace, runs, cost, study_options)
        code = _execute(workspace, location, built, settings)
        document = result_document(workspace, built.plan.id)
        if code != INTERRUPTED:
            document["report"] = str(write_page(workspace, document, study_options.out))
        if study_options.json:
            screen.put_json({**document, "estimate": cost.plain()})
        elif code != INTERRUPTED:
            show_study(document, location)
    return code


def _study_settings(
    workspace: Workspace, runs: Sequence[PlannedRun], cost: Estimate, study_options: StudyOptions
) -> tuple[Workspace, StudySettings]:
    budget = study_budget(workspace, cost)
    executor = study_options.executor
    if executor == "auto":
        compute_only = sum(not is_model(run.request) for run in runs)
        single_process = (os.cpu_count() or 1) < 2 or workspace.settings.sqlite_processes == "one"
        executor = (
            "here"
            if single_process or compute_only < MANY or workspace.settings.executor == "none"
            else workspace.settings.executor
        )
    if executor == "here":
        return workspace, StudySettings("here", study_options.concurrency, budget)
    settings = workspace.settings.model_copy(update={"executor": executor})
    return replace(workspace, settings=settings), StudySettings("workers", study_options.concurrency, budget)


def _execute(workspace: Workspace, location: WorkspaceOptions, built: BuiltPlan, settings: StudySettings) -> int:
    plan = built.plan
    continue_hint = "the same command continues it"
    with live_scoreboard(
        workspace, f"{plan.kind} {plan.id}", metric_meaning(plan.by, venue_of(plan.request.skill).metrics()), plan.by
    ) as board:
        try:
            outcome = asyncio.run(study(workspace, plan, built.method, settings, board.observer()))
        except (RunCancelled, KeyboardInterrupt):
            outcome = None
        except BudgetExceeded as error:
            raise UserError(
                str(error), "raise the setting daily_usd (0: no limit), or limit every run with --max-cost-usd"
            ) from None
    if outcome is None:
        complete, total = board.complete
        screen.note(
            f"study {plan.id} stopped: {complete} of {plural(total, 'run')} done, everything is kept, and {continue_hint}"
        )
        screen.note(f"hint: {location.command_line(f'study show {plan.id}')}")
        return INTERRUPTED
    if outcome.failed:
        first = outcome.failed[0]
        screen.complain(
            f"{plural(len(outcome.failed), 'run')} without a result; {first.id}: {first.error_text or first.status}",
            continue_hint,
        )
        return 1
    return 0
