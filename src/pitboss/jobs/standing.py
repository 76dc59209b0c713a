"""How a study stands, as documents: the list of studies, one of them with its trials, and how much of its best is luck.

Lists and trials are read from the runs' rows alone, so a study of a thousand runs opens at once; only `judged` reads what
runs went through. Nothing here starts or changes anything.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import iso
from pitboss.jobs.study import MOST_RUNS
from pitboss.jobs.trace import Trace, traces
from pitboss.sim import statistics
from pitboss.sim.study.choice import SMALLER_IS_BETTER, figure, score
from pitboss.sim.study.overfit import overfitting
from pitboss.sim.study.paired import Entry
from pitboss.store.lifecycle import Status
from pitboss.store.runs import Run
from pitboss.store.studies import Studies

SHOWN = ("total_return_pct", "sharpe", "max_drawdown_pct", "total_trades", "total_ai_cost_usd")
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
) -> list[Run]:
    """The runs of a study in the order of its trials, those that fit all that is given."""
    more: dict[str, Any] = {} if model is None else {"model": model}
    found = workspace.runs.look(MOST_RUNS, status, study_id=study_id, **more).runs
    wanted = (point or {}).items()
    chosen = [run for run in found if wanted <= _mark(run).get("point", {}).items()]
    return sorted(chosen, key=lambda run: (_mark(run).get("trial", 0), _mark(run).get("repeat", 0)))


def opened(workspace: Workspace, study_id: str, runs: Sequence[Run] | None = None) -> Document:
    """A study with its trials, the best first. `runs` are those to show; all of them if none are given."""
    asked = Studies(workspace.database).document(study_id)
    found = runs_of(workspace, study_id) if runs is None else runs
    by = asked["by"]
    trials = trials_of(found, by)
    counts: dict[str, int] = {}
    for run in found:
        counts[run.status] = counts.get(run.status, 0) + 1
    priced = [run.cost_usd for run in found if not run.cost_usd.is_nan()]
    return {
        "study_id": study_id,
        **{name: asked[name] for name in ("kind", "name", "vary", "method", "repeats", "by")},
        "skill": asked["skill"].get("name", ""),
        "from": iso(asked["request"]["from_at"]),
        "to": iso(asked["request"]["to_at"]),
        "runs": len(found),
        "counts": counts,
        "cost_usd": float(sum(priced)),
        "saved_usd": float(sum(run.saved_usd for run in found)),
        "wall_s": math.fsum(run.wall_s for run in found),
        "trials": trials,
    }


def trials_of(runs: Sequence[Run], by: str) -> list[Document]:
    """Runs put together by trial, the best first; trials without a result come last."""
    grouped: dict[int, list[Run]] = {}
    for run in runs:
        grouped.setdefault(_mark(run).get("trial", 0), []).append(run)
    found = [_trial(number, repeats, by) for number, repeats in grouped.items()]
    return sorted(found, key=lambda one: (one["score"] is None, -(one["score"] or 0.0), one["trial"]))


def _trial(number: int, repeats: Sequence[Run], by: str) -> Document:
    mark, done = _mark(repeats[0]), [run.metrics for run in repeats if run.metrics is not None]
    means = {name: _mean([figure(one, name) for one in done]) for name in dict.fromkeys((by, *SHOWN))}
    costs = [float(run.cost_usd) for run in repeats]
    return {
        "trial": number,
        "point": mark.get("point", {}),
        "role": mark.get("role", ""),
        "window": mark.get("window"),
        "model": repeats[0].model,
        "score": score(done, by),
        "metrics": means,
        "cost_usd": None if any(map(math.isnan, costs)) else math.fsum(costs),
        "runs": [{"run_id": run.id, "status": run.status, "error": run.error_text} for run in repeats],
    }


def judged(workspace: Workspace, study_id: str) -> Document:
    """The study with how much of its best is luck: deflated Sharpe over all trials, probability of overfitting; of a
    walk-forward, what came of the choices."""
    runs = runs_of(workspace, study_id)
    document = opened(workspace, study_id, runs)
    known = traces(workspace, study_id, runs)
    groups = returns_of(runs, known)
    by_run = [one for repeats in groups.values() for one in repeats]
    best = next((one for one in document["trials"] if one["role"] != "out" and one["trial"] in groups), None)
    if document["kind"] == "walk":
        return {**document, "forward": _forward(document, runs, known)}
    return {
        **document,
        "luck": {
            "trials": len(groups),
            "runs": len(by_run),
            "best_trial": None if best is None or best["score"] is None else best["trial"],
            "deflated_sharpe": None if best is None else deflated(groups[best["trial"]], by_run),
            **_with_all(workspace, document["skill"], None if best is None else groups[best["trial"]]),
            "overfitting": overfit(list(groups.values())),
        },
    }


def _with_all(workspace: Workspace, skill: str, best: Entry | None) -> Document:
    """The same over every run of the skill that is stored here, in this study or not: those were tries too."""
    stored = workspace.runs.look(MOST_RUNS, "complete", skill=skill).runs
    sharpes = [value for run in stored if (value := figure(run.metrics or {}, "sharpe")) is not None]
    judged = None if best is None or not sharpes else statistics.deflated_sharpe(together(best), sharpes)
    return {"runs_of_skill": len(stored), "deflated_sharpe_of_skill": judged}


def returns_of(runs: Sequence[Run], known: Mapping[str, Trace]) -> dict[int, list[tuple[float, ...]]]:
    """Daily returns of the repeats of each trial that has any."""
    groups: dict[int, list[tuple[float, ...]]] = {}
    for run in runs:
        if run.id in known:
            groups.setdefault(_mark(run).get("trial", 0), []).append(known[run.id].returns)
    return groups


def deflated(repeats: Entry, every: Sequence[Sequence[float]]) -> float | None:
    """Probability that the Sharpe of a trial is above what luck gives the best of all runs that were made.

    The trial counts as all its repeats held together in equal parts. Every run counts as a try, repeats included.
    """
    sharpes = [value for one in every if (value := statistics.sharpe(one)) is not None]
    return statistics.deflated_sharpe(together(repeats), sharpes) if sharpes else None


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


def _forward(document: Document, runs: Sequence[Run], known: Mapping[str, Trace]) -> Document:
    """What came of the choices of a walk-forward: each of them, and all that was judged as one history."""
    groups = returns_of(runs, known)
    spans = {_mark(run).get("trial", 0): (run.params["from_at"], run.params["to_at"]) for run in runs}
    inside = [one for one in document["trials"] if one["role"] == "in" and one["score"] is not None]
    sign = -1 if document["by"] in SMALLER_IS_BETTER else 1
    chain: list[float] = []
    windows: list[Document] = []
    for one in sorted((one for one in document["trials"] if one["role"] == "out"), key=lambda one: one["window"]):
        chosen = next((other for other in inside if other["window"] == one["window"]), None)
        windows.append(
            {
                "window": one["window"],
                "point": one["point"],
                "from": iso(spans[one["trial"]][0]),
                "to": iso(spans[one["trial"]][1]),
                "inside": None if chosen is None else sign * chosen["score"],
                "outside": None if one["score"] is None else sign * one["score"],
                "total_return_pct": one["metrics"]["total_return_pct"],
            }
        )
        chain += together(groups[one["trial"]]) if one["trial"] in groups else []
    growth = 1.0
    for value in chain:
        growth *= 1 + value
    enough = len(chain) >= statistics.MIN_BOOTSTRAP_RETURNS and any(chain)
    totals, sharpes = statistics.bootstrap(chain) if enough else (None, None)
    return {
        "windows": windows,
        "tried_in_each": len(inside) // max(1, len(windows)),
        "days": len(chain),
        "total_return_pct": 100 * (growth - 1) if chain else None,
        "total_return_ci": None if totals is None else statistics.interval(100 * totals),
        "sharpe": statistics.sharpe(chain),
        "sharpe_ci": None if sharpes is None else statistics.interval(sharpes),
        "probabilistic_sharpe": statistics.probabilistic_sharpe(chain),
        "inside_mean": _mean([one["inside"] for one in windows]),
        "outside_mean": _mean([one["outside"] for one in windows]),
    }


def _mark(run: Run) -> Mapping[str, Any]:
    return run.params.get("study") or {}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
