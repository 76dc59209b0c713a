"""`pitboss sweep`, `pitboss arena`, `pitboss study …`: many runs that belong together, and what they come to."""

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from pitboss.cli import screen
from pitboss.cli.options import Amount, Json, Moment, Override, given
from pitboss.cli.place import Here
from pitboss.core.errors import UserError

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
Executor = Annotated[
    Literal["auto", "here", "local", "ray"],
    given("--executor", "Who does the runs: this process, workers on this machine, workers on Ray, or what fits."),
]
From = Annotated[Moment, given("--from", "First instant of the range, as 2025-06-01 or ISO time (UTC).")]
To = Annotated[Moment, given("--to", "End of the range; the last tick lies before it.")]
Equity = Annotated[Amount | None, given("--equity", "Money to start with. Default: that of the venue's backtest.")]
Venue = Annotated[str, given("--data-venue", "Whose data to use. Default: hyperliquid, or the only one there is.")]
Gap = Annotated[int | None, given("--max-gap", "Missing bars in a row to tolerate. Default: the setting.")]
Cost = Annotated[Amount | None, given("--max-cost-usd", "Stop a run when its model has cost this much.")]
PriceIn = Annotated[Amount | None, given("--price-in", "USD for a million tokens the model reads.")]
PriceOut = Annotated[Amount | None, given("--price-out", "USD for a million tokens the model writes.")]
Yes = Annotated[
    bool, given("--yes", "Spend more than $5 without being asked, and ask models whose price nobody knows.")
]
Ahead = Annotated[str, given("--speculate", "Ticks to ask ahead: a number, auto, or 0 for none.")]
AtOnce = Annotated[int, given("--concurrency", "Runs at once in this process.")]
Name = Annotated[str, given("--name", "A name that makes it another study, though all else is the same.")]
Only = Annotated[bool, given("--estimate", "Say what it would cost, and do nothing.")]
Pilot = Annotated[bool, given("--pilot", "Ask five ticks of each model for real first, and estimate from those.")]
StudyId = Annotated[str, Parameter(help="A study's id, or the start of it.")]


def sweep(
    skill: Path,
    /,
    *,
    from_: From,
    to: To,
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
    by: Annotated[str, given("--by", "The metric that trials are chosen by.")] = "sharpe",
    repeats: Annotated[int, given("--repeats", "Runs of every point, with the seeds seed, seed+1, …")] = 1,
    model: Annotated[str, given("--model", "Who decides, instead of the skill's model.")] = "",
    equity: Equity = None,
    data_venue: Venue = "",
    seed: Annotated[int, given("--seed", "Seed of whatever is random.")] = 0,
    set_: Override = (),
    max_gap: Gap = None,
    max_cost_usd: Cost = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    yes: Yes = False,
    speculate: Ahead = "auto",
    executor: Executor = "auto",
    concurrency: AtOnce = 4,
    name: Name = "",
    estimate: Only = False,
    pilot: Pilot = False,
    json: Json = False,
    place: Here,
) -> int:
    """Run a skill many times with something varied, and say which was best and how much of that is luck.

    Every run is an ordinary one. Ctrl-C keeps what is done; the same command goes on. Answers of models are shared by all.

    For example:

        pitboss sweep trend.yaml --from 2025-02-01 --to 2025-03-01 --vary risk.max_leverage=1,2,5
        pitboss sweep trend.yaml --from 2025-02-01 --to 2025-03-01 --vary context.bars_lookback=50..200 --random 20
        pitboss sweep trend.yaml --from 2025-01-01 --to 2025-04-01 --grid model=policy/momentum,policy/sma_cross --walk-forward 30d/10d

    Parameters
    ----------
    skill
        A .yaml or .json file.
    """
    from pitboss.cli.conducting import Manner, base_request, conduct
    from pitboss.jobs.make import sweep as make
    from pitboss.sim.study.axis import parse_axes

    request = base_request(
        place,
        skill,
        set_,
        from_,
        to,
        model,
        equity,
        data_venue,
        seed,
        max_gap,
        max_cost_usd,
        price_in,
        price_out,
        yes,
        speculate,
    )
    made = make(
        request,
        parse_axes(vary),
        repeats=repeats,
        by=by,
        name=name,
        random=random,
        search=search,
        walk=walk_forward,
        anchored=anchored,
    )
    return conduct(place, made, Manner(yes, executor, concurrency, estimate, pilot, json))


