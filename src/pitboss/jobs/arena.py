"""The arena: one skill, several models, the same market, several repeats each, and which models are better.

An arena is a study over models with a few programs as baselines. Entries are compared in pairs over the same days and
repeats; ranks are given as tiers, because most differences are due to chance. Everything is computed from stored runs. The
runs are executed by `study.py`; the page is `report/arena`.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.jobs.plan import MODEL
from pitboss.jobs.run_series import RunSeries, load_series
from pitboss.jobs.study_status import (
    Document,
    by_trial,
    curve_of,
    deflated,
    equal_parts,
    mean,
    overfit,
    returns_of,
    run_summary,
    runs_of,
)
from pitboss.models.providers import PROGRAMS
from pitboss.report import figures
from pitboss.runs.listing import times
from pitboss.runs.stored import is_synthetic
from pitboss.runs.venues import venue_of
from pitboss.sim.metrics import intervals
from pitboss.sim.statistics.bootstrap import MIN_BOOTSTRAP_RETURNS
from pitboss.sim.statistics.paired import PairedDifference, differences, log_growth, mean_log_growth
from pitboss.sim.statistics.returns import sharpe
from pitboss.sim.statistics.tiers import tiers
from pitboss.sim.study.axis import Axis
from pitboss.sim.study.choice import figure, score
from pitboss.store.studies import StudyRun

REPEATS = 3
"""Default repeats of a model: single runs of the same model differ by as much as models do."""
UNDECIDED = ("model_error", "no_decision", "multiple_proposals")
"""Flags of ticks at which a model was called without a decision."""
LEAST_DECIDED = 0.95
"""A model that decided at a smaller share of its ticks was not really measured."""
CORRECTION = "95 % intervals, simultaneous over all pairs: single-step max-t with a paired stationary bootstrap of days and repeats."


def entrants(models: Sequence[str], baselines: Sequence[str] | None, usual: Sequence[str]) -> Axis:
    """The axis of the models, then the baselines: the given ones, or the `usual` ones of the venue."""
    every = tuple(dict.fromkeys((*models, *(usual if baselines is None else baselines))))
    if len(every) < 2:
        raise UserError("an arena needs at least two entrants", "for example --models groq/a,groq/b")
    return Axis(MODEL, every)


def arena(workspace: Workspace, study_id: str, seed: int = 0) -> Document:
    """The document of an arena: its entries, the best tier first, and their comparisons."""
    definition = workspace.studies.document(study_id)
    if definition["kind"] != "arena":
        raise UserError(f"study {study_id} is no arena", f"`pitboss study show {study_id}` shows it")
    runs = runs_of(workspace, study_id)
    series = load_series(workspace, study_id, runs)
    groups = by_trial(runs)
    if not venue_of(definition["skill"]).has_account:
        return _judged(workspace, study_id, definition, runs, series)
    returns = {
        _model(repeats): returns for number, returns in returns_of(runs, series).items() if (repeats := groups[number])
    }
    names = list(returns)
    pairs = differences([returns[name] for name in names], seed=seed)
    every = [daily for repeats in returns.values() for daily in repeats]
    entries = [_entry(repeats, series, returns.get(_model(repeats), []), every, seed) for repeats in groups.values()]
    growth = [mean_log_growth(returns[name]) for name in names]
    standings = {names[standing.entry]: standing for standing in tiers(growth, pairs)}
    order = {name: rank for rank, name in enumerate(standings)}
    for entry in entries:
        standing = standings.get(entry["model"])
        entry["tier"] = None if standing is None else standing.tier
        entry["rank"] = None if standing is None else [standing.best_rank, standing.worst_rank]
    entries.sort(key=lambda entry: order.get(entry["model"], len(order)))
    days = len(every[0]) if every else 0
    return {
        **_about(workspace, study_id, definition, runs),
        "days": days,
        "trials": len(every),
        "entries": entries,
        "tiers": max((standing.tier for standing in standings.values()), default=0),
        "pairs": [_pair(pair, names) for pair in pairs],
        "overfitting": overfit(list(returns.values())),
        "correction": CORRECTION,
        "warnings": [*_few_days(days), *_warnings(entries, definition["repeats"])],
        "curves": {name: curve_of(equal_parts(returns[name])) for name in names},
        "cost_usd": _sum([entry["cost_usd"] for entry in entries]),
    }


def _about(workspace: Workspace, study_id: str, definition: Mapping[str, Any], runs: Sequence[StudyRun]) -> Document:
    """What every arena has besides its entries."""
    venue = venue_of(definition["skill"])
    return {
        "study_id": study_id,
        "skill": definition["skill"].get("name", ""),
        "venue": venue.name,
        "has_account": venue.has_account,
        "by": definition["by"],
        "metric_meanings": {name: list(metric) for name, metric in venue.metrics().items()},
        **times({"from_at": definition["request"]["from_at"], "to_at": definition["request"]["to_at"]}),
        "repeats": definition["repeats"],
        "runs": len(runs),
        "complete": sum(run.status == "complete" for run in runs),
        "synthetic": any(is_synthetic(workspace, workspace.runs.get(run.id)) for run in runs[:1]),
    }


def _judged(
    workspace: Workspace,
    study_id: str,
    definition: Mapping[str, Any],
    runs: Sequence[StudyRun],
    series: Mapping[str, RunSeries],
) -> Document:
    """The document of an arena without accounts: entries by the metric that their venue is judged by, best first.

    Equal values share a rank; their order is by the venue's other metrics of studies. There are no returns of days to
    resample, so nothing says which differences are due to chance.
    """
    venue = venue_of(definition["skill"])
    names = tuple(dict.fromkeys((venue.judged_by, *venue.study_metrics())))
    entries: list[Document] = []
    for repeats in by_trial(runs).values():
        finished = [metrics for run in repeats if (metrics := run.metrics) is not None]
        values = [figure(metrics, venue.judged_by) for metrics in finished]
        entries.append(
            {
                **_common_entry(repeats, series),
                "score": score(finished, venue.judged_by),
                "values": [value for value in values if value is not None],
                "metrics": {name: mean([figure(metrics, name) for metrics in finished]) for name in names},
                "order": [-(value if (value := score(finished, name)) is not None else -math.inf) for name in names],
                "runs": [
                    {**_run_summary(run), venue.judged_by: figure(run.metrics or {}, venue.judged_by)}
                    for run in repeats
                ],
            }
        )
    entries.sort(key=lambda entry: entry.pop("order"))
    scores = [entry["score"] for entry in entries if entry["score"] is not None]
    for entry in entries:
        better = sum(value > entry["score"] for value in scores) if entry["score"] is not None else 0
        entry["rank"] = None if entry["score"] is None else [better + 1, better + scores.count(entry["score"])]
    return {
        **_about(workspace, study_id, definition, runs),
        "by": venue.judged_by,
        "entries": entries,
        "warnings": _warnings(entries, definition["repeats"]),
        "cost_usd": _sum([entry["cost_usd"] for entry in entries]),
    }


def _model(repeats: Sequence[StudyRun]) -> str:
    return repeats[0].model


def _entry(
    repeats: Sequence[StudyRun],
    series: Mapping[str, RunSeries],
    returns: Sequence[Sequence[float]],
    every: Sequence[Sequence[float]],
    seed: int,
) -> Document:
    metrics = [result for run in repeats if run.body is not None and (result := run.metrics) is not None]
    totals = [100 * math.expm1(log_growth(daily)) for daily in returns]
    daily = equal_parts(returns) if returns else []
    return_ci, sharpe_ci = intervals([daily], seed)[0] if daily else (None, None)
    return {
        **_common_entry(repeats, series),
        "runs": [
            {**_run_summary(run), "total_return_pct": figure(run.metrics or {}, "total_return_pct")} for run in repeats
        ],
        "total_return_pct": mean(totals),
        "returns_pct": totals,
        "total_return_ci": return_ci,
        "sharpe": sharpe(daily) if daily else None,
        "sharpe_ci": sharpe_ci,
        "deflated_sharpe": deflated(returns, every) if returns else None,
        "max_drawdown_pct": mean([figure(result, "max_drawdown_pct") for result in metrics]),
        "total_trades": mean([figure(result, "total_trades") for result in metrics]),
        "brier": mean([figure(result, "brier") for result in metrics]),
    }


def _common_entry(repeats: Sequence[StudyRun], series: Mapping[str, RunSeries]) -> Document:
    """What an entry has on every venue: its model, cost and latency, and the share of ticks at which it decided."""
    finished = [run for run in repeats if run.body is not None]
    metrics: list[Mapping[str, Any]] = [result for run in finished if (result := run.metrics) is not None]
    calls = sum(result["funnel"]["asked"] for result in metrics if "funnel" in result)
    undecided = sum((result.get("noops_by_flag") or {}).get(flag, 0) for result in metrics for flag in UNDECIDED)
    timed = [series[run.id] for run in finished if run.id in series and series[run.id].latency_ms is not None]
    cost = _sum([_cost(run) for run in finished])
    return {
        "model": repeats[0].model,
        "baseline": repeats[0].model.startswith(PROGRAMS),
        "repeats": len(finished),
        "decided": 1 - undecided / calls if calls else None,
        "cost_usd": cost,
        "cost_per_run_usd": None if cost is None or not finished else cost / len(finished),
        "cost_per_decision_usd": None if cost is None or not calls else cost / calls,
        "latency_ms": mean([run_series.latency_ms for run_series in timed]),
        "slow_ms": mean([run_series.slow_ms for run_series in timed]),
    }


def _run_summary(run: StudyRun) -> Document:
    return {**run_summary(run), "repeat": run.mark["repeat"], "cost_usd": _cost(run)}


def _cost(run: StudyRun) -> float | None:
    """The cost without stored replies."""
    return None if run.cost_usd.is_nan() else float(run.cost_usd + run.saved_usd)


def _pair(pair: PairedDifference, names: Sequence[str]) -> Document:
    return {
        "first": names[pair.first],
        "second": names[pair.second],
        "percent": pair.percent,
        "alone": None if pair.alone is None else list(pair.alone),
        "together": None if pair.together is None else list(pair.together),
        "p": pair.p,
        "told_apart": pair.side != 0,
    }


def _few_days(days: int) -> list[str]:
    if days >= MIN_BOOTSTRAP_RETURNS:
        return []
    return [
        f"Only {figures.plural(days, 'day')}: intervals need {MIN_BOOTSTRAP_RETURNS}, so no difference between entries is significant."
    ]


def _warnings(entries: Sequence[Document], repeats: int) -> list[str]:
    warnings: list[str] = []
    if repeats < REPEATS and any(not entry["baseline"] for entry in entries):
        warnings.append(f"Fewer than {REPEATS} repeats: how much runs of one model differ is hardly known.")
    for entry in entries:
        if not entry["baseline"] and entry["decided"] is not None and entry["decided"] < LEAST_DECIDED:
            warnings.append(
                f"{entry['model']} decided at {entry['decided']:.0%} of its ticks only: it was not really measured."
            )
        broken = sum(run["status"] != "complete" for run in entry["runs"])
        if broken:
            warnings.append(f"{entry['model']}: {broken} of {len(entry['runs'])} runs have no result.")
    return warnings


def _sum(values: Sequence[float | None]) -> float | None:
    """The sum, or None if a value is unknown."""
    numbers = [value for value in values if value is not None]
    return math.fsum(numbers) if len(numbers) == len(values) else None
