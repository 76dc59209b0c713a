"""How a study stands, as documents: the list of studies, one of them with its trials, and how much of its best is luck.

Lists and trials are read from the runs' rows alone, so a study of a thousand runs opens at once; only `judged` reads what
runs went through. Nothing here starts or changes anything.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import DAY_MS, Instant, iso
from pitboss.jobs.run_series import Trace, once, traces
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
from pitboss.store.lifecycle import Status
from pitboss.store.studies import Studies, StudyRun, metrics_of_skill, parts

Document = dict[str, Any]


def studies(workspace: Workspace) -> list[Document]:
    """All studies, the newest first, in short."""
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
        for line in Studies(workspace.database).list()
    ]


def runs_of(
    workspace: Workspace,
    study_id: str,
    status: Status | None = None,
    model: str | None = None,
    point: Mapping[str, str] | None = None,
) -> list[StudyRun]:
    """The runs of a study in the order of its trials, those that fit all that is given."""
    return parts(workspace.runs, study_id, status, model, point)


def opened(workspace: Workspace, study_id: str, runs: Sequence[StudyRun] | None = None) -> Document:
    """A study with its trials, the best first. `runs` are those to show; all of them if none are given."""
    asked = Studies(workspace.database).document(study_id)
    found = runs_of(workspace, study_id) if runs is None else runs
    by, venue = asked["by"], venue_of(asked["skill"])
    counts: dict[str, int] = {}
    for run in found:
        counts[run.status] = counts.get(run.status, 0) + 1
    priced = [run.cost_usd for run in found if not run.cost_usd.is_nan()]
    return {
        "study_id": study_id,
        **{name: asked[name] for name in ("kind", "name", "vary", "method", "repeats", "by")},
        "better": "less" if by in SMALLER_IS_BETTER else "more",
        "skill": asked["skill"].get("name", ""),
        "venue": venue.name,
        "metric_meanings": {name: list(metric) for name, metric in venue.metrics().items()},
        "from": iso(asked["request"]["from_at"]),
        "to": iso(asked["request"]["to_at"]),
        "runs": len(found),
        "counts": counts,
        "cost_usd": float(sum(priced)),
        "unpriced": len(found) - len(priced),
        "saved_usd": float(sum(run.saved_usd for run in found)),
        "wall_s": math.fsum(run.wall_s for run in found),
        "trials": trials_of(found, by, (*venue.study_metrics(), "total_ai_cost_usd")),
    }


def trials_of(runs: Sequence[StudyRun], by: str, beside: Sequence[str]) -> list[Document]:
    """Runs put together by trial, the best first; trials without a result come last. `beside`: metrics to show as well."""
    grouped: dict[int, list[StudyRun]] = {}
    for run in runs:
        grouped.setdefault(run.mark.get("trial", 0), []).append(run)
    names = tuple(dict.fromkeys((by, *beside)))
    said = {at: iso(at) for at in {at for run in runs for at in (run.from_at, run.to_at)}}  # mostly the same two
    found = [_trial(number, repeats, by, names, said) for number, repeats in grouped.items()]
    return sorted(found, key=lambda one: (one["score"] is None, -(one["score"] or 0.0), one["trial"]))


def _trial(
    number: int, repeats: Sequence[StudyRun], by: str, names: Sequence[str], said: Mapping[Instant, str]
) -> Document:
    mark, done = repeats[0].mark, [metrics for run in repeats if (metrics := run.metrics) is not None]
    means = {name: _mean([figure(one, name) for one in done]) for name in names}
    costs = [float(run.cost_usd) for run in repeats]
    return {
        "trial": number,
        "point": mark.get("point", {}),
        "role": mark.get("role", ""),
        "window": mark.get("window"),
        "from": said[repeats[0].from_at],
        "to": said[repeats[0].to_at],
        "model": repeats[0].model,
        "score": score(done, by),
        "metrics": means,
        "cost_usd": None if any(map(math.isnan, costs)) else math.fsum(costs),
        "runs": [named(run) for run in repeats],
    }


def named(run: StudyRun) -> Document:
    """A run as the pages name it."""
    return {"run_id": run.id, "status": run.status, "error": run.error_text, "report": run.report}


def judged(workspace: Workspace, study_id: str) -> Document:
    """The study with how much of its best is luck: deflated Sharpe over all trials, probability of overfitting; of a
    walk-forward, what came of the choices."""
    runs = runs_of(workspace, study_id)
    document = opened(workspace, study_id, runs)
    document["synthetic"] = any(is_synthetic(workspace, workspace.runs.get(run.id)) for run in runs[:1])
    if document["kind"] == "walk":
        return {**document, "forward": _forward(document, runs, traces(workspace, study_id, runs))}
    found = dict(once(workspace, study_id, runs, lambda: _luck(workspace, document, runs)))
    held, own = found.pop("held"), found.pop("sharpes")
    return {**document, "luck": {**found, **_with_all(workspace, document, held, own)}}


def _luck(workspace: Workspace, document: Document, runs: Sequence[StudyRun]) -> Document:
    """What the best came to, beside what luck alone gives the best of as many.

    `held` are the daily returns of the best, `sharpes` what all finished runs report.
    """
    groups = returns_of(runs, traces(workspace, document["study_id"], runs))
    best = next((one for one in document["trials"] if one["score"] is not None and one["trial"] in groups), None)
    held = None if best is None else together(groups[best["trial"]])
    every = [one for repeats in groups.values() for one in repeats]
    sharpes = [value for one in every if (value := sharpe(one)) is not None]
    year = math.sqrt(DAYS_A_YEAR)
    return {
        "trials": len(groups),
        "runs": len(every),
        "best_trial": None if best is None else best["trial"],
        "best_sharpe": None if held is None else sharpe(held),
        "lucky_sharpe": deflation_benchmark(sharpes) * year if len(sharpes) > 1 else None,
        "deflated_sharpe": None if held is None or not sharpes else deflated_sharpe(held, sharpes),
        "overfitting": overfit(list(groups.values())),
        "held": held,
        "sharpes": [figure(run.metrics or {}, "sharpe") for run in runs if run.status == "complete"],
    }


def _with_all(
    workspace: Workspace, document: Document, held: Sequence[float] | None, own: Sequence[float | None]
) -> Document:
    """The same over every run of the skill that is stored here, in this study or not: those were tries too."""
    others = metrics_of_skill(workspace.runs, document["skill"], document["study_id"])
    every = [*own, *(figure(one, "sharpe") for one in others)]
    sharpes = [value for value in every if value is not None]
    judged = None if held is None or not sharpes else deflated_sharpe(held, sharpes)
    return {"runs_of_skill": len(every), "deflated_sharpe_of_skill": judged}


def returns_of(runs: Sequence[StudyRun], known: Mapping[str, Trace]) -> dict[int, list[tuple[float, ...]]]:
    """Daily returns of the repeats of each trial that has any."""
    groups: dict[int, list[tuple[float, ...]]] = {}
    for run in runs:
        if run.id in known:
            groups.setdefault(run.mark.get("trial", 0), []).append(known[run.id].returns)
    return groups


def deflated(repeats: Entry, every: Sequence[Sequence[float]]) -> float | None:
    """Probability that the Sharpe of a trial is above what luck gives the best of all runs that were made.

    The trial counts as all its repeats held together in equal parts. Every run counts as a try, repeats included.
    """
    sharpes = [value for one in every if (value := sharpe(one)) is not None]
    return deflated_sharpe(together(repeats), sharpes) if sharpes else None


def together(repeats: Entry) -> list[float]:
    """The daily returns of all repeats held in equal parts."""
    return [math.fsum(day) / len(day) for day in zip(*repeats, strict=True)] if _even([repeats]) else list(repeats[0])


def overfit(entries: Sequence[Entry]) -> Document | None:
    """The probability of backtest overfitting over entries, if they lived through the same days."""
    if not _even(entries):
        return None
    found = overfitting([together(repeats) for repeats in entries])
    return None if found is None else asdict(found)


def _even(entries: Sequence[Entry]) -> bool:
    return len({len(one) for repeats in entries for one in repeats}) == 1


def _forward(document: Document, runs: Sequence[StudyRun], known: Mapping[str, Trace]) -> Document:
    """What came of the choices of a walk-forward: each of them, and all that was judged as one history."""
    groups = returns_of(runs, known)
    inside = [one for one in document["trials"] if one["role"] == "in" and one["score"] is not None]
    sign = -1 if document["by"] in SMALLER_IS_BETTER else 1
    starts = {run.mark.get("trial", 0): run.from_at for run in runs}
    judged: list[tuple[Instant, Sequence[float]]] = []
    windows: list[Document] = []
    for one in sorted((one for one in document["trials"] if one["role"] == "out"), key=lambda one: one["window"]):
        tried = [other for other in inside if other["window"] == one["window"]]  # the best of them first
        chosen = tried[0] if tried else None
        scores = [sign * other["score"] for other in tried]
        windows.append(
            {
                "window": one["window"],
                "point": one["point"],
                "chosen_from": None if chosen is None else chosen["from"],
                "chosen_to": None if chosen is None else chosen["to"],
                "from": one["from"],
                "to": one["to"],
                "tried": len(tried),
                "tried_between": [min(scores), max(scores)] if scores else None,
                "inside": None if chosen is None else sign * chosen["score"],
                "outside": None if one["score"] is None else sign * one["score"],
                "total_return_pct": one["metrics"]["total_return_pct"],
            }
        )
        if one["trial"] in groups:
            judged.append((starts[one["trial"]], together(groups[one["trial"]])))
    chain = chained(judged)
    curve = curve_of(chain)
    enough = len(chain) >= MIN_BOOTSTRAP_RETURNS and any(chain)
    totals, sharpes = bootstrap(chain) if enough else (None, None)
    walked = {one["window"] for one in document["trials"]}
    return {
        "windows": windows,
        "not_judged": len(walked) - len(windows),
        "tried_in_each": len(inside) // max(1, len(windows)),
        "days": len(chain),
        "curve": curve,
        "total_return_pct": 100 * (curve[-1] - 1) if curve else None,
        "total_return_ci": None if totals is None else interval(100 * totals),
        "sharpe": sharpe(chain),
        "sharpe_ci": None if sharpes is None else interval(sharpes),
        "probabilistic_sharpe": probabilistic_sharpe(chain),
        "inside_mean": _mean([one["inside"] for one in windows]),
        "outside_mean": _mean([one["outside"] for one in windows]),
    }


def chained(stretches: Sequence[tuple[Instant, Sequence[float]]]) -> list[float]:
    """The daily returns of stretches that follow each other, given where each begins, as those of one history.

    Returns are those of UTC days. A day that one stretch ends in and the next begins in is one day, not two: otherwise four
    hours judged one by one would count as four days.
    """
    growth: dict[int, float] = {}
    for from_at, returns in stretches:
        for place, value in enumerate(returns):
            day = from_at // DAY_MS + place
            growth[day] = growth.get(day, 1.0) * (1 + value)
    return [value - 1 for value in growth.values()]


def curve_of(returns: Sequence[float]) -> list[float]:
    """What is left of 1 after each day."""
    found, growth = list[float](), 1.0
    for value in returns:
        growth *= 1 + value
        found.append(growth)
    return found


def _mean(values: Sequence[float | None]) -> float | None:
    if len(values) == 1:  # most trials are one run
        return values[0]
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
