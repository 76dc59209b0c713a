"""Descriptions of the rules, metrics and proposals of the perp venue, for reports and messages."""

from collections.abc import Mapping
from typing import Any

from pitboss.report import figures
from pitboss.report.meaning import Metric, RuleMeaning
from pitboss.report.refusals import ACTIONS
from pitboss.report.source import number
from pitboss.runs.stored import one_line

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

METRICS: dict[str, Metric] = {
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
}
"""The metrics that only runs of this venue have."""


def describe_proposal(row: Mapping[str, Any]) -> str:
    """Describe a proposal in a few words."""
    parts = [
        f"{ACTIONS.get(str(row.get('action')), 'something malformed').lower()} {one_line(row.get('symbol') or '')}".strip()
    ]
    if (size := number(row.get("size_usd"))) is not None:
        parts.append(f"for {figures.usd(size)}")
    if (leverage := number(row.get("leverage"))) is not None:
        parts.append(f"at {figures.with_unit(leverage, 'x')}")
    if number(row.get("limit_price")) is not None:
        parts.append(f"with a limit of {figures.price(row['limit_price'])}")
    return " ".join(parts)
