"""`pitboss sweep`, `pitboss arena` and `pitboss study …`: groups of related runs and their results."""

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from pitboss.cli.study_options import USUAL, Manner, Out
from pitboss.core.errors import UserError
from pitboss.terminal import screen
from pitboss.terminal.options import Json, RangeOptions, given
from pitboss.terminal.workspace_options import Here

app = App(name="study", help="List studies and arenas, show what came of them, stop them.")

Vary = Annotated[
    tuple[str, ...],
    Parameter(
        name=("--vary", "--grid"),
        negative=(),
        consume_multiple=False,
        help="A field of the skill and its values, as risk.max_leverage=1,2,5 or context.bars_lookback=50..200:50; also "
        "model=a,b, seed=0..4, range=2025-02-01/2025-03-01, and run.taker_bps=3,6 for settings of the run. May be repeated.",
    ),
]
StudyId = Annotated[str, Parameter(help="A study's id, or the start of it.")]


def sweep(
    skill: Path,
    /,
    *,
    asked: RangeOptions,
    vary: Vary = (),
    random: Annotated[int | None, given("--random", "Draw so many points instead of taking all of them.")] = None,
    search: Annotated[int | None, given("--search", "Let optuna choose so many points, one after the other.")] = None,
    walk_forward: Annotated[
        str,
        given(
            "--walk-forward", "Choose on one stretch, judge on the next, move on: as 30d/10d, or 30d/10d/1d with a gap."
        ),
    ] = "",
    anchored: Annotated[
        bool, given("--anchored", "Let every stretch to choose on begin at the start of the range.")
    ] = False,
    by: Annotated[
        str,
        Parameter(
            name=("--by", "--metric"),
            help="The metric that trials are chosen by. Default: sharpe, and total_return_pct on the predict venue, which also "
            "has brier, log_loss and others.",
        ),
    ] = "",
    repeats: Annotated[int, given("--repeats", "Runs of every point, with the seeds seed, seed+1, …")] = 1,
    model: Annotated[str, given("--model", "Who decides, instead of the skill's model.")] = "",
    manner: Manner = USUAL,
    place: Here,
) -> int:
    """Run a skill many times with varied settings, and report the best trial and how much may be luck.

    Every run is an ordinary one. Ctrl-C keeps finished work; the same command continues. Model replies are shared by
    all runs. Writes a page that opens offline.

    For example:

        pitboss sweep trend.yaml --from 2025-02-01 --to 2025-03-01 --vary risk.max_leverage=1,2,5
        pitboss sweep trend.yaml --from 2025-02-01 --to 2025-03-01 --vary context.bars_lookback=50..200 --random 20
        pitboss sweep trend.yaml --from 2025-01-01 --to 2025-04-01 --grid model=policy/momentum,policy/sma_cross --walk-forward 30d/10d

    Parameters
    ----------
    skill
        A .yaml or .json file.
    """
    from pitboss.cli.study_run import base_request, conduct
    from pitboss.jobs.study_plans import sweep_plan as make
    from pitboss.sim.study.axis import parse_axes

    request = base_request(place, skill, asked, model)
    made = make(
        request,
        parse_axes(vary),
        repeats=repeats,
        by=by,
        name=manner.name,
        random=random,
        search=search,
        walk=walk_forward,
        anchored=anchored,
    )
    return conduct(place, made, manner, asked.yes)


def arena(
    skill: Path,
    /,
    *,
    asked: RangeOptions,
    models: Annotated[str, given("--models", "Who takes part, with commas between.")],
    baselines: Annotated[
        str | None, given("--baselines", "Programs to hold them against, with commas between; empty for none.")
    ] = None,
    repeats: Annotated[int, given("--repeats", "Runs of every model.")] = 3,
    manner: Manner = USUAL,
    place: Here,
) -> int:
    """Run several models with the same skill over the same market, and report which of them differ significantly.

    Writes a page with tiers, paired differences, luck, cost and time of each. Ctrl-C keeps finished work; the same
    command continues.

    For example:

        pitboss arena trend.yaml --from 2025-02-01 --to 2025-03-01 --models groq/llama-3.3-70b-versatile,policy/momentum

    Parameters
    ----------
    skill
        A .yaml or .json file.
    """
    from pitboss.cli.study_run import base_request, conduct
    from pitboss.jobs.study_plans import arena_plan

    request = base_request(place, skill, asked)
    others = None if baselines is None else _listed(baselines)
    return conduct(place, arena_plan(request, _listed(models), others, repeats, manner.name), manner, asked.yes)


@app.command(name="list")
def list_(*, json: Json = False, place: Here) -> int:
    """List studies and arenas, newest first.

    For example:

        pitboss study list
    """
    from pitboss.jobs.study_status import study_list
    from pitboss.runs.stored import one_line

    with place.workspace() as workspace:
        found = study_list(workspace)
    if json:
        screen.put_json(found)
        return 0
    rows = [
        (
            one["study_id"],
            one["kind"],
            one_line(one["skill"]),
            str(one["runs"]),
            _counts(one["counts"]),
            "; ".join(one["vary"]),
        )
        for one in found
    ]
    screen.put_table(("study", "kind", "skill", "runs", "state", "varied"), rows, right=(3,), folds=(5,))
    return 0


