"""Print the result of a study or an arena: trials, tiers, overfitting statistics, cost."""

from collections.abc import Mapping
from typing import Any

from pitboss.cli.consent import estimate_line
from pitboss.jobs.estimate import Estimate
from pitboss.report import figures
from pitboss.report.arena.leaderboard import rank_range
from pitboss.report.measures import format_metric
from pitboss.report.metric import meanings_of, metric_meaning
from pitboss.report.study.summary import NOT_TESTED, no_gain
from pitboss.report.study.view import StudyView, period
from pitboss.sim.study.axis import describe_point
from pitboss.terminal import screen
from pitboss.terminal.workspace_options import WorkspaceOptions

Plain = Mapping[str, Any]
MAX_TRIALS = 20


def show_estimate(cost: Estimate) -> None:
    """Print an estimate with its assumptions."""
    screen.put(estimate_line(cost), "bold")
    for line in cost.basis:
        screen.put(f"  {line}")


def show_study(document: Plain, location: WorkspaceOptions) -> None:
    """Print the result of a study of any kind."""
    if "entries" in document:
        _show_arena(document) if document["has_account"] else _show_judged(document)
    else:
        _show_trials(document)
        if "forward" in document and document["forward"]["windows"]:
            _show_forward(StudyView(document))
        if document["counts"].get("complete") and not any(trial["score"] is not None for trial in document["trials"]):
            screen.put()
            screen.put(
                f"no run has the metric {document['by']}, so the trials are not ranked; use --by with another", "yellow"
            )
        if "luck" in document:
            _show_luck(document["luck"])
    screen.put()
    screen.put(f"study   {document['study_id']}")
    if document.get("report"):
        screen.put(f"report  {document['report']}")
    command = f"study runs {document['study_id']}"
    screen.put(f"next:   {location.command_line(command)}")


def _show_trials(document: Plain) -> None:
    trials = [trial for trial in document["trials"] if trial["role"] != "in"] or document["trials"]
    view, by = StudyView(document), document["by"]
    names = [name for name in trials[0]["metrics"] if name != by] if trials else []
    rows = [
        (
            str(trial["trial"]),
            describe_point(trial["point"]),
            *(view.format_trial(trial, name) for name in (by, *names)),
            _run_count(trial["runs"]),
        )
        for trial in trials[:MAX_TRIALS]
    ]
    screen.put(
        f"{document['skill']} · {document['kind']} · {figures.plural(document['runs'], 'run')} · {period(document['from'], document['to'])}",
        "bold",
    )
    labels = [view.metric_meaning(name).label.lower() for name in (by, *names)]
    headings = ("trial", "point", *labels, "runs")
    screen.put_table(headings, rows, right=tuple(range(2, 3 + len(names))), folds=(1,))
    if len(trials) > MAX_TRIALS:
        screen.put(f"… and {len(trials) - MAX_TRIALS} more")
    screen.put(
        f"cost ${document['cost_usd']:.4f}, saved by cached replies ${document['saved_usd']:.4f}, "
        f"{document['wall_s']:.1f} s of run time"
    )


def _show_luck(luck: Plain) -> None:
    screen.put()
    deflated, overfitting = luck["deflated_sharpe"], luck["overfitting"]
    of_skill = luck["deflated_sharpe_of_skill"]
    if loss := no_gain(luck["best_sharpe"]):
        screen.put(loss)
        deflated = of_skill = None
    if deflated is not None:
        screen.put(
            f"deflated Sharpe of the best: {deflated:.1%} (the probability that its true Sharpe is above the one that the best "
            f"of {figures.plural(luck['runs'], 'run')} has by luck)"
        )
    if of_skill is not None and luck["runs_of_skill"] > luck["runs"]:
        screen.put(f"  over all {luck['runs_of_skill']} runs of this skill that are stored here: {of_skill:.1%}")
    if overfitting is None:
        screen.put("probability of overfitting: unknown (it needs two trials and twelve days)")
    else:
        screen.put(
            f"probability of overfitting: {overfitting['probability']:.1%} of {figures.plural(overfitting['splits'], 'split')} (Sharpe "
            f"{overfitting['inside']:.2f} in sample, {overfitting['outside']:.2f} out of sample)"
        )


