"""`pitboss backtest` and `pitboss submit`: run a skill of any venue over a past range, here or in the queue.

`pitboss backtest` takes the options of all installed venues (`venue_options.py`); `pitboss <venue> backtest` takes only its
venue's.
"""

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pitboss.cli.venue_options import VenueOptions, given_range, venue_fields, venue_parameters
from pitboss.core.errors import UserError
from pitboss.runs.venue import Venue
from pitboss.runs.venues import period_ms, venue_of, venues
from pitboss.terminal import screen
from pitboss.terminal.options import BacktestOptions, Json, Priority, Queue
from pitboss.terminal.workspace_options import Location, WorkspaceOptions

if TYPE_CHECKING:
    from pitboss.bootstrap.workspace import Workspace
    from pitboss.sim.request import BacktestRequest

HELP = """{action} over a past range of time and show the result.

    A model's cost is estimated first: above confirm_above_usd ($5 unless set) it has to be confirmed, with `--yes` if
    there is no terminal. Writes an HTML report and stores every decision, so that `pitboss runs verify` can check the
    result. Ctrl-C stops the run after the current tick; `pitboss runs resume` continues it and ends with the same digest.

    For example:

        pitboss {command} {skill} {options}
        pitboss {command} {skill} {options} --json
        pitboss {command} {skill} {options} --set max_steps=2
        pitboss {command} {skill} {options} --queue

    Parameters
    ----------
    skill
        A .yaml or .json file.
    """
SUBMIT_HELP = """Queue a backtest, start workers for it, and show the estimated cost. Options as of `pitboss backtest`.

    An estimate above confirm_above_usd ($5 unless set) has to be confirmed, with `--yes` if there is no terminal.
    `pitboss jobs wait` waits for the result.

    For example:

        pitboss submit trend-thesis.yaml --from 2025-02-10 --to 2025-03-10 --model policy/momentum

    Parameters
    ----------
    skill
        A .yaml or .json file.
    """


def command_for(venues_offered: Sequence[Venue], name: str, queued: bool = False) -> Callable[..., int]:
    """Build a backtest command with the options of some venues; `queued` always puts the run into the queue."""
    only = venues_offered[0] if len(venues_offered) == 1 else None

    def backtest(skill: Path, /, **options: Any) -> int:
        run_options, location = options.pop("run_options"), options.pop("location")
        queue, priority, json = options.pop("queue", queued), options.pop("priority", None), options.pop("json", False)
        return run_command(location, skill, run_options, options, only, queue, priority, json)

    signature = _signature(venues_offered, queued)
    backtest.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    backtest.__annotations__ = {parameter.name: parameter.annotation for parameter in signature.parameters.values()}
    action = f"Run a skill of the {only.name} venue" if only else "Run a skill"
    skill = "trend-thesis.yaml" if only is None else next(iter(only.examples()), "skill.yaml")
    options = (only or Venue).demo_options
    text = HELP.format(action=action, command=name, skill=skill, options=options)
    backtest.__doc__ = SUBMIT_HELP if queued else text
    backtest.__name__ = "submit" if queued else "backtest"
    return backtest


def _signature(venues_offered: Sequence[Venue], queued: bool) -> inspect.Signature:
    positional_only, keyword_only = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter("skill", positional_only, annotation=Path),
        inspect.Parameter("run_options", keyword_only, annotation=BacktestOptions),
        *venue_parameters(venues_offered),
    ]
    if not queued:
        parameters.append(inspect.Parameter("queue", keyword_only, default=False, annotation=Queue))
    parameters += [
        inspect.Parameter("priority", keyword_only, default=None, annotation=Priority),
        inspect.Parameter("json", keyword_only, default=False, annotation=Json),
        inspect.Parameter("location", keyword_only, annotation=Location),
    ]
    return inspect.Signature(parameters)


