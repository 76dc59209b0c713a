"""Meanings, in plain words, of the metrics and no-op flags that every venue has; each venue adds its own."""

from typing import Literal, NamedTuple

Form = Literal["percent", "signed_percent", "share", "signed_share", "ratio", "score", "usd", "count", "days", "table"]


class RuleMeaning(NamedTuple):
    """A rule of a venue as pages name it."""

    name: str
    meaning: str


class Metric(NamedTuple):
    """A metric as pages name it."""

    label: str
    form: Form
    meaning: str


METRICS: dict[str, Metric] = {
    "total_return_pct": Metric(
        "Total return", "signed_percent", "Change of equity from the start to the end, after all trading costs."
    ),
    "final_equity_usd": Metric(
        "Final equity", "usd", "What the account was worth at the end, open positions at their mark."
    ),
    "cagr": Metric(
        "Yearly growth", "signed_share", "The return as if it went on for a year; misleading for short runs."
    ),
    "max_drawdown_pct": Metric("Max drawdown", "percent", "Deepest fall from an earlier peak, seen at every base bar."),
    "max_drawdown_duration_days": Metric(
        "Longest drawdown", "days", "Longest time from a peak until it was reached again."
    ),
    "sharpe": Metric("Sharpe", "ratio", "Mean daily return over its deviation, scaled to a year; risk-free rate 0."),
    "sortino": Metric("Sortino", "ratio", "Like Sharpe, but only losing days count as risk."),
    "probabilistic_sharpe": Metric(
        "Probabilistic Sharpe", "share", "Chance that the true Sharpe is above zero, given this sample."
    ),
    "deflated_sharpe": Metric("Deflated Sharpe", "share", "The same after allowing for how many variants were tried."),
    "total_ai_cost_usd": Metric(
        "Cost of the model", "usd", "Paid for the answers that were used; not taken from the account."
    ),
    "cost_per_decision_usd": Metric("Cost per decision", "usd", "Cost of the model for each tick that asked it."),
    "total_ticks": Metric("Ticks", "count", "Times the schedule came round."),
    "total_proposed_actions": Metric("Proposals", "count", "What was proposed other than doing nothing."),
    "total_accepted_actions": Metric("Accepted", "count", "Proposals that the engine let through."),
    "rejections_by_rule": Metric("Refused by rule", "table", "Proposals that a rule refused."),
    "noops_by_flag": Metric(
        "No-ops by flag", "table", "Ticks that ended in nothing, by flag; plain means it chose to hold."
    ),
}

INTERVALS: dict[str, str] = {"total_return_pct": "total_return_ci", "sharpe": "sharpe_ci"}
"""Metric → the key of its 95 % interval."""

FLAGS: dict[str, str] = {
    "plain": "the agent chose to hold",
    "asleep": "the skill's wake conditions did not hold",
    "ruined": "the equity was gone",
    "no_decision": "the model ended without a valid proposal",
    "multiple_proposals": "the model proposed several different orders at once",
    "model_error": "the model's provider failed",
}
NOT_ASKED = ("asleep", "ruined")
"""Flags of ticks at which the model was not asked."""


def unknown_rule(code: str) -> RuleMeaning:
    """The meaning of a code that this version does not know."""
    return RuleMeaning(code, "A rule that this version of the report does not know.")


def unknown_metric(name: str) -> Metric:
    """The meaning of a metric that this version does not know."""
    return Metric(name.replace("_", " ").capitalize(), "ratio", "")
