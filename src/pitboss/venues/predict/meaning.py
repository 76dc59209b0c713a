"""Descriptions of the predict venue's rules, metrics and decisions, for reports and messages."""

from collections.abc import Mapping
from typing import Any

from pitboss.report import figures
from pitboss.report.meaning import Metric, RuleMeaning
from pitboss.report.source import number
from pitboss.runs.stored import one_line
from pitboss.venues.predict.intents import with_own_names

RULES: dict[str, RuleMeaning] = {
    "B1_SHAPE": RuleMeaning(
        "Malformed",
        "The decision was not valid: a field was missing, unknown or of the wrong type, or a number was out of range.",
    ),
    "B2_MARKET": RuleMeaning(
        "No such market",
        "The decision named no open market, or none while several were open, or a redeem had no position there.",
    ),
    "B3_EXPIRY": RuleMeaning("Too near expiry", "The market was too close to its expiry."),
    "B4_STALE": RuleMeaning(
        "Stale price", "The latest price was too old, or the next price came too long after the decision."
    ),
    "B5_NOT_QUOTED": RuleMeaning(
        "No quote",
        "The strike was not on the grid or had no price at execution, or the spend was too small for a contract.",
    ),
    "B6_ASK_BOUNDS": RuleMeaning(
        "Ask out of bounds", "The ask was outside the range that the venue accepts, 1% to 99% by default."
    ),
    "B7_SLIPPAGE": RuleMeaning("Slippage", "The ask at execution was too far above the last one shown to the model."),
    "B8_EDGE": RuleMeaning(
        "Too little edge", "The model's confidence less the ask was below the minimum of the skill."
    ),
    "B9_SPEND_TICK": RuleMeaning(
        "Spend per tick", "The spend exceeded the cap per tick: reduced to the remainder, refused if nothing remained."
    ),
    "B10_SPEND_DAY": RuleMeaning("Spend per day", "The spend of this UTC day would have exceeded its cap."),
    "B11_SPEND_TOTAL": RuleMeaning("Total spend", "The total spend would have exceeded its cap."),
    "B12_EXPOSURE": RuleMeaning(
        "Exposure per expiry", "The cost of the open contracts of one expiry would have exceeded its cap."
    ),
    "B13_BALANCE": RuleMeaning("Balance", "The balance of the account did not cover the cost."),
    "B14_DUPLICATE": RuleMeaning(
        "Duplicate", "The same decision had been judged at this tick; the first verdict applies."
    ),
    "B15_VENUE": RuleMeaning("Venue", "The engine accepted the decision and the venue rejected it."),
}

METRICS: dict[str, Metric] = {
    "brier": Metric(
        "Brier score",
        "score",
        "Mean squared error of the stated confidence; lower is better, and a constant 50% scores 0.25.",
    ),
    "log_loss": Metric(
        "Log loss",
        "score",
        "Mean negative log-likelihood of the outcomes; lower is better, and confident errors cost most.",
    ),
    "calibration_error": Metric(
        "Calibration error", "score", "Mean gap between stated confidence and observed frequency; lower is better."
    ),
    "brier_skill": Metric(
        "Skill against the market",
        "signed_share",
        "Relative improvement of the Brier score over that of the market's price; above zero is better than the market.",
    ),
    "hit_rate": Metric("Hit rate", "share", "Share of settled mints whose side won, as if held."),
    "pnl_usd": Metric("Profit", "usd", "Profit or loss of the account."),
    "realised_pnl_usd": Metric("Realised profit", "usd", "Proceeds of settled and sold contracts less their cost."),
    "calls": Metric("Calls", "count", "Decisions to buy a contract."),
    "mints": Metric("Mints", "count", "Times contracts were bought."),
    "wins": Metric("Wins", "count", "Settled mints whose side won, as if held."),
}
"""Metrics specific to this venue."""


def describe_decision(row: Mapping[str, Any]) -> str:
    """Describe a decision in a few words."""
    if row.get("action") not in ("mint", "redeem"):
        return "something malformed"
    row = with_own_names(row)
    parts = [f"{row['action']} {one_line(row.get('side') or 'a side')} at {figures.price(row.get('strike'))}"]
    if row.get("market_id"):
        parts.append(f"in {one_line(row['market_id'])}")
    if (spend := number(row.get("spend"))) is not None:
        parts.append(f"for {figures.with_unit(spend, 'DUSDC')}")
    if (chance := number(row.get("confidence"))) is not None:
        parts.append(f"with a confidence of {figures.share(chance)}")
    return " ".join(parts)
