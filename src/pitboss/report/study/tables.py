"""The tables of a study: varied fields, trials, costs, and runs without a result."""

from collections.abc import Sequence

from pitboss.report import figures
from pitboss.report.markup import Html, join, tag, with_code
from pitboss.report.runs import failure_section, run_link
from pitboss.report.source import Plain, number
from pitboss.report.study.view import StudyView, period, sorted_values
from pitboss.report.table import LEFT, RIGHT, facts, table
from pitboss.sim.study.axis import describe_point

MOST_TRIALS = 500
MOST_VALUES = 12
MOST_RUNS = 6
"""Runs of a trial listed in its row."""


def varied_section(view: StudyView) -> Html:
    """The varied fields with their values, and how points were chosen."""
    rows = [
        (tag("code", name), *_values_tried(view, name, values))
        for name, _, values in (axis.partition("=") for axis in view.plain["vary"])
    ]
    head = [("Field", LEFT), ("Values tried", LEFT), ("Count", RIGHT)]
    body = table("Varied fields", head, rows, style="varied", stacks=True) if rows else None
    nothing = None if rows else tag("p", "No field was varied: the skill ran unchanged.", class_="note")
    return join([tag("p", _method(view), class_="note"), body or nothing or Html()])


def _values_tried(view: StudyView, name: str, spec: str) -> tuple[Html, str]:
    values = sorted_values([trial["point"][name] for trial in view.trials if name in trial["point"]])
    listed = ", ".join(values[:MOST_VALUES]) + (", …" if len(values) > MOST_VALUES else "")
    span = tag("small", f"requested: {spec}") if ".." in spec else None
    return tag("span", listed, span, class_="stack"), figures.count(len(values))


def _method(view: StudyView) -> str:
    method, kind = view.plain["method"], view.plain["kind"]
    count = figures.plural(len({tuple(trial["point"].items()) for trial in view.trials}), "point")
    if kind == "search":
        points = f"{count}, each chosen from the results of earlier ones (optuna, seed {method.get('seed', 0)})."
    elif "random" in method:
        points = f"{count}, drawn at random (seed {method.get('seed', 0)})."
    else:
        points = f"{count}: every combination."
    repeats = view.plain["repeats"]
    again = f" Each ran {repeats} times with another seed, unless it ignores the seed." if repeats > 1 else ""
    if kind != "walk":
        return points + again
    gap = f", omits {figures.span(method['gap_ms'])}," if method.get("gap_ms") else ""
    begin = "Every in-sample period begins at the start of the range and grows. " if method.get("anchored") else ""
    return (
        f"{points}{again} Each window chooses the best of them on {figures.span(method['train_ms'])}{gap} and tests the choice on "
        f"the {figures.span(method['test_ms'])} that follow. {begin}"
    )


def trial_section(view: StudyView) -> Html:
    """Every trial, the best first, with links to existing reports."""
    metrics = [
        name
        for name in (view.trials[0]["metrics"] if view.trials else ())
        if name not in (view.by, "total_ai_cost_usd")
    ]
    is_walk_forward = view.is_walk_forward
    rows: list[tuple[object, ...]] = []
    for index, trial in enumerate(view.trials[:MOST_TRIALS]):
        role = {"in": "in sample", "out": "out of sample"}.get(trial["role"], "")
        window = (f"{trial['window'] + 1}, {role}",) if is_walk_forward else ()
        rows.append(
            (
                figures.count(index + 1) if trial["score"] is not None else figures.NONE,
                describe_point(trial["point"]),
                *window,
                tag("b", view.format_trial(trial)),
                *[view.format_trial(trial, name) for name in metrics],
                figures.usd(trial["cost_usd"]),
                _runs(trial["runs"]),
            )
        )
    head = [
        ("#", LEFT),
        ("Point", LEFT),
        *([("Window", LEFT)] if is_walk_forward else []),
        (view.metric.label, RIGHT),
        *[(view.metric_meaning(name).label, RIGHT) for name in metrics],
        ("Cost", RIGHT),
        ("Runs", LEFT),
    ]
    omitted = len(view.trials) - MOST_TRIALS
    more = tag(
        "p",
        with_code(f"… and {omitted:,} more; `pitboss study show {view.plain['study_id']} --json` has all."),
        class_="note after",
    )
    note = (
        f"Sorted by {view.label}, {view.direction}; a trial counts as the mean of its runs. Runs with a report are "
        "links; `pitboss report RUN` writes a report."
    )
    trial_table = table("Trials", head, rows, style="trials", tall=len(rows) > 25, stacks=True)
    return join([tag("p", with_code(note), class_="note"), trial_table, more if omitted > 0 else Html()])


def _runs(runs: Sequence[Plain]) -> Html:
    """The runs of a trial by their ids, linked to their pages."""
    links: list[object] = []
    for run in runs[:MOST_RUNS]:
        links += [run_link(run), " "]
    if len(runs) > MOST_RUNS:
        links.append(f"+{len(runs) - MOST_RUNS}")
    return tag("span", *links, class_="ids")


def cost_section(view: StudyView) -> Html:
    """Cost and time by deciding model."""
    plain = view.plain
    models: dict[str, list[Plain]] = {}
    for trial in view.trials:
        models.setdefault(trial["model"], []).append(trial)
    rows = [
        (
            model,
            figures.count(len(trials)),
            figures.count(sum(len(trial["runs"]) for trial in trials)),
            _sum([trial["cost_usd"] for trial in trials]),
        )
        for model, trials in models.items()
    ]
    head = [("Model", LEFT), ("Trials", RIGHT), ("Runs", RIGHT), ("Paid", RIGHT)]
    totals = [
        ("Paid for this study", figures.usd(plain["cost_usd"])),
        ("Saved by cached answers", figures.usd(plain["saved_usd"])),
        ("Computing time", _time(plain["wall_s"])),
    ]
    if plain["unpriced"]:
        totals.append(("Runs of unknown price", figures.count(plain["unpriced"])))
    return join([facts(totals, "facts wide"), table("Cost by model", head, rows, style="after-facts")])


def _sum(values: Sequence[object]) -> str:
    numbers = [value for cost in values if (value := number(cost)) is not None]
    return figures.usd(sum(numbers)) if len(numbers) == len(values) else "unknown"


def _time(seconds: object) -> str:
    duration_s = number(seconds) or 0.0
    return f"{duration_s:,.1f} s" if duration_s < 120 else figures.span(duration_s * 1_000)


def missing_section(view: StudyView) -> Html:
    """Runs without a result and their causes."""
    failures = [
        (run, (describe_point(trial["point"]), period(trial["from"], trial["to"]))) for trial, run in view.failures
    ]
    return failure_section(failures, ("Point", "Period"))
