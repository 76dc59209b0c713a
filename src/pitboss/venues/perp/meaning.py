"""Descriptions of the rules, metrics and proposals of the perp venue, for reports and messages."""

from collections.abc import Mapping
from typing import Any

from pitboss.report import figures
from pitboss.report.meaning import Metric, RuleMeaning
from pitboss.report.refusals import ACTIONS
from pitboss.report.source import number
from pitboss.runs.stored import one_line

CAPPED = "buy_and_hold_capped"
"""The baseline that holds no more than the caps of the skill allow."""
RULES: dict[str, RuleMeaning] = {
    "R1_SHAPE": RuleMeaning(
        "Malformed", "The proposal was not a valid order: a field was missing, unknown or of the wrong type."
    ),
    "R2_SCOPE": RuleMeaning(
        "Out of scope",
        "The symbol is not in the skill or not listed, an opposite position is open, or there is no position or order "
        "to close, reduce or cancel.",
    ),
    "R3_POSITION_CAP": RuleMeaning(
        "Position cap",
        "The position in the symbol, with its working orders, would have exceeded its allowed share of equity.",
    ),
    "R4_EXPOSURE_CAP": RuleMeaning(
        "Exposure cap", "The total exposure would have exceeded the allowed share of equity."
    ),
    "R5_LEVERAGE_CAP": RuleMeaning(
        "Leverage cap", "The leverage was below 1, not a whole number, or above the maximum of the skill or the asset."
    ),
    "R6_ORDER_SIZE": RuleMeaning(
        "Order size", "After rounding down to whole lots the order was below the minimum size or above the maximum."
    ),
    "R7_ORDER_RATE": RuleMeaning(
        "Order rate", "The maximum number of opening orders had been accepted within the last hour."
    ),
    "R8_HALTED": RuleMeaning(
        "Halted", "Trading was halted (daily loss, drawdown, operator or a broken invariant), or no equity was left."
    ),
    "R9_MARGIN": RuleMeaning("Margin", "Free margin did not cover the order and its fee at the requested leverage."),
    "R10_STALE_DATA": RuleMeaning("Stale data", "The latest price of the symbol was missing, invalid or too old."),
    "R11_PRICE_BAND": RuleMeaning(
        "Price band", "The limit price was too far from the mark, or a stop or take-profit was on the wrong side of it."
    ),
    "R12_DUPLICATE": RuleMeaning(
        "Duplicate", "The same intent had been judged before; the first verdict applies and nothing is sent."
    ),
    "R13_VENUE": RuleMeaning("Venue", "The engine accepted the order and the venue rejected it."),
}

METRICS: dict[str, Metric] = {
    "total_trades": Metric("Round trips", "count", "Trades per symbol, from no position to no position again."),
    "win_rate": Metric("Win rate", "share", "Share of round trips with a profit after all costs."),
    "profit_factor": Metric(
        "Profit factor", "ratio", "Gross profit divided by gross loss; unknown without a losing trade."
    ),
    "avg_win_usd": Metric("Average win", "usd", "Mean profit of the winning round trips."),
    "avg_loss_usd": Metric("Average loss", "usd", "Mean loss of the losing round trips."),
    "exposure_time_pct": Metric("Time in the market", "percent", "Share of base bars with an open position."),
    "turnover": Metric("Turnover", "ratio", "Notional of all fills divided by the starting equity."),
    "total_fees_usd": Metric("Fees", "usd", "Trading fees paid to the venue."),
    "total_funding_usd": Metric("Funding", "usd", "Net funding paid; negative if received."),
    "total_slippage_usd": Metric(
        "Slippage", "usd", "Cost of fills worse than the bar's open or the stop; already in the fill prices."
    ),
    "total_penalties_usd": Metric("Liquidation penalties", "usd", "Penalties charged for liquidated positions."),
    "liquidations": Metric("Liquidations", "count", "Liquidations because equity fell to the maintenance margin."),
    "deficit_usd": Metric("Deficit", "usd", "Losses beyond the equity of the account."),
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
