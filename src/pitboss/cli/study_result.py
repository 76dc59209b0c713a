"""Print the result of a study or an arena: trials, tiers, overfitting statistics, cost."""

from collections.abc import Mapping
from typing import Any

from pitboss.jobs.estimate import Estimate
from pitboss.report import figures
from pitboss.report.meaning import Metric
from pitboss.report.measures import format_metric
from pitboss.report.metric import meanings_of, metric_meaning
from pitboss.report.study.view import period
from pitboss.sim.study.axis import describe_point
from pitboss.terminal import screen
from pitboss.terminal.workspace_options import WorkspaceOptions

Plain = Mapping[str, Any]
MOST_TRIALS = 20


def show_estimate(found: Estimate) -> None:
    """Print an estimate with its assumptions."""
    screen.put(estimate_line(found), "bold")
    for words in found.basis:
        screen.put(f"  {words}")


def estimate_line(found: Estimate) -> str:
    """Format an estimate in one line."""
    if found.usd is None:
        return "the cost is unknown"
    if not found.hi:
        return "it costs nothing"
    return f"about ${found.usd:.2f} (from ${found.lo:.2f} to ${found.hi:.2f}), {found.calls:,} calls"


def show_study(document: Plain, place: WorkspaceOptions) -> None:
    """Print the result of a study of any kind."""
    if "entries" in document:
        _show_arena(document)
    else:
        _show_trials(document)
        if "forward" in document and document["forward"]["windows"]:
            _show_forward(document["forward"], metric_meaning(document["by"], meanings_of(document)))
        if document["counts"].get("complete") and not any(one["score"] is not None for one in document["trials"]):
            screen.put()
            screen.put(
                f"no run has a {document['by']}: trials cannot be compared by it; choose another metric with --by",
                "yellow",
            )
        if "luck" in document:
            _show_luck(document["luck"])
    screen.put()
    screen.put(f"study   {document['study_id']}")
    if document.get("report"):
        screen.put(f"report  {document['report']}")
    command = f"study runs {document['study_id']}"
    screen.put(f"next:   {place.typed(command)}")


def _show_trials(document: Plain) -> None:
    chosen = [one for one in document["trials"] if one["role"] != "in"] or document["trials"]
    by, own = document["by"], meanings_of(document)
    names = [name for name in chosen[0]["metrics"] if name != by] if chosen else []
    rows = [
        (
            str(one["trial"]),
            describe_point(one["point"]),
            *(format_metric(one["metrics"].get(name), metric_meaning(name, own).form) for name in (by, *names)),
            _states(one["runs"]),
        )
        for one in chosen[:MOST_TRIALS]
    ]
    screen.put(
        f"{document['skill']} · {document['kind']} · {document['runs']} runs · {period(document['from'], document['to'])}",
        "bold",
    )
    heads = ("trial", "point", by, *names, "runs")
    screen.put_table(heads, rows, right=tuple(range(2, 3 + len(names))), folds=(1,))
    if len(chosen) > MOST_TRIALS:
        screen.put(f"… and {len(chosen) - MOST_TRIALS} more")
    screen.put(
        f"cost ${document['cost_usd']:.4f}, saved by cached replies ${document['saved_usd']:.4f}, {document['wall_s']:.1f} s of work"
    )


def _show_luck(luck: Plain) -> None:
    screen.put()
    chance, over = luck["deflated_sharpe"], luck["overfitting"]
    if chance is not None:
        screen.put(
            f"deflated Sharpe of the best: {chance:.1%} (probability that its true Sharpe exceeds the expected best of {luck['runs']} runs without skill)"
        )
    whole = luck["deflated_sharpe_of_skill"]
    if whole is not None and luck["runs_of_skill"] > luck["runs"]:
        screen.put(f"  over all {luck['runs_of_skill']} runs of this skill that are stored here: {whole:.1%}")
    if over is None:
        screen.put("probability of overfitting: unknown (it needs two trials and twelve days)")
    else:
        screen.put(
            f"probability of overfitting: {over['probability']:.1%} of {over['splits']} splits (Sharpe {over['inside']:.2f} in sample, {over['outside']:.2f} out of sample)"
        )


def _show_forward(forward: Plain, metric: Metric) -> None:
    screen.put()
    rows = [
        (
            str(one["window"] + 1),
            period(one["from"], one["to"]),
            describe_point(one["point"]),
            format_metric(one["inside"], metric.form),
            format_metric(one["outside"], metric.form),
            figures.percent(one["total_return_pct"], signed=True),
        )
        for one in forward["windows"]
    ]
    heads = ("window", "test period", "choice", f"{metric.label} in sample", "out of sample", "return")
    screen.put_table(heads, rows, right=(3, 4, 5), folds=(2,), title="Walk-forward")
    around = forward["total_return_ci"]
    told = (
        ""
        if around is None
        else f" (95 %: {figures.percent(around[0], signed=True)} to {figures.percent(around[1], signed=True)})"
    )
    screen.put(
        f"all test periods, {figures.plural(forward['days'], 'day')}: {figures.percent(forward['total_return_pct'], signed=True)}{told}, "
        f"Sharpe {figures.plain(forward['sharpe'])}"
    )


def _show_arena(arena: Plain) -> None:
    screen.put(f"{arena['skill']} · arena · {arena['runs']} runs · {period(arena['from_at'], arena['to_at'])}", "bold")
    for words in arena["warnings"]:
        screen.put(f"note: {words}", "yellow")
    forecasts = any(entry["brier"] is not None for entry in arena["entries"])
    rows = [
        (
            "–" if entry["tier"] is None else str(entry["tier"]),
            entry["model"],
            "" if entry["rank"] is None else f"{entry['rank'][0]}–{entry['rank'][1]}",
            figures.percent(entry["total_return_pct"], signed=True),
            _around(entry["total_return_ci"]),
            *((figures.plain(entry["brier"], 4),) if forecasts else ()),
            figures.plain(entry["sharpe"]),
            figures.NONE if entry["deflated_sharpe"] is None else f"{entry['deflated_sharpe']:.0%}",
            str(entry["repeats"]),
            figures.usd(entry["cost_per_run_usd"]),
            figures.NONE if entry["latency_ms"] is None else f"{entry['latency_ms']:,.0f} ms",
        )
        for entry in arena["entries"]
    ]
    brier = ("Brier",) if forecasts else ()
    heads = (
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
    screen.put_table(heads, rows, right=(3, *range(5, len(heads))))
    apart = sum(pair["told_apart"] for pair in arena["pairs"])
    screen.put(f"{apart} of {len(arena['pairs'])} pairs differ significantly. {arena['correction']}")
    if arena["overfitting"] is not None:
        over = arena["overfitting"]
        screen.put(f"probability of overfitting: {over['probability']:.1%} of {over['splits']} splits")


def _around(value: Any) -> str:
    if value is None:
        return ""
    return f"{figures.percent(value[0], signed=True)} to {figures.percent(value[1], signed=True)}"


def _states(runs: list[Plain]) -> str:
    broken = sum(run["status"] != "complete" for run in runs)
    return str(len(runs)) if not broken else f"{len(runs)}, {broken} without a result"
