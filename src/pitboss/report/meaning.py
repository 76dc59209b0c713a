"""Short meanings, in plain words, of the engine's rules, of the metrics and of the flags of a no-op."""

from typing import Literal, NamedTuple

Form = Literal["percent", "signed_percent", "share", "signed_share", "ratio", "score", "usd", "count", "days", "table"]


class RuleMeaning(NamedTuple):
    """A rule of the engine as the report names it."""

    name: str
    meaning: str


class Metric(NamedTuple):
    """A metric as the report names it."""

    label: str
    form: Form
    meaning: str


RULES: dict[str, RuleMeaning] = {
    "R1_SHAPE": RuleMeaning(
        "Malformed", "The proposal was not a valid order: a field missing, unknown, or of the wrong kind."
    ),
    "R2_SCOPE": RuleMeaning(
        "Out of scope",
        "Opens only in the symbols the skill names and the venue lists, never against a position already held; "
        "closes, reductions and cancels only of something that exists.",
    ),
    "R3_POSITION_CAP": RuleMeaning(
        "Position cap", "The symbol would have grown beyond its allowed share of equity, orders still waiting included."
    ),
    "R4_EXPOSURE_CAP": RuleMeaning(
        "Exposure cap", "All symbols together would have grown beyond the allowed share of equity."
    ),
    "R5_LEVERAGE_CAP": RuleMeaning(
        "Leverage cap", "The leverage was below 1, not a whole number, or above what the skill or the asset allows."
    ),
    "R6_ORDER_SIZE": RuleMeaning(
        "Order size", "After rounding down to whole lots the order was too small or too large to be sent."
    ),
    "R7_ORDER_RATE": RuleMeaning("Order rate", "Too many opening orders had been accepted within the last hour."),
    "R8_HALTED": RuleMeaning(
        "Halted", "A halt was on (daily loss, drawdown, operator or a broken invariant) or equity was gone."
    ),
    "R9_MARGIN": RuleMeaning("Margin", "Free margin did not cover the order at the leverage asked, with its fee."),
    "R10_STALE_DATA": RuleMeaning(
        "Stale data", "The newest price of the symbol was missing, unusable or too old to act on."
    ),
    "R11_PRICE_BAND": RuleMeaning(
        "Price band", "A limit price lay too far beyond the mark, or a stop or take-profit on the wrong side of it."
    ),
    "R12_DUPLICATE": RuleMeaning(
        "Duplicate", "The same intent had been judged before; its first verdict stands and nothing is sent."
    ),
    "R13_VENUE": RuleMeaning("Venue", "The engine let it pass and the venue turned it down."),
}

PREDICT_RULES: dict[str, RuleMeaning] = {
    "B1_SHAPE": RuleMeaning(
        "Malformed",
        "The decision was not valid: a field missing, unknown or of the wrong kind, or a number out of range.",
    ),
    "B2_MARKET": RuleMeaning(
        "No such market",
        "It named no market that was open, or none at all while several were; a redeem needs a position there.",
    ),
    "B3_EXPIRY": RuleMeaning("Too near expiry", "Too little time was left before the market expired."),
    "B4_STALE": RuleMeaning(
        "Stale price", "The newest price was too old, or the next one came too long after the decision."
    ),
    "B5_NOT_QUOTED": RuleMeaning(
        "No quote",
        "The strike was off the grid or had no price at the moment of execution, or the spend bought nothing.",
    ),
    "B6_ASK_BOUNDS": RuleMeaning(
        "Ask out of bounds", "The ask was below or above what the venue admits, 1% to 99% by default."
    ),
    "B7_SLIPPAGE": RuleMeaning("Price ran away", "The executed ask was too far above the one last shown to the model."),
    "B8_EDGE": RuleMeaning(
        "Too little edge", "The model's own confidence less the ask was below the least the skill asks for."
    ),
    "B9_SPEND_TICK": RuleMeaning(
        "Tick's budget", "More than one tick may spend: cut to what was left, and refused only where nothing was."
    ),
    "B10_SPEND_DAY": RuleMeaning("Day's budget", "The spend of this UTC day would have gone beyond its cap."),
    "B11_SPEND_TOTAL": RuleMeaning("Whole budget", "Everything ever spent would have gone beyond its cap."),
    "B12_EXPOSURE": RuleMeaning(
        "Expiry's exposure", "The open contracts of one expiry would have cost more than is allowed."
    ),
    "B13_BALANCE": RuleMeaning("Balance", "The account could not pay for it."),
    "B14_DUPLICATE": RuleMeaning(
        "Duplicate", "The same decision had been judged at this tick; its first verdict stands."
    ),
    "B15_VENUE": RuleMeaning("Venue", "The engine let it pass and the venue turned it down."),
}
"""Those of the predict venue."""

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
    "total_trades": Metric("Round trips", "count", "Trades from flat to flat, per symbol."),
    "win_rate": Metric("Win rate", "share", "Share of round trips that made money after all costs."),
    "profit_factor": Metric("Profit factor", "ratio", "Money won over money lost; unknown without a losing trade."),
    "avg_win_usd": Metric("Average win", "usd", "Mean result of the winning round trips."),
    "avg_loss_usd": Metric("Average loss", "usd", "Mean size of the losing round trips."),
    "exposure_time_pct": Metric("Time in the market", "percent", "Share of base bars with any position open."),
    "turnover": Metric("Turnover", "ratio", "Value of all fills over the starting equity."),
    "total_fees_usd": Metric("Fees", "usd", "Paid to the venue for fills."),
    "total_funding_usd": Metric(
        "Funding", "usd", "Net paid to the other side of the perpetual; below zero means received."
    ),
    "total_slippage_usd": Metric(
        "Slippage", "usd", "Worse price than the bar's open or the stop; already in the fill prices."
    ),
    "total_penalties_usd": Metric("Liquidation penalties", "usd", "Charged on top when positions were liquidated."),
    "liquidations": Metric("Liquidations", "count", "Times the account fell to its maintenance margin."),
    "deficit_usd": Metric("Deficit", "usd", "Loss beyond the account's last dollar."),
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


def rule(code: str) -> RuleMeaning:
    """The rule of a code, also of one that this version does not know."""
    return (
        RULES.get(code)
        or PREDICT_RULES.get(code)
        or RuleMeaning(code, "A rule that this version of the report does not know.")
    )
