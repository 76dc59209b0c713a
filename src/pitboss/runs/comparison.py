"""Several runs side by side: what differs in their inputs, metrics, results and decisions.

Every value comes from stored runs; nothing is replayed. Runs over the same days are compared in pairs, as the entries of an arena
are; others are only listed side by side, because days that one of them did not see say nothing about a difference.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.report.meaning import INTERVALS, METRICS
from pitboss.report.measures import shown_difference
from pitboss.report.series import Floats
from pitboss.report.source import number
from pitboss.runs.compare import compare
from pitboss.runs.compared_decisions import differing_decisions
from pitboss.runs.compared_inputs import differing_inputs
from pitboss.runs.listing import short
from pitboss.runs.run_index import RunIndex
from pitboss.runs.venues import venue_of
from pitboss.sim.metrics import daily_returns
from pitboss.sim.statistics.bootstrap import MIN_BOOTSTRAP_RETURNS
from pitboss.sim.statistics.paired import differences
from pitboss.store.runs import Run

LABELS = "ABCDEFGH"
MOST_RUNS = len(LABELS)
INTERVAL = (
    "Difference of final equity with its 95% interval: blocks of days are resampled (paired bootstrap), the same days for all runs. "
    "The intervals hold for all pairs at once (max-t)."
)

Curve = tuple[Floats, Floats]


def comparison(workspace: Workspace, runs: Sequence[Run], index_of: Callable[[Run], RunIndex]) -> dict[str, Any]:
    """The document of a comparison of two to eight runs. The first run is what the others are compared with.

    `index_of` reads the decisions of a run: from memory, from a file or from its records.
    """
    if not 2 <= len(runs) <= MOST_RUNS or len({run.id for run in runs}) != len(runs):
        raise UserError(f"a comparison has from 2 to {MOST_RUNS} different runs", "name each of them once")
    now = workspace.now()
    indexes = [index_of(run) for run in runs]
    first, *others = zip(runs, indexes, LABELS, strict=False)
    return {
        "runs": [{**short(run, now), "label": label} for run, label in zip(runs, LABELS, strict=False)],
        "inputs": differing_inputs(runs),
        "metrics": _metrics(runs),
        **_paired(runs, indexes),
        "decisions": [differing_decisions(first, other) for other in others],
        "difference": compare(workspace, runs[0], runs[1]) if len(runs) == 2 else None,
    }


def equity_curve(run: Run, index: RunIndex) -> Curve | None:
    """Times and equity of a run relative to its start at 100; None without an account or a point."""
    initial = float(run.params.get("equity_usd") or 0)
    if not venue_of(run.params["skill"]).has_account or len(index.equity_at) < 2 or not initial:
        return None
    return index.equity_at.astype(np.float64), 100.0 * index.equity_usd / initial


def _metrics(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Every metric that a run has as a number, with its interval where there is one, and its difference from the first run."""
    own = {name: metric for run in runs for name, metric in venue_of(run.params["skill"]).metrics().items()}
    measured = [run.metrics or {} for run in runs]
    rows: list[dict[str, Any]] = []
    for name, metric in {**METRICS, **own}.items():
        values = [number(metrics.get(name)) for metrics in measured]
        if metric.form == "table" or all(value is None for value in values):
            continue
        rows.append(
            {
                "metric": name,
                "label": metric.label,
                "form": metric.form,
                "values": values,
                "intervals": [metrics.get(INTERVALS[name]) if name in INTERVALS else None for metrics in measured],
                "differences": [None, *(shown_difference(value, values[0], metric.form) for value in values[1:])],
            }
        )
    return rows


def _paired(runs: Sequence[Run], indexes: Sequence[RunIndex]) -> dict[str, Any]:
    """The difference of each run from every earlier one, if all are complete and cover the same days of an account."""
    unpaired = _why_unpaired(runs)
    returns = [] if unpaired else [_daily_returns(run, index) for run, index in zip(runs, indexes, strict=True)]
    if len({len(daily) for daily in returns}) > 1:
        unpaired = "the runs have results of different days"
    if unpaired:
        return {"pairs": [], "days": 0, "unpaired": unpaired, "interval_meaning": ""}
    last = len(runs) - 1
    # reversed, because the first entry of a pair is expressed relative to the second
    pairs = [
        {
            "first": runs[last - pair.first].id,
            "second": runs[last - pair.second].id,
            "percent": pair.percent,
            "interval": None if pair.together is None else list(pair.together),
            "p": pair.p,
            "told_apart": pair.side != 0,
        }
        for pair in reversed(differences([[daily] for daily in reversed(returns)]))
    ]
    days = len(returns[0])
    few = f" There is none here: it needs {MIN_BOOTSTRAP_RETURNS} days." if days < MIN_BOOTSTRAP_RETURNS else ""
    return {"pairs": pairs, "days": days, "unpaired": "", "interval_meaning": INTERVAL + few}


def _daily_returns(run: Run, index: RunIndex) -> list[float]:
    return daily_returns(float(run.params["equity_usd"]), index.equity_at, index.equity_usd)


def _why_unpaired(runs: Sequence[Run]) -> str:
    """Why the results cannot be compared day by day; empty if they can."""
    if not all(venue_of(run.params["skill"]).has_account for run in runs):
        return "not all of the runs have an account whose value is measured"
    if any(run.status != "complete" for run in runs):
        return "not all of the runs are complete"
    if len({(run.params["from_at"], run.params["to_at"]) for run in runs}) != 1:
        return "the runs cover different days"
    return ""