@app.command
def show(study: StudyId, /, *, json: Json = False, place: Here) -> int:
    """Show the result of a study: its trials, best first, and how much of that may be luck.

    For example:

        pitboss study show 7c56
    """
    from pitboss.cli.study_result import show_study
    from pitboss.jobs.study_page import result_document
    from pitboss.store.studies import Studies

    with place.workspace() as workspace:
        document = result_document(workspace, Studies(workspace.database).find(study))
    if json:
        screen.put_json(document)
    else:
        show_study(document, place)
    return 0


@app.command
def runs(
    study: StudyId,
    /,
    *,
    status: Annotated[
        Literal["queued", "loading", "running", "computing_metrics", "complete", "error", "cancelled"] | None,
        given("--status", "Only runs in this state."),
    ] = None,
    model: Annotated[str | None, given("--model", "Only runs of this model.")] = None,
    where: Annotated[
        tuple[str, ...],
        Parameter(
            name="--where",
            negative=(),
            consume_multiple=False,
            help="Only runs at this value, as risk.max_leverage=2. May be repeated.",
        ),
    ] = (),
    json: Json = False,
    place: Here,
) -> int:
    """List the runs of a study.

    For example:

        pitboss study runs 7c56 --where risk.max_leverage=2 --status complete
    """
    from pitboss.jobs.study_status import runs_of
    from pitboss.report.measures import format_metric
    from pitboss.report.metric import metric_meaning
    from pitboss.runs.listing import short
    from pitboss.runs.venues import venue_of
    from pitboss.sim.study.axis import describe_point
    from pitboss.sim.study.choice import figure
    from pitboss.store.studies import Studies, full_runs

    with place.workspace() as workspace:
        chosen: Any = status
        study_id = Studies(workspace.database).find(study)
        asked = Studies(workspace.database).document(study_id)
        point = _point(where, [written.partition("=")[0] for written in asked["vary"]])
        if json:
            now = workspace.now()
            found = full_runs(workspace.runs, study_id, chosen, model, point)
            screen.put_json([{**short(run, now), "study": run.params["study"]} for run in found])
            return 0
        listed = runs_of(workspace, study_id, chosen, model, point)
    names, own = tuple(dict.fromkeys((asked["by"], "total_return_pct"))), venue_of(asked["skill"]).metrics()
    rows = [
        (
            run.id,
            run.status,
            run.model,
            describe_point(run.mark["point"]),
            str(run.mark["repeat"] + 1),
            *(format_metric(figure(run.metrics or {}, name), metric_meaning(name, own).form) for name in names),
        )
        for run in listed
    ]
    heads = ("run", "state", "model", "point", "repeat", *names)
    screen.put_table(heads, rows, right=tuple(range(5, len(heads))), folds=(3,))
    return 0


@app.command
def report(
    study: StudyId,
    /,
    *,
    out: Out = None,
    place: Here,
) -> int:
    """Write the page of a study or an arena again. Runs that have a report by now are linked.

    For example:

        pitboss study report 5c24 --out study.html
    """
    from pitboss.jobs.study_page import result_document, write_page
    from pitboss.store.studies import Studies

    with place.workspace() as workspace:
        study_id = Studies(workspace.database).find(study)
        screen.put(str(write_page(workspace, result_document(workspace, study_id), out)))
    return 0


@app.command
def cancel(study: StudyId, /, *, place: Here) -> int:
    """Cancel a study: runs that have not begun are removed from the queue, the others stop at their next tick.

    For example:

        pitboss study cancel 7c56
    """
    from pitboss.jobs.study import cancel_study
    from pitboss.store.studies import Studies

    with place.workspace() as workspace:
        study_id = Studies(workspace.database).find(study)
        count = cancel_study(workspace, study_id)
    screen.put(f"study {study_id}: {count} runs were asked to stop; the command that made it goes on with them")
    return 0


def _point(where: tuple[str, ...], fields: list[str]) -> dict[str, str]:
    """Parse `--where`. A field may be named by its last part."""
    point: dict[str, str] = {}
    for words in where:
        name, equals, value = words.partition("=")
        fitting = [field for field in fields if name in (field, field.rpartition(".")[2])]
        if not equals or len(fitting) != 1:
            varied = ", ".join(fields) or "nothing"
            raise UserError(f"--where {words}: not a varied field and its value", f"this study varies {varied}")
        point[fitting[0]] = value
    return point


def _listed(words: str) -> list[str]:
    return [one.strip() for one in words.split(",") if one.strip()]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {status}" for status, count in sorted(counts.items())) or "none"
