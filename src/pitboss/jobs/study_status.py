"""The status of studies as documents: the list of studies, a study with its trials, and an evaluation against chance.

Lists and trials are read from the rows of the runs alone, so a study of a thousand runs opens at once; only
`evaluated_study` reads the records of runs. Nothing here starts or changes anything.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import DAY_MS, Instant, iso
from pitboss.jobs.run_series import RunSeries, cached, load_series
from pitboss.report.figures import has_few_days
from pitboss.runs.stored import is_synthetic
from pitboss.runs.venues import venue_of
from pitboss.sim.statistics.bootstrap import MIN_BOOTSTRAP_RETURNS, bootstrap, interval
from pitboss.sim.statistics.overfitting import overfitting
from pitboss.sim.statistics.paired import Entry
from pitboss.sim.statistics.returns import (
    DAYS_A_YEAR,
    deflated_sharpe,
    deflation_benchmark,
    probabilistic_sharpe,
    sharpe,
)
from pitboss.sim.study.choice import SMALLER_IS_BETTER, figure, score
from pitboss.store.lifecycle import ENDED, Status
from pitboss.store.queued_studies import read_queued_study
from pitboss.store.studies import StudyRun, metrics_of_skill, study_runs

Document = dict[str, Any]


def study_list(workspace: Workspace) -> list[Document]:
    """All studies, the newest first, one line each."""
    return [
        {
            "study_id": line.id,
            "kind": line.document["kind"],
            "name": line.document["name"],
            "skill": line.document["skill"].get("name", ""),
            "vary": line.document["vary"],
            "by": line.document["by"],
            "runs": sum(line.counts.values()),
            "counts": dict(line.counts),
            "first_at": None if line.first_at is None else iso(line.first_at),
            "last_at": None if line.last_at is None else iso(line.last_at),
        }
        for line in workspace.studies.list()
    ]


def progress_of_study(workspace: Workspace, study_id: str) -> Document:
    """How far a study is, from the rows of its runs alone. Cheap, for polling."""
    lines = workspace.studies.progress(study_id)
    counts: dict[str, int] = {}
    for line in lines:
        counts[line.status] = counts.get(line.status, 0) + 1
    shares = [1.0 if line.status in ENDED else line.progress for line in lines]
    queued = read_queued_study(workspace.database, study_id)
    goes_on = queued is not None and not queued.stopped
    expected = max(len(lines), queued.expected_runs if queued is not None and goes_on else 0)
    return {
        "study_id": study_id,
        "runs": len(lines),
        "expected_runs": expected,
        "counts": counts,
        "progress_pct": round(100 * math.fsum(shares) / expected, 2) if shares else 0.0,
        "is_ended": not goes_on and all(line.status in ENDED for line in lines),
        "stopped_text": None if queued is None else queued.stopped or None,
    }


def runs_of(
    workspace: Workspace,
    study_id: str,
    status: Status | None = None,
    model: str | None = None,
    point: Mapping[str, str] | None = None,
) -> list[StudyRun]:
    """The runs of a study in the order of its trials, filtered by all given conditions."""
    return study_runs(workspace.runs, study_id, status, model, point)


def study_summary(workspace: Workspace, study_id: str, runs: Sequence[StudyRun] | None = None) -> Document:
    """A study with its trials, the best first. `runs` restricts it to some runs; None: all."""
    definition = workspace.studies.document(study_id)
    selected_runs = runs_of(workspace, study_id) if runs is None else runs
    by, venue = definition["by"], venue_of(definition["skill"])
    counts: dict[str, int] = {}
    for run in selected_runs:
        counts[run.status] = counts.get(run.status, 0) + 1
    priced = [run.cost_usd for run in selected_runs if not run.cost_usd.is_nan()]
    return {
        "study_id": study_id,
        **{name: definition[name] for name in ("kind", "name", "vary", "method", "repeats", "by")},
        "better": "less" if by in SMALLER_IS_BETTER else "more",
        "skill": definition["skill"].get("name", ""),
        "venue": venue.name,
        "has_account": venue.has_account,
        "metric_meanings": {name: list(metric) for name, metric in venue.metrics().items()},
        "from": iso(definition["request"]["from_at"]),
        "to": iso(definition["request"]["to_at"]),
        "runs": len(selected_runs),
        "counts": counts,
        "cost_usd": float(sum(priced)),
        "unpriced": len(selected_runs) - len(priced),
        "saved_usd": float(sum(run.saved_usd for run in selected_runs)),
        "wall_s": math.fsum(run.wall_s for run in selected_runs),
        "trials": trials_of(selected_runs, by, (*venue.study_metrics(), "total_ai_cost_usd")),
    }


def trials_of(runs: Sequence[StudyRun], by: str, further_metrics: Sequence[str]) -> list[Document]:
    """Runs grouped by trial, the best first; trials without a result come last. `further_metrics` are shown besides `by`."""
    names = tuple(dict.fromkeys((by, *further_metrics)))
    texts = {at: iso(at) for at in {at for run in runs for at in (run.from_at, run.to_at)}}  # mostly the same two
    trials = [_trial(number, repeats, by, names, texts) for number, repeats in by_trial(runs).items()]
    return sorted(trials, key=lambda trial: (trial["score"] is None, -(trial["score"] or 0.0), trial["trial"]))


def by_trial(runs: Sequence[StudyRun]) -> dict[int, list[StudyRun]]:
    """Runs by the number of their trial."""
    groups: dict[int, list[StudyRun]] = {}
    for run in runs:
        groups.setdefault(run.mark.get("trial", 0), []).append(run)
    return groups


def _trial(
    number: int, repeats: Sequence[StudyRun], by: str, names: Sequence[str], texts: Mapping[Instant, str]
) -> Document:
    mark, results = repeats[0].mark, [metrics for run in repeats if (metrics := run.metrics) is not None]
    means = {name: mean([figure(metrics, name) for metrics in results]) for name in names}
    costs = [float(run.cost_usd) for run in repeats]
    return {
        "trial": number,
        "point": mark.get("point", {}),
        "role": mark.get("role", ""),
        "window": mark.get("window"),
        "from": texts[repeats[0].from_at],
        "to": texts[repeats[0].to_at],
        "model": repeats[0].model,
        "score": score(results, by),
        "metrics": means,
        "few_days": any(has_few_days(metrics) for metrics in results),
        "cost_usd": None if any(map(math.isnan, costs)) else math.fsum(costs),
        "runs": [run_summary(run) for run in repeats],
    }


def run_summary(run: StudyRun) -> Document:
    """A run as the pages refer to it."""
    return {"run_id": run.id, "status": run.status, "error": run.error_text, "report": run.report}


def evaluated_study(workspace: Workspace, study_id: str) -> Document:
    """The study with an evaluation against chance: deflated Sharpe over all trials and the probability of overfitting; for a
    walk-forward, the results of its choices. Without accounts there is no such evaluation.
    """
    runs = runs_of(workspace, study_id)
    document = study_summary(workspace, study_id, runs)
    document["synthetic"] = any(is_synthetic(workspace, workspace.runs.get(run.id)) for run in runs[:1])
    if document["kind"] == "walk":
        return {**document, "forward": _forward(document, runs, load_series(workspace, study_id, runs))}
    if not document["has_account"]:
        return document  # chance is estimated from returns
    luck = dict(cached(workspace, study_id, runs, lambda: _luck(workspace, document, runs)))
    returns, own = luck.pop("held"), luck.pop("sharpes")
    return {**document, "luck": {**luck, **_with_all(workspace, document, returns, own)}}


def _luck(workspace: Workspace, document: Document, runs: Sequence[StudyRun]) -> Document:
    """The result of the best trial, and what chance alone gives the best of as many trials.

    `held` are the daily returns of the best trial, `sharpes` those that all finished runs report.
    """
    groups = returns_of(runs, load_series(workspace, document["study_id"], runs))
    best = next(
        (trial for trial in document["trials"] if trial["score"] is not None and trial["trial"] in groups), None
    )
    returns = None if best is None else equal_parts(groups[best["trial"]])
    every = [returns for repeats in groups.values() for returns in repeats]
    sharpes = _sharpes(every)
    year = math.sqrt(DAYS_A_YEAR)
    return {
        "trials": len(groups),
        "runs": len(every),
        "best_trial": None if best is None else best["trial"],
        "best_sharpe": None if returns is None else sharpe(returns),
        "lucky_sharpe": deflation_benchmark(sharpes) * year if len(sharpes) > 1 else None,
        "deflated_sharpe": None if returns is None or not sharpes else deflated_sharpe(returns, sharpes),
        "overfitting": overfit(list(groups.values())),
        "held": returns,
        "sharpes": [figure(run.metrics or {}, "sharpe") for run in runs if run.status == "complete"],
    }


def _with_all(
    workspace: Workspace, document: Document, returns: Sequence[float] | None, own: Sequence[float | None]
) -> Document:
    """The same over every stored run of the skill, in this study or not: those were trials too."""
    other_metrics = metrics_of_skill(workspace.runs, document["skill"], document["study_id"])
    every = [*own, *(figure(metrics, "sharpe") for metrics in other_metrics)]
    sharpes = [value for value in every if value is not None]
    deflated = None if returns is None or not sharpes else deflated_sharpe(returns, sharpes)
    return {"runs_of_skill": len(every), "deflated_sharpe_of_skill": deflated}


def returns_of(runs: Sequence[StudyRun], series: Mapping[str, RunSeries]) -> dict[int, list[tuple[float, ...]]]:
    """Daily returns of the repeats of each trial that has any."""
    groups = by_trial([run for run in runs if run.id in series])
    return {number: [series[run.id].returns for run in repeats] for number, repeats in groups.items()}


def deflated(repeats: Entry, every: Sequence[Sequence[float]]) -> float | None:
    """Probability that the Sharpe of a trial exceeds what chance gives the best of all runs.

    The trial counts as a portfolio of all its repeats in equal parts. Every run counts as a trial, repeats included.
    """
    sharpes = _sharpes(every)
    return deflated_sharpe(equal_parts(repeats), sharpes) if sharpes else None


def _sharpes(every: Sequence[Sequence[float]]) -> list[float]:
    """The Sharpe ratios of those runs that have one."""
    return [value for returns in every if (value := sharpe(returns)) is not None]


def equal_parts(repeats: Entry) -> list[float]:
    """The daily returns of a portfolio of all repeats in equal parts."""
    return [math.fsum(day) / len(day) for day in zip(*repeats, strict=True)] if _even([repeats]) else list(repeats[0])


def overfit(entries: Sequence[Entry]) -> Document | None:
    """The probability of backtest overfitting over entries, if they cover the same days."""
    if not _even(entries):
        return None
    result = overfitting([equal_parts(repeats) for repeats in entries])
    return None if result is None else asdict(result)


def _even(entries: Sequence[Entry]) -> bool:
    return len({len(returns) for repeats in entries for returns in repeats}) == 1


def _forward(document: Document, runs: Sequence[StudyRun], series: Mapping[str, RunSeries]) -> Document:
    """The results of a walk-forward: each choice, and all test periods as one history."""
    groups = returns_of(runs, series)
    training = [trial for trial in document["trials"] if trial["role"] == "in" and trial["score"] is not None]
    sign = -1 if document["by"] in SMALLER_IS_BETTER else 1
    starts = {run.mark.get("trial", 0): run.from_at for run in runs}
    tests: list[tuple[Instant, Sequence[float]]] = []
    windows: list[Document] = []
    tested = [trial for trial in document["trials"] if trial["role"] == "out"]
    for test in sorted(tested, key=lambda trial: trial["window"]):
        candidates = [trial for trial in training if trial["window"] == test["window"]]  # the best of them first
        best = candidates[0] if candidates else None
        scores = [sign * trial["score"] for trial in candidates]
        windows.append(
            {
                "window": test["window"],
                "point": test["point"],
                "chosen_from": None if best is None else best["from"],
                "chosen_to": None if best is None else best["to"],
                "from": test["from"],
                "to": test["to"],
                "tried": len(candidates),
                "tried_between": [min(scores), max(scores)] if scores else None,
                "inside": None if best is None else sign * best["score"],
                "outside": None if test["score"] is None else sign * test["score"],
                "few_days": [best is not None and best["few_days"], test["few_days"]],
                "total_return_pct": test["metrics"]["total_return_pct"],
            }
        )
        if test["trial"] in groups:
            tests.append((starts[test["trial"]], equal_parts(groups[test["trial"]])))
    chain = chained(tests)
    curve = curve_of(chain)
    enough = len(chain) >= MIN_BOOTSTRAP_RETURNS and any(chain)
    totals, sharpes = bootstrap(chain) if enough else (None, None)
    all_windows = {trial["window"] for trial in document["trials"]}
    return {
        "windows": windows,
        "not_judged": len(all_windows) - len(windows),
        "tried_in_each": sum(window["tried"] for window in windows) // max(1, len(windows)),
        "days": len(chain),
        "curve": curve,
        "total_return_pct": 100 * (curve[-1] - 1) if curve else None,
        "total_return_ci": None if totals is None else interval(100 * totals),
        "sharpe": sharpe(chain),
        "sharpe_ci": None if sharpes is None else interval(sharpes),
        "probabilistic_sharpe": probabilistic_sharpe(chain),
        "inside_mean": mean([window["inside"] for window in windows]),
        "outside_mean": mean([window["outside"] for window in windows]),
    }


def chained(periods: Sequence[tuple[Instant, Sequence[float]]]) -> list[float]:
    """The daily returns of consecutive periods, given the start of each, as those of one history.

    Returns are those of UTC days. A day in which one period ends and the next begins is one day, not two: otherwise four
    periods of one hour would count as four days.
    """
    growth: dict[int, float] = {}
    for from_at, returns in periods:
        for offset, value in enumerate(returns):
            day = from_at // DAY_MS + offset
            growth[day] = growth.get(day, 1.0) * (1 + value)
    return [value - 1 for value in growth.values()]


def curve_of(returns: Sequence[float]) -> list[float]:
    """The value of 1 after each day."""
    curve, growth = list[float](), 1.0
    for value in returns:
        growth *= 1 + value
        curve.append(growth)
    return curve


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of the known values; None if there are none."""
    if len(values) == 1:  # most trials are one run
        return values[0]
    numbers = [value for value in values if value is not None]
    return math.fsum(numbers) / len(numbers) if numbers else None
