"""Descriptions of the predict venue's rules, metrics and decisions, for reports and messages."""

from collections.abc import Mapping
from typing import Any

from pitboss.report import figures
from pitboss.report.meaning import Metric, RuleMeaning
from pitboss.report.source import number
from pitboss.runs.stored import one_line

RULES: dict[str, RuleMeaning] = {
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

METRICS: dict[str, Metric] = {
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
"""Metrics specific to this venue."""


def describe_decision(row: Mapping[str, Any]) -> str:
    """Describe a decision in a few words."""
    if row.get("action") not in ("mint", "redeem"):
        return "something malformed"
    parts = [f"{row['action']} {one_line(row.get('side') or 'a side')} at {figures.price(row.get('strike'))}"]
    if row.get("market_id"):
        parts.append(f"in {one_line(row['market_id'])}")
    if (spend := number(row.get("spend"))) is not None:
        parts.append(f"for {figures.with_unit(spend, 'DUSDC')}")
    if (chance := number(row.get("confidence"))) is not None:
        parts.append(f"with a confidence of {figures.share(chance)}")
    return " ".join(parts)
