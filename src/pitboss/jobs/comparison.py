"""Several runs side by side: their metrics with intervals, paired differences over the same days, and where two of them differ first.

Every value comes from stored runs. Runs over the same days are compared in pairs, as the entries of an arena are; others are only
listed side by side, because days that one of them did not see say nothing about a difference.
"""

from collections.abc import Sequence
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.jobs.run_series import load_series
from pitboss.report.meaning import INTERVALS, METRICS
from pitboss.report.source import number
from pitboss.runs.compare import compare
from pitboss.runs.listing import short
from pitboss.runs.venues import venue_of
from pitboss.sim.statistics.paired import differences
from pitboss.store.runs import Run

MOST_RUNS = 8
CACHE = "compared-runs"
"""The name under which the daily returns of compared runs are cached."""


def comparison(workspace: Workspace, runs: Sequence[Run]) -> dict[str, Any]:
    """The document of a comparison of two to eight runs."""
    if not 2 <= len(runs) <= MOST_RUNS or len({run.id for run in runs}) != len(runs):
        raise UserError(f"a comparison has from 2 to {MOST_RUNS} different runs", "name each of them once")
    now = workspace.now()
    return {
        "runs": [short(run, now) for run in runs],
        "metrics": _metrics(runs),
        **_paired(workspace, runs),
        "difference": compare(workspace, runs[0], runs[1]) if len(runs) == 2 else None,
    }


def _metrics(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Every metric that a run has as a number, with its interval where there is one."""
    own = {name: metric for run in runs for name, metric in venue_of(run.params["skill"]).metrics().items()}
    measured = [run.metrics or {} for run in runs]
    rows: list[dict[str, Any]] = []
    for name, metric in {**METRICS, **own}.items():
        values = [number(metrics.get(name)) for metrics in measured]
        if metric.form == "table" or all(value is None for value in values):
            continue
        bounds = [metrics.get(INTERVALS[name]) if name in INTERVALS else None for metrics in measured]
        rows.append({"metric": name, "label": metric.label, "form": metric.form, "values": values, "intervals": bounds})
    return rows


def _paired(workspace: Workspace, runs: Sequence[Run]) -> dict[str, Any]:
    """The paired differences of the runs, if all of them are complete, have accounts and cover the same range."""
    spans = {(run.params["from_at"], run.params["to_at"]) for run in runs}
    has_accounts = all(venue_of(run.params["skill"]).has_account for run in runs)
    if any(run.status != "complete" for run in runs):
        return {"pairs": [], "days": 0, "unpaired": "not all of the runs are complete"}
    if len(spans) != 1 or not has_accounts:
        return {"pairs": [], "days": 0, "unpaired": "the runs do not cover the same days of an account"}
    series = load_series(workspace, CACHE, runs)
    returns = [[series[run.id].returns] for run in runs]
    if len({len(daily) for (daily,) in returns}) != 1:
        return {"pairs": [], "days": 0, "unpaired": "the runs do not cover the same days of an account"}
    pairs = [
        {
            "first": runs[pair.first].id,
            "second": runs[pair.second].id,
            "percent": pair.percent,
            "interval": None if pair.together is None else list(pair.together),
            "p": pair.p,
            "told_apart": pair.side != 0,
        }
        for pair in differences(returns)
    ]
    return {"pairs": pairs, "days": len(returns[0][0]), "unpaired": ""}