def run_command(
    location: WorkspaceOptions,
    skill: Path,
    run_options: BacktestOptions,
    venue_options: VenueOptions,
    only: Venue | None,
    queue: bool,
    priority: int | None,
    json: bool,
) -> int:
    """Read the skill, build the request of its venue, and run or queue it."""
    run_options.check()
    request = request_for(location, skill, run_options, venue_options, only)
    if queue:
        from pitboss.cli.jobs import enqueue_backtest

        return enqueue_backtest(location, request, run_options.repeats, priority or 0, run_options.yes, json)
    if priority is not None:
        raise UserError("--priority works only with --queue", "add --queue, or leave --priority out")
    return run_backtest(location, request, run_options.repeats, run_options.yes, json)


def request_for(
    location: WorkspaceOptions,
    skill: Path,
    run_options: BacktestOptions,
    venue_options: VenueOptions,
    only: Venue | None = None,
) -> "BacktestRequest":
    """Build the request of a command line."""
    from pitboss.runs.documents import read_file
    from pitboss.runs.new_request import build_request

    settings = location.settings()
    document = read_file(skill, run_options.set_, settings)
    venue = venue_of(document)
    if only is not None and venue is not only:
        raise UserError(
            f"{skill.name} is a skill of the {venue.name} venue",
            f"use `pitboss {venue.name} backtest {skill}`, or `pitboss backtest`, which takes skills of every venue",
        )
    fields_of_venue = venue_fields(location, document, venue_options)
    span = given_range(location, document, run_options, fields_of_venue)
    request_fields = {
        **run_options.fields(settings, span),
        "decisions": run_options.read_decisions(span, period_ms(document), venue.decision()),
        **fields_of_venue,
    }
    built = build_request(document, request_fields, settings)
    if built.warning:
        screen.note(f"warning: {built.warning}")
    return built.request


def run_backtest(
    location: WorkspaceOptions, request: "BacktestRequest", repeats: int = 1, yes: bool = False, json: bool = False
) -> int:
    """Show the estimate, confirm if needed, run a request once or several times, and print the result."""
    from pitboss.bootstrap.decider_source import may_cost
    from pitboss.cli.run_result import show_journal_note, show_run, show_summary
    from pitboss.cli.run_work import start_run
    from pitboss.runs.new_request import repeated
    from pitboss.runs.stored import document

    requests = repeated(request, repeats)
    with location.workspace() as workspace:
        extra_params: dict[str, Any] = {}
        if may_cost(request):
            requests, extra_params["estimate"] = _agreed(workspace, requests, yes, json)
        finished = []
        for number, repeat in enumerate(requests):
            label = "backtest" if repeats == 1 else f"backtest {number + 1} of {repeats}"
            finished.append(start_run(workspace, location, repeat, label, extra_params))
            if finished[-1].code:
                break
        runs = [item.run for item in finished]
        result = document(workspace, runs[0])
        complete = [run for run in runs if run.metrics is not None]
        if repeats > 1:
            from pitboss.cli.repeat_summary import summary

            result["repeats"] = [{"run_id": run.id, "digest": run.digest, "metrics": run.metrics} for run in complete]
            result["summary"] = summary([run.metrics or {} for run in complete])
        if json:
            screen.put_json(result)
        elif finished[-1].is_complete:
            show_run(workspace, location, runs[0])
            if repeats > 1:
                show_summary(result["summary"], [run.digest for run in complete])
            show_journal_note(workspace)
        return finished[-1].code


def _agreed(
    workspace: "Workspace", requests: "list[BacktestRequest]", yes: bool, json: bool
) -> "tuple[list[BacktestRequest], dict[str, Any]]":
    """The requests with their limits, once the user and the daily budget allow all of them, and the estimate."""
    from pitboss.cli.consent import agreement, estimate_line
    from pitboss.jobs.submit import agreed
    from pitboss.runs.daily_budget import refused_by_budget, require_room

    requests, cost = agreed(workspace, requests, agreement(workspace, yes, json))
    with refused_by_budget():
        require_room(workspace, requests)
    if cost.hi != 0:
        screen.note(estimate_line(cost))
    return requests, cost.plain()


def __getattr__(name: str) -> object:
    """Build `backtest` and `submit` on first access, because they need the options of every installed venue."""
    if name in ("backtest", "submit"):
        return command_for(venues(), name, queued=name == "submit")
    raise AttributeError(name)