def arena(
    skill: Path,
    /,
    *,
    from_: From,
    to: To,
    models: Annotated[str, given("--models", "Who takes part, with commas between.")],
    baselines: Annotated[
        str | None, given("--baselines", "Programs to hold them against, with commas between; empty for none.")
    ] = None,
    repeats: Annotated[int, given("--repeats", "Runs of every model.")] = 3,
    out: Annotated[Path | None, given("--out", "File for the page. Default: under reports in the workspace.")] = None,
    equity: Equity = None,
    data_venue: Venue = "",
    seed: Annotated[int, given("--seed", "Seed of whatever is random.")] = 0,
    set_: Override = (),
    max_gap: Gap = None,
    max_cost_usd: Cost = None,
    price_in: PriceIn = None,
    price_out: PriceOut = None,
    yes: Yes = False,
    speculate: Ahead = "auto",
    executor: Executor = "auto",
    concurrency: AtOnce = 4,
    name: Name = "",
    estimate: Only = False,
    pilot: Pilot = False,
    json: Json = False,
    place: Here,
) -> int:
    """Let several models trade the same skill over the same market, and say who can be told from whom.

    Writes a page with tiers, paired differences, luck, cost and time of each. Ctrl-C keeps what is done; the same command goes on.

    For example:

        pitboss arena trend.yaml --from 2025-02-01 --to 2025-03-01 --models groq/llama-3.3-70b-versatile,policy/momentum

    Parameters
    ----------
    skill
        A .yaml or .json file.
    """
    from pitboss.cli.conducting import Manner, base_request, conduct
    from pitboss.jobs.make import contest

    request = base_request(
        place,
        skill,
        set_,
        from_,
        to,
        "",
        equity,
        data_venue,
        seed,
        max_gap,
        max_cost_usd,
        price_in,
        price_out,
        yes,
        speculate,
    )
    made = contest(request, _listed(models), None if baselines is None else _listed(baselines), repeats, name)
    return conduct(place, made, Manner(yes, executor, concurrency, estimate, pilot, json, out))


@app.command(name="list")
def list_(*, json: Json = False, place: Here) -> int:
    """List studies and arenas, the newest first.

    For example:

        pitboss study list
    """
    from pitboss.cli.results import one_line
    from pitboss.jobs.standing import studies

    with place.workspace() as workspace:
        found = studies(workspace)
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
    """Show what came of a study: its trials, the best first, and how much of that is luck.

    For example:

        pitboss study show 7c56
    """
    from pitboss.cli.conducting import document_of
    from pitboss.cli.verdicts import show_study
    from pitboss.store.studies import Studies

    with place.workspace() as workspace:
        document = document_of(workspace, Studies(workspace.database).find(study))
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
    status: Annotated[str | None, given("--status", "Only runs in this state, such as error.")] = None,
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
    from pitboss.bootstrap.listing import short
    from pitboss.jobs.plan import words_of
    from pitboss.jobs.standing import runs_of
    from pitboss.store.studies import Studies

    point = {one.partition("=")[0]: one.partition("=")[2] for one in where}
    with place.workspace() as workspace:
        chosen: Any = status
        found = runs_of(workspace, Studies(workspace.database).find(study), chosen, model, point)
        if json:
            now = workspace.now()
            screen.put_json([{**short(run, now), "study": run.params["study"]} for run in found])
            return 0
    rows = [
        (
            run.id,
            run.status,
            run.model,
            words_of(run.params["study"]["point"]),
            str(run.params["study"]["repeat"] + 1),
            _figure((run.metrics or {}).get("total_return_pct")),
            _figure((run.metrics or {}).get("sharpe")),
        )
        for run in found
    ]
    screen.put_table(("run", "state", "model", "point", "repeat", "return %", "Sharpe"), rows, right=(5, 6), folds=(3,))
    return 0


@app.command
def report(
    study: StudyId,
    /,
    *,
    out: Annotated[Path | None, given("--out", "File for the page. Default: under reports in the workspace.")] = None,
    place: Here,
) -> int:
    """Write the page of an arena again.

    For example:

        pitboss study report 5c24 --out arena.html
    """
    from pitboss.cli.conducting import document_of, write_page
    from pitboss.store.studies import Studies

    with place.workspace() as workspace:
        study_id = Studies(workspace.database).find(study)
        document = document_of(workspace, study_id)
        if "entries" not in document:
            raise UserError(
                f"study {study_id} is no arena: it has no page", f"`pitboss study show {study_id}` shows it"
            )
        screen.put(str(write_page(workspace, document, out)))
    return 0


@app.command
def cancel(study: StudyId, /, *, place: Here) -> int:
    """Stop a study: runs that nobody has begun are taken out of the queue, the others stop at their next tick.

    For example:

        pitboss study cancel 7c56
    """
    from pitboss.jobs.study import call_off
    from pitboss.store.studies import Studies

    with place.workspace() as workspace:
        study_id = Studies(workspace.database).find(study)
        count = call_off(workspace, study_id)
    screen.put(f"study {study_id}: {count} runs were asked to stop; the command that made it goes on with them")
    return 0


def _listed(words: str) -> list[str]:
    return [one.strip() for one in words.split(",") if one.strip()]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {status}" for status, count in sorted(counts.items())) or "none"


def _figure(value: Any) -> str:
    return "" if value is None else f"{value:,.2f}"
