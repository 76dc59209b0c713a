"""`pitboss sweep`, `pitboss arena` and `pitboss study …`: groups of related runs and their results."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from pitboss.cli.run_status import Status
from pitboss.cli.study_options import NO_OPTIONS, Out, StudyOptions
from pitboss.cli.venue_options import VenueOptions, with_venue_options
from pitboss.core.errors import UserError
from pitboss.core.suggestion import suggestion
from pitboss.terminal import screen
from pitboss.terminal.options import Json, Name, OtherModel, RangeOptions, WholeNumber, option
from pitboss.terminal.workspace_options import Location

app = App(name="study", help="List studies and arenas, show their results, cancel them.")

Vary = Annotated[
    tuple[str, ...],
    Parameter(
        name=("--vary", "--grid"),
        negative=(),
        consume_multiple=False,
        help="A field of the skill and its values, such as risk.max_leverage=1,2,5 or context.bars_lookback=50..200:50; "
        "also model=a,b, seed=0..4, range=2025-02-01/2025-03-01, and run.taker_bps=3,6 for options of the run. May be "
        "repeated.",
    ),
]
StudyId = Annotated[str, Parameter(help="Id of a study, or its first characters.")]


def _sweep(
    skill: Path,
    /,
    *,
    options: RangeOptions,
    vary: Vary = (),
    random: Annotated[
        WholeNumber | None, option("--random", "Number of points to draw at random, instead of running all of them.")
    ] = None,
    search: Annotated[
        WholeNumber | None,
        option("--search", "Number of points that optuna chooses, each from the results of the earlier ones."),
    ] = None,
    walk_forward: Annotated[
        str,
        option(
            "--walk-forward",
            "Select on one period, test on the next, then move on: 30d/10d, or 30d/10d/1d with a gap between them.",
        ),
    ] = "",
    anchored: Annotated[
        bool, option("--anchored", "With --walk-forward: begin every selection period at the start of the range.")
    ] = False,
    by: Annotated[
        str,
        Parameter(
            name=("--by", "--metric"),
            help="Metric that ranks the trials. Default: sharpe; on the predict venue total_return_pct, with brier, log_loss "
            "and others to choose from; on the community venue bugs_found_pct.",
        ),
    ] = "",
    repeats: Annotated[WholeNumber, option("--repeats", "Runs per point, with the seeds seed, seed+1, …")] = 1,
    model: OtherModel = "",
    study_options: StudyOptions = NO_OPTIONS,
    venue_options: VenueOptions,
    location: Location,
) -> int:
    """Run a skill many times with varied settings, and report the best trial and how much of its result may be luck.

    Every run is stored like a single backtest, and all runs share the cached replies of models. Ctrl-C keeps finished
    work; the same command continues. Writes an HTML report.

    For example:

        pitboss sweep trend-thesis.yaml --from 2025-02-01 --to 2025-03-01 --vary risk.max_leverage=1,2,5
        pitboss sweep trend-thesis.yaml --from 2025-02-01 --to 2025-03-01 --vary context.bars_lookback=50..200 --random 20
        pitboss sweep trend-thesis.yaml --from 2025-01-01 --to 2025-04-01 --vary model=policy/momentum,policy/sma_cross --walk-forward 30d/10d
        pitboss sweep btc-brain.yaml --from 2026-02-22 --to 2026-02-24 --vary risk.min_edge=0.02,0.05 --prices btc_1m.parquet --model standin/analyst

    Parameters
    ----------
    skill
        A .yaml or .json file.
    """
    from pitboss.cli.study_run import base_request, run_study
    from pitboss.jobs.study_plans import sweep_plan
    from pitboss.sim.study.axis import parse_axes

    request = base_request(location, skill, options, venue_options, model)
    plan = sweep_plan(
        request,
        parse_axes(vary),
        repeats=repeats,
        by=by,
        name=study_options.name,
        random=random,
        search=search,
        walk=walk_forward,
        anchored=anchored,
    )
    return run_study(location, plan, study_options, options.yes)


def _arena(
    skill: Path,
    /,
    *,
    options: RangeOptions,
    models: Annotated[Name, option("--models", "Models to compare, separated by commas.")],
    baselines: Annotated[
        str | None,
        option(
            "--baselines", "Policies to compare them with, separated by commas; empty for none. Default: the venue's."
        ),
    ] = None,
    repeats: Annotated[WholeNumber, option("--repeats", "Runs per model.")] = 3,
    study_options: StudyOptions = NO_OPTIONS,
    venue_options: VenueOptions,
    location: Location,
) -> int:
    """Run several models with the same skill over the same market, and report which of them differ significantly.

    Writes an HTML report with tiers, paired differences, luck, cost and time of each model. Ctrl-C keeps finished work;
    the same command continues.

    For example:

        pitboss arena trend-thesis.yaml --from 2025-02-01 --to 2025-03-01 --models groq/llama-3.3-70b-versatile,policy/momentum

    Parameters
    ----------
    skill
        A .yaml or .json file.
    """
    from pitboss.cli.study_run import base_request, run_study
    from pitboss.jobs.study_plans import arena_plan

    request = base_request(location, skill, options, venue_options)
    baseline_models = None if baselines is None else _split_list(baselines)
    plan = arena_plan(request, _split_list(models), baseline_models, repeats, study_options.name)
    return run_study(location, plan, study_options, options.yes)


@app.command(name="list")
def list_(*, json: Json = False, location: Location) -> int:
    """List studies and arenas, newest first.

    For example:

        pitboss study list
    """
    from pitboss.jobs.study_status import study_list
    from pitboss.runs.stored import one_line

    with location.existing_workspace() as workspace:
        studies = study_list(workspace)
    if json:
        screen.put_json(studies)
        return 0
    rows = [
        (
            study["study_id"],
            study["kind"],
            one_line(study["skill"]),
            str(study["runs"]),
            _counts(study["counts"]),
            "; ".join(study["vary"]),
        )
        for study in studies
    ]
    screen.put_table(("study", "kind", "skill", "runs", "status", "varied"), rows, right=(3,), folds=(2, 4, 5))
    return 0


@app.command
def show(study: StudyId, /, *, json: Json = False, location: Location) -> int:
    """Show the result of a study: its trials, best first, and how much of the result may be luck.

    For example:

        pitboss study show 7c56
    """
    from pitboss.cli.study_result import show_study
    from pitboss.jobs.study_page import result_document

    with location.existing_workspace() as workspace:
        document = result_document(workspace, workspace.studies.find(study))
    if json:
        screen.put_json(document)
    else:
        show_study(document, location)
    return 0


@app.command
def runs(
    study: StudyId,
    /,
    *,
    status: Annotated[Status | None, option("--status", "Only runs with this status.")] = None,
    model: Annotated[str | None, option("--model", "Only runs of this model.")] = None,
    conditions: Annotated[
        tuple[str, ...],
        Parameter(
            name="--where",
            negative=(),
            consume_multiple=False,
            help="Only runs with this value of a varied field, such as risk.max_leverage=2. May be repeated.",
        ),
    ] = (),
    json: Json = False,
    location: Location,
) -> int:
    """List the runs of a study.

    For example:

        pitboss study runs 7c56 --where risk.max_leverage=2 --status complete
    """
    from pitboss.jobs.study_status import runs_of
    from pitboss.report.measures import run_value
    from pitboss.report.metric import metric_meaning
    from pitboss.runs.listing import short
    from pitboss.runs.venues import venue_of
    from pitboss.sim.study.axis import describe_point
    from pitboss.store.studies import full_runs

    with location.existing_workspace() as workspace:
        study_id = workspace.studies.find(study)
        study_document = workspace.studies.document(study_id)
        point = _point(conditions, [axis.partition("=")[0] for axis in study_document["vary"]])
        if json:
            now = workspace.now()
            stored = full_runs(workspace.runs, study_id, status, model, point)
            screen.put_json([{**short(run, now), "study": run.params["study"]} for run in stored])
            return 0
        study_runs = runs_of(workspace, study_id, status, model, point)
    venue = venue_of(study_document["skill"])
    names = tuple(dict.fromkeys((study_document["by"], *(("total_return_pct",) if venue.has_account else ()))))
    venue_metrics = venue.metrics()
    rows = [
        (
            run.id,
            run.status,
            run.model,
            describe_point(run.mark["point"]),
            str(run.mark["repeat"] + 1),
            *(run_value(run.metrics, name, metric_meaning(name, venue_metrics).form) for name in names),
        )
        for run in study_runs
    ]
    labels = (metric_meaning(name, venue_metrics).label.lower() for name in names)
    headings = ("run", "status", "model", "point", "repeat", *labels)
    screen.put_table(headings, rows, right=tuple(range(5, len(headings))), folds=(2, 3), drop=(4, 2))
    return 0


@app.command
def report(
    study: StudyId,
    /,
    *,
    out: Out = None,
    location: Location,
) -> int:
    """Write the HTML report of a study or an arena again, with links to the reports that its runs have by now.

    For example:

        pitboss study report 5c24 --out study.html
    """
    from pitboss.jobs.study_page import result_document, write_page

    with location.existing_workspace() as workspace:
        study_id = workspace.studies.find(study)
        screen.put(str(write_page(workspace, result_document(workspace, study_id), out)))
    return 0


@app.command
def cancel(study: StudyId, /, *, location: Location) -> int:
    """Cancel a study: queued runs are removed from the queue, active runs stop at their next tick.

    For example:

        pitboss study cancel 7c56
    """
    from pitboss.jobs.study import cancel_study
    from pitboss.report.figures import plural

    with location.existing_workspace() as workspace:
        study_id = workspace.studies.find(study)
        count = cancel_study(workspace, study_id)
    screen.put(
        f"study {study_id}: {plural(count, 'run')} cancelled or asked to stop; the command that started it continues them"
    )
    return 0


def _point(conditions: tuple[str, ...], fields: list[str]) -> dict[str, str]:
    """Parse `--where`. A field may be given by its last part alone."""
    point: dict[str, str] = {}
    for condition in conditions:
        name, equals, value = condition.partition("=")
        matches = [field for field in fields if name in (field, field.rpartition(".")[2])]
        if not equals or len(matches) != 1:
            hint = suggestion(name if equals else "", fields, "this study varies") or "this study varies nothing"
            raise UserError(f"--where {condition}: not FIELD=VALUE of a varied field", hint)
        point[matches[0]] = value
    return point


def _split_list(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {status}" for status, count in sorted(counts.items())) or "none"


def __getattr__(name: str) -> object:
    """Build `sweep` and `arena` on first access, because they need the options of every installed venue."""
    if name in ("sweep", "arena"):
        from pitboss.runs.venues import venues

        return with_venue_options(_sweep if name == "sweep" else _arena, venues())
    raise AttributeError(name)
