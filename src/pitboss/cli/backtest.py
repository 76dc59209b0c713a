"""`pitboss backtest` and `pitboss submit`: run a skill of any venue over a past range, here or in the queue.

Venue-specific options are declared by the venue (`Venue.options`). `pitboss backtest` takes those of all installed
venues and refuses the ones that do not belong to the skill's venue; `pitboss <venue> backtest` takes only its
venue's.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pitboss.core.errors import UserError
from pitboss.runs.venues import period_ms, venue_of, venues
from pitboss.terminal import screen
from pitboss.terminal.options import BacktestOptions, Json, Priority, Queue
from pitboss.terminal.workspace_options import Here, WorkspaceOptions

if TYPE_CHECKING:
    from pitboss.runs.venue import Venue
    from pitboss.sim.request import BacktestRequest

HELP = """{what} over a stretch of the past and say what came of it.

    Writes an HTML report, and keeps every decision so that the result can be checked with `pitboss runs verify`.
    Ctrl-C stops it cleanly; `pitboss runs resume` goes on where it stopped and ends in the same digest.

    For example:

        pitboss {command} {skill} --from 2025-02-10 --to 2025-03-10
        pitboss {command} {skill} --from 2025-02-10 --to 2025-03-10 --model standin/analyst --json
        pitboss {command} {skill} --from 2025-02-10 --to 2025-03-10 --set max_steps=2
        pitboss {command} {skill} --from 2025-02-10 --to 2025-03-10 --queue

    Parameters
    ----------
    skill
        A .yaml or .json file.
    """
SUBMIT_HELP = """Queue a backtest, start workers for it, and say what it will cost. Takes what `pitboss backtest` takes.

    Above $5 somebody has to agree: give `--yes` where nobody can be asked. `pitboss jobs wait` waits for it.

    For example:

        pitboss submit trend-thesis.yaml --from 2025-02-10 --to 2025-03-10 --model policy/momentum

    Parameters
    ----------
    skill
        A .yaml or .json file.
    """


def command_for(chosen: "Sequence[Venue]", name: str, queued: bool = False) -> Callable[..., int]:
    """Build a backtest command with the options of some venues; `queued` always puts the run into the queue."""
    only = chosen[0] if len(chosen) == 1 else None

    def backtest(skill: Path, /, **options: Any) -> int:
        asked, place = options.pop("asked"), options.pop("place")
        queue, priority, json = options.pop("queue", queued), options.pop("priority", None), options.pop("json", False)
        return run_command(place, skill, asked, options, only, queue, priority, json)

    signature = _signature(chosen, queued)
    backtest.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    backtest.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}
    what = f"Run a skill of the {only.name} venue" if only else "Run a skill"
    skill = "trend-thesis.yaml" if only is None else next(iter(only.examples()), "skill.yaml")
    text = HELP.format(what=what, command=name, skill=skill)
    backtest.__doc__ = SUBMIT_HELP if queued else text
    backtest.__name__ = "submit" if queued else "backtest"
    return backtest


def _signature(chosen: "Sequence[Venue]", queued: bool) -> inspect.Signature:
    plain, named = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter("skill", plain, annotation=Path),
        inspect.Parameter("asked", named, annotation=BacktestOptions),
    ]
    taken: set[str] = set()
    for venue in chosen:
        kind = venue.options()
        names = {field.name for field in dataclass_fields(kind)} if kind else set()
        if kind is None or names & taken:  # an option that several venues have is only on `pitboss <venue> backtest`
            continue
        taken |= names
        parameters.append(inspect.Parameter(f"of_{venue.name}", named, default=None, annotation=kind | None))
    if not queued:
        parameters.append(inspect.Parameter("queue", named, default=False, annotation=Queue))
    parameters += [
        inspect.Parameter("priority", named, default=None, annotation=Priority),
        inspect.Parameter("json", named, default=False, annotation=Json),
        inspect.Parameter("place", named, annotation=Here),
    ]
    return inspect.Signature(parameters)


def run_command(
    place: WorkspaceOptions,
    skill: Path,
    asked: BacktestOptions,
    options: dict[str, Any],
    only: "Venue | None",
    queue: bool,
    priority: int | None,
    json: bool,
) -> int:
    """Read the skill, build the request of its venue, and run or queue it."""
    asked.check()
    request = request_for(place, skill, asked, options, only)
    if queue:
        from pitboss.cli.jobs import put

        return put(place, request, asked.repeats, priority or 0, asked.yes, json)
    if priority is not None:
        raise UserError("--priority: nothing is queued", "give --queue too")
    return run_backtest(place, request, asked.repeats, json)


def request_for(
    place: WorkspaceOptions,
    skill: Path,
    asked: BacktestOptions,
    options: dict[str, Any],
    only: "Venue | None" = None,
) -> "BacktestRequest":
    """Build the request of a command line. `options` holds the options of each venue by `of_<venue>`."""
    from pitboss.runs.documents import read_file

    settings = place.settings()
    plain = read_file(skill, asked.set_, settings)
    venue = venue_of(plain)
    if only is not None and venue is not only:
        raise UserError(f"{skill.name} is a skill of the {venue.name} venue", "use `pitboss backtest`, which takes any")
    own = options.pop(f"of_{venue.name}", None)
    foreign = [value for value in options.values() if value is not None]
    if foreign:
        raise UserError(
            f"{_given(foreign[0])}: backtests on the {venue.name} venue have no such option",
            "`pitboss backtest --help` lists the options of each venue",
        )
    model, warning = venue.fallback_model(asked.model or str(plain["model"]), settings)
    if warning:
        screen.note(f"warning: {warning}")
        asked = replace(asked, model=model)
    kind = venue.options()
    more = (own or kind()).fields(place, plain) if kind else {}
    return venue.request_type()(
        **{
            "skill": plain,
            **asked.fields(settings),
            "decisions": asked.read_decisions(period_ms(plain), venue.decision()),
            **more,
        }
    )


def _given(options: Any) -> str:
    """The first option of a venue that differs from its default, as it is typed."""
    usual = type(options)()
    names = [field.name for field in dataclass_fields(options)]
    changed = [name for name in names if getattr(options, name) != getattr(usual, name)]
    return "--" + (changed or names)[0].replace("_", "-")


def run_backtest(place: WorkspaceOptions, request: "BacktestRequest", repeats: int = 1, json: bool = False) -> int:
    """Run a request, once or several times, and print the result."""
    from pitboss.cli.run_result import show_journal_note, show_run, show_summary
    from pitboss.cli.run_work import begin
    from pitboss.runs.stored import document

    with place.workspace() as workspace:
        ended = []
        for number in range(repeats):
            label = "backtest" if repeats == 1 else f"backtest {number + 1} of {repeats}"
            ended.append(begin(workspace, place, replace(request, seed=request.seed + number, repeat=number), label))
            if ended[-1].code:
                break
        runs = [one.run for one in ended]
        shown = document(runs[0], workspace.settings.model_cutoffs)
        done = [run for run in runs if run.metrics is not None]
        if repeats > 1:
            from pitboss.cli.repeat_summary import summary

            shown["repeats"] = [{"run_id": run.id, "digest": run.digest, "metrics": run.metrics} for run in done]
            shown["summary"] = summary([run.metrics or {} for run in done])
        if json:
            screen.put_json(shown)
        elif not ended[-1].code:
            show_run(workspace, place, runs[0])
            if repeats > 1:
                show_summary(shown["summary"], [run.digest for run in done])
            show_journal_note(workspace)
        return ended[-1].code


def __getattr__(name: str) -> object:
    """Build `backtest` and `submit` on first access, because they need the options of every installed venue."""
    if name in ("backtest", "submit"):
        return command_for(venues(), name, queued=name == "submit")
    raise AttributeError(name)
