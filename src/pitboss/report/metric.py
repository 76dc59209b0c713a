"""The metrics that trials of a study can be judged by, with their names and forms.

Only single numbers that runs of the venue really have; a test compares this list with runs. Which direction is better and
where its value is in the metrics of a run is `sim/study/choice.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pitboss.core.errors import UserError
from pitboss.core.suggestion import did_you_mean, nearest
from pitboss.report.meaning import METRICS, OF_ACCOUNTS, Metric, unknown_metric

_OF_STUDIES = "deflated_sharpe"
"""A figure of a study, not of one run."""


def metrics_of(own: Mapping[str, Metric], has_account: bool = True) -> dict[str, Metric]:
    """All metrics that trials can be judged by, with the `own` ones of their venue."""
    left_out = {_OF_STUDIES} if has_account else OF_ACCOUNTS
    metrics = {name: metric for name, metric in METRICS.items() if name not in left_out and metric.form != "table"}
    return metrics | {name: metric for name, metric in own.items() if metric.form != "whole"}  # which is text


def metric_meaning(metric: str, own: Mapping[str, Metric]) -> Metric:
    """The name and form of a metric, also of one that this version does not know."""
    return METRICS.get(metric) or own.get(metric) or unknown_metric(metric)


def meanings_of(document: Mapping[str, Any]) -> dict[str, Metric]:
    """The metrics of a venue as the document of a study or an arena carries them."""
    return {name: Metric(*row) for name, row in (document.get("metric_meanings") or {}).items()}


def checked_metric(
    metric: str, own: Mapping[str, Metric], examples: Sequence[str], venue: str, has_account: bool = True
) -> str:
    """The metric to judge trials by, if runs of the venue have it."""
    available = metrics_of(own, has_account)
    if metric in available:
        return metric
    if metric == _OF_STUDIES and has_account:
        raise UserError(
            f"--by: no single run has a {metric}", "choose by sharpe; the study reports it for its best trial"
        )
    suggestion = _by_label(metric, available) or nearest(metric.lower(), available)
    hint = did_you_mean(suggestion, f"for example {', '.join(examples[:2])} or {examples[-1]}")
    raise UserError(f"--by: runs of the {venue} venue have no metric {metric!r}", hint)


def _by_label(text: str, available: Mapping[str, Metric]) -> str | None:
    """The metric that has this label on a page."""
    label = text.lower().replace("_", " ").replace("-", " ")
    matches = (name for name, metric in available.items() if label in (metric.label.lower(), name.replace("_", " ")))
    return next(matches, None)
