"""Execute a study from the command line: show the estimate, confirm if needed, run it, show the result."""

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pitboss.bootstrap.decider_source import is_model
from pitboss.bootstrap.workspace import Workspace
from pitboss.cli.study_options import Manner
from pitboss.cli.study_result import estimate_line, show_estimate, show_study
from pitboss.cli.study_table import following
from pitboss.core.errors import BudgetExceeded, RunCancelled, UserError
from pitboss.jobs.estimate import Estimate, estimate, pilot, require_consent, worst_case
from pitboss.jobs.plan import PlannedRun, planned_runs
from pitboss.jobs.study import StudyBudget, StudySettings, study
from pitboss.jobs.study_page import result_document, write_page
from pitboss.jobs.study_plans import BuiltPlan
from pitboss.report.metric import named
from pitboss.runs.documents import read_file
from pitboss.runs.venues import venue_of
from pitboss.store.studies import Studies
from pitboss.terminal import screen
from pitboss.terminal.options import RangeOptions
from pitboss.terminal.workspace_options import WorkspaceOptions

MANY = 32
"""Least number of runs for which worker processes are started for compute-only runs."""
STOPPED = 130
"""The exit code after Ctrl-C."""


def base_request(place: WorkspaceOptions, file: Path, asked: RangeOptions, model: str = "") -> Any:
    """Build the base request, for the venue that the skill names."""
    asked.check()
    settings = place.settings()
    plain = read_file(file, asked.set_, settings)
    return venue_of(plain).request_type()(skill=plain, model=model, **asked.fields(settings))


def conduct(place: WorkspaceOptions, made: BuiltPlan, manner: Manner, yes: bool) -> int:
    """Estimate, confirm, run and show a study, and return the exit code. With `yes` there is no confirmation."""
    if not 1 <= manner.concurrency <= 256:
        raise UserError("--concurrency: not from 1 to 256", "for example --concurrency 8")
    with place.workspace() as workspace:
        known = planned_runs(made.plan, made.expected_trials)
        found = _estimated(workspace, made, known, manner)
        if manner.estimate:
            if manner.json:
                screen.put_json({"study_id": made.plan.id, "estimate": found.plain()})
            else:
                show_estimate(found)
            return 0
        screen.note(f"study {made.plan.id}: {len(known)} runs; {estimate_line(found)}")
        if found.usd:
            for words in found.basis:
                screen.note(f"  {words}")
        require_consent(found, yes, asker(manner.json))
        workspace, terms = _terms(workspace, known, found, manner)
        code = _work(workspace, place, made, terms)
        document = result_document(workspace, made.plan.id)
        if code != STOPPED:
            document["report"] = str(write_page(workspace, document, manner.out))
        if manner.json:
            screen.put_json({**document, "estimate": found.plain()})
        elif code != STOPPED:
            show_study(document, place)
    return code


def _estimated(workspace: Workspace, made: BuiltPlan, known: Sequence[PlannedRun], manner: Manner) -> Estimate:
    """Estimate the runs that are not done yet."""
    standing = {line.id: line.status for line in Studies(workspace.database).progress(made.plan.id)}
    open_ = [member.request for member in known if standing.get(member.run_id(made.plan.id)) != "complete"]
    per_tick = asyncio.run(pilot(workspace, open_)) if manner.pilot and open_ else None
    return estimate(workspace, open_, per_tick)


def _terms(
    workspace: Workspace, known: Sequence[PlannedRun], found: Estimate, manner: Manner
) -> tuple[Workspace, StudySettings]:
    limit = workspace.settings.daily_usd
    budget = StudyBudget(lambda run: worst_case(found, run.request), limit or None)
    executor = manner.executor
    if executor == "auto":
        computing = sum(not is_model(member.request) for member in known)
        alone = (os.cpu_count() or 1) < 2 or workspace.settings.sqlite_processes == "one"
        executor = (
            "here"
            if alone or computing < MANY or workspace.settings.executor == "none"
            else workspace.settings.executor
        )
    if executor == "here":
        return workspace, StudySettings("here", manner.concurrency, budget)
    chosen = workspace.settings.model_copy(update={"executor": executor})
    return replace(workspace, settings=chosen), StudySettings("workers", manner.concurrency, budget)


def _work(workspace: Workspace, place: WorkspaceOptions, made: BuiltPlan, terms: StudySettings) -> int:
    plan = made.plan
    again = "the same command goes on with it"
    with following(
        workspace, f"{plan.kind} {plan.id}", named(plan.by, venue_of(plan.request.skill).metrics()), plan.by
    ) as board:
        try:
            done = asyncio.run(study(workspace, plan, made.method, terms, board.onlooker()))
        except (RunCancelled, KeyboardInterrupt):
            done = None
        except BudgetExceeded as error:
            raise UserError(
                str(error), "raise the setting daily_usd (0: no limit), or bound every run with --max-cost-usd"
            ) from None
    if done is None:
        complete, known = board.complete
        screen.note(f"study {plan.id} stopped: {complete} of {known} runs are done, everything is kept, and {again}")
        screen.note(f"hint: {place.typed(f'study show {plan.id}')}")
        return STOPPED
    if done.failed:
        first = done.failed[0]
        screen.complain(
            f"{len(done.failed)} runs have no result; {first.id}: {first.error_text or first.status}", again
        )
        return 1
    return 0


def asker(json: bool) -> Any:
    """A function that asks for confirmation; None if there is no terminal."""
    if json or not (sys.stdin is not None and sys.stdin.isatty() and screen.ERR.is_terminal):
        return None

    def ask() -> bool:
        screen.ERR.print("go on? [y/N] ", end="")
        return input().strip().lower() in ("y", "yes")

    return ask