def _show_forward(view: StudyView) -> None:
    forward = view.forward
    screen.put()
    rows = [
        (
            str(window["window"] + 1),
            period(window["from"], window["to"]),
            describe_point(window["point"]),
            view.format_window(window, outside=False),
            view.format_window(window, outside=True),
            figures.percent(window["total_return_pct"], signed=True),
        )
        for window in forward["windows"]
    ]
    headings = ("window", "tested on", "selected point", f"{view.metric.label} in sample", "out of sample", "return")
    screen.put_table(headings, rows, right=(3, 4, 5), folds=(2,), title="Walk-forward")
    interval = _interval_text(forward["total_return_ci"])
    screen.put(
        f"all test periods, {figures.plural(forward['days'], 'day')}: "
        f"{figures.percent(forward['total_return_pct'], signed=True)}{interval and f' (95 %: {interval})'}, "
        f"Sharpe {figures.sharpe(forward['sharpe'], figures.has_few_days(forward))}"
    )


def _show_arena(arena: Plain) -> None:
    screen.put(
        f"{arena['skill']} · arena · {figures.plural(arena['runs'], 'run')} · {period(arena['from_at'], arena['to_at'])}",
        "bold",
    )
    for warning in arena["warnings"]:
        screen.put(f"note: {warning}", "yellow")
    forecasts = any(entry["brier"] is not None for entry in arena["entries"])
    rows = [
        (
            "–" if entry["tier"] is None else str(entry["tier"]),
            entry["model"],
            "" if entry["rank"] is None else f"{entry['rank'][0]}–{entry['rank'][1]}",
            figures.percent(entry["total_return_pct"], signed=True),
            _interval_text(entry["total_return_ci"]),
            *((figures.plain(entry["brier"], 4),) if forecasts else ()),
            figures.sharpe(entry["sharpe"], figures.has_few_days(entry)),
            figures.NONE if entry["deflated_sharpe"] is None else f"{entry['deflated_sharpe']:.0%}",
            str(entry["repeats"]),
            figures.usd(entry["cost_per_run_usd"]),
            figures.NONE if entry["latency_ms"] is None else f"{entry['latency_ms']:,.0f} ms",
        )
        for entry in arena["entries"]
    ]
    brier = ("Brier",) if forecasts else ()
    headings = (
        "tier",
        "entrant",
        "ranks",
        "return",
        "95 %",
        *brier,
        "Sharpe",
        "deflated",
        "runs",
        "cost per run",
        "latency",
    )
    screen.put_table(headings, rows, right=(3, *range(5, len(headings))), folds=(1, 4))
    distinct = sum(pair["told_apart"] for pair in arena["pairs"])
    screen.put(
        f"{distinct} of {figures.plural(len(arena['pairs']), 'pair')} differ significantly. {arena['correction']}"
    )
    if arena["overfitting"] is not None:
        overfitting = arena["overfitting"]
        screen.put(
            f"probability of overfitting: {overfitting['probability']:.1%} of {figures.plural(overfitting['splits'], 'split')}"
        )


def _show_judged(arena: Plain) -> None:
    """An arena without accounts: entrants by the metric of their venue."""
    screen.put(
        f"{arena['skill']} · arena · {figures.plural(arena['runs'], 'run')} · {period(arena['from_at'], arena['to_at'])}",
        "bold",
    )
    for warning in arena["warnings"]:
        screen.put(f"note: {warning}", "yellow")
    meanings = meanings_of(arena)
    names = list(arena["entries"][0]["metrics"]) if arena["entries"] else []
    rows = [
        (
            rank_range(entry["rank"]),
            entry["model"],
            *(format_metric(entry["metrics"][name], metric_meaning(name, meanings).form) for name in names),
            str(entry["repeats"]),
            figures.usd(entry["cost_per_run_usd"]),
            figures.NONE if entry["latency_ms"] is None else f"{entry['latency_ms']:,.0f} ms",
        )
        for entry in arena["entries"]
    ]
    labels = [metric_meaning(name, meanings).label.lower() for name in names]
    headings = ("rank", "entrant", *labels, "runs", "cost per run", "latency")
    screen.put_table(headings, rows, right=tuple(range(2, len(headings))), folds=(1,))
    screen.put(f"Ranked by {metric_meaning(arena['by'], meanings).label.lower()}. {NOT_TESTED}")


def _interval_text(value: Any) -> str:
    if value is None:
        return ""
    return f"{figures.percent(value[0], signed=True)} to {figures.percent(value[1], signed=True)}"


def _run_count(runs: list[Plain]) -> str:
    incomplete = sum(run["status"] != "complete" for run in runs)
    return str(len(runs)) if not incomplete else f"{len(runs)}, {incomplete} without a result"
