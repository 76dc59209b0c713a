"""The metrics that trials of a study can be judged by, on each venue, with how they are named and written.

Only single numbers that runs of the venue really have; a test holds this list against runs. Which way is better and where a
figure lies in the metrics of a run is `sim/study/choice.py`.
"""

from difflib import get_close_matches

from pitboss.core.errors import UserError
from pitboss.report.meaning import METRICS, Metric

PERP, PREDICT = "perp", "predict"

FORECASTS: dict[str, Metric] = {
    "brier": Metric(
        "Brier score",
        "score",
        "Mean squared distance of the stated confidence from what happened; less is better, 0.25 is a coin.",
    ),
    "log_loss": Metric(
        "Log loss", "score", "Mean surprise at what happened; less is better, and certain mistakes cost the most."
    ),
    "calibration_error": Metric(
        "Calibration error", "score", "How far stated confidence lies from how often it came true; less is better."
    ),
    "brier_skill": Metric(
        "Skill against the market",
        "signed_share",
        "How much smaller the Brier score is than that of the market's own price; above zero is better than the market.",
    ),
    "hit_rate": Metric("Hit rate", "share", "Share of bought contracts that paid."),
    "pnl_usd": Metric("Profit", "usd", "What the account gained or lost."),
    "realised_pnl_usd": Metric("Realised profit", "usd", "What settled and sold contracts brought beyond their price."),
    "calls": Metric("Calls", "count", "Contracts that it tried to buy."),
    "mints": Metric("Contracts bought", "count", "Calls that the engine and the venue let through."),
    "wins": Metric("Calls won", "count", "Bought contracts that paid."),
}
"""Those that only runs of the predict venue have."""

_ONLY_PERP = frozenset(
    {
        "total_trades",
        "win_rate",
        "profit_factor",
        "avg_win_usd",
        "avg_loss_usd",
        "exposure_time_pct",
        "turnover",
        "total_fees_usd",
        "total_funding_usd",
        "total_slippage_usd",
        "total_penalties_usd",
        "liquidations",
        "deficit_usd",
    }
)
_OF_MANY = "deflated_sharpe"
"""Not a figure of one run."""

_SHOWN = {
    PERP: ("total_return_pct", "sharpe", "max_drawdown_pct", "total_trades"),
    PREDICT: ("total_return_pct", "brier", "log_loss", "hit_rate", "calls"),
}
_FIRST = {PERP: "sharpe", PREDICT: "total_return_pct"}


def metrics_of(venue: str) -> dict[str, Metric]:
    """All that trials on a venue can be judged by."""
    own = {name: metric for name, metric in METRICS.items() if metric.form != "table" and name != _OF_MANY}
    if venue != PREDICT:
        return own
    return {name: metric for name, metric in own.items() if name not in _ONLY_PERP} | FORECASTS


def named(metric: str) -> Metric:
    """How a metric is written, also one that this version does not know."""
    return METRICS.get(metric) or FORECASTS.get(metric) or Metric(metric.replace("_", " ").capitalize(), "ratio", "")


def shown(venue: str) -> tuple[str, ...]:
    """What a table of trials shows beside the metric they are judged by."""
    return (*_SHOWN.get(venue, _SHOWN[PERP]), "total_ai_cost_usd")


def chosen(metric: str, venue: str) -> str:
    """The metric to judge by: the one that was asked for if runs of the venue have it, the venue's own where none was.

    Sharpe needs days, and forecasts are mostly judged over hours: so on the predict venue it is the return.
    """
    if not metric:
        return _FIRST.get(venue, _FIRST[PERP])
    known = metrics_of(venue)
    if metric in known:
        return metric
    if metric == _OF_MANY:
        raise UserError(f"--by: no single run has a {metric}", "choose by sharpe; the study tells it of its best")
    other = PERP if venue == PREDICT else PREDICT
    if metric in metrics_of(other):
        raise UserError(
            f"--by: runs of the {venue} venue have no {metric}",
            f"that is one of the {other} venue; here for example {_examples(venue)}",
        )
    near = _by_label(metric, known) or get_close_matches(metric.lower(), known, 1)
    raise UserError(
        f"--by: there is no metric {metric!r}", f"did you mean {near[0]}?" if near else f"one of {', '.join(known)}"
    )


def _by_label(words: str, known: dict[str, Metric]) -> list[str]:
    """The metric that is called so on a page."""
    said = words.lower().replace("_", " ").replace("-", " ")
    return [name for name, metric in known.items() if said in (metric.label.lower(), name.replace("_", " "))]


def _examples(venue: str) -> str:
    names = _SHOWN.get(venue, _SHOWN[PERP])
    return f"{', '.join(names[:2])} or {names[2]}"
