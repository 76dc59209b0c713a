"""Labels and explanations of the metrics and no-op flags that every venue has; each venue adds its own."""

from typing import Literal, NamedTuple

Form = Literal[
    "percent", "signed_percent", "share", "signed_share", "ratio", "score", "usd", "count", "whole", "days", "table"
]
"""`whole` is an integer of any size, given as an int or as text, and shown exactly."""


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
        "Total return", "signed_percent", "Change of equity over the run, after all trading costs."
    ),
    "final_equity_usd": Metric(
        "Final equity", "usd", "Value of the account at the end, with open positions at their mark price."
    ),
    "cagr": Metric(
        "Yearly growth", "signed_share", "The return extrapolated to a year (CAGR); misleading for short runs."
    ),
    "max_drawdown_pct": Metric(
        "Max drawdown", "percent", "Largest fall of equity from an earlier peak, measured at every base bar."
    ),
    "max_drawdown_duration_days": Metric(
        "Longest drawdown", "days", "Longest time from a peak of equity until it was reached again."
    ),
    "sharpe": Metric(
        "Sharpe", "ratio", "Mean daily return divided by its standard deviation, annualised; risk-free rate 0."
    ),
    "sortino": Metric("Sortino", "ratio", "Like Sharpe, with the deviation of losing days only."),
    "probabilistic_sharpe": Metric(
        "Probabilistic Sharpe", "share", "Probability that the true Sharpe is above zero, given this sample."
    ),
    "deflated_sharpe": Metric("Deflated Sharpe", "share", "The same, corrected for the number of variants tried."),
    "total_ai_cost_usd": Metric(
        "Cost of the model", "usd", "Cost of the replies that were used; it does not change the result."
    ),
    "cost_per_decision_usd": Metric(
        "Cost per decision", "usd", "Cost of the model divided by the ticks at which it was called."
    ),
    "total_ticks": Metric("Ticks", "count", "Scheduled decision times in the period."),
    "total_proposed_actions": Metric("Proposals", "count", "Orders or other actions that the agent proposed."),
    "total_accepted_actions": Metric("Accepted", "count", "Proposals that the engine accepted."),
    "rejections_by_rule": Metric("Refused by rule", "table", "Refused proposals, by rule."),
    "noops_by_flag": Metric(
        "No-ops by flag", "table", "Ticks without a proposal, by reason; plain means that the agent chose to hold."
    ),
}

OF_ACCOUNTS = frozenset(
    {
        "total_return_pct",
        "final_equity_usd",
        "cagr",
        "max_drawdown_pct",
        "max_drawdown_duration_days",
        "sharpe",
        "sortino",
        "probabilistic_sharpe",
        "deflated_sharpe",
    }
)
"""Metrics that only runs of a venue with accounts have."""

INTERVALS: dict[str, str] = {"total_return_pct": "total_return_ci", "sharpe": "sharpe_ci"}
"""Metric → the key of its 95 % interval."""

FLAGS: dict[str, str] = {
    "plain": "the agent chose to hold",
    "asleep": "the skill's wake conditions did not hold",
    "ruined": "the account had no equity left",
    "no_decision": "the model gave no valid decision",
    "multiple_proposals": "the model proposed several different orders at once",
    "model_error": "the model's provider failed",
    "deadline": "the decision did not arrive in time",
    "budget": "the budget for model calls was used up",
    "interrupted": "a command ended the wait for the decision",
    "feed_timeout": "market data did not arrive in time",
    "no_feed": "market data was missing",
    "stale_prices": "prices were too old",
    "no_quote": "no market had a quote",
    "account_unread": "the account could not be read",
    "paused": "trading was paused",
    "halted": "the account was halted",
}


def unknown_rule(code: str) -> RuleMeaning:
    """The meaning of a code that this version does not know."""
    return RuleMeaning(code, "A rule that this version of the report does not know.")


def unknown_metric(name: str) -> Metric:
    """The meaning of a metric that this version does not know."""
    return Metric(name.replace("_", " ").capitalize(), "ratio", "")
