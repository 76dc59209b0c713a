"""Metrics of a finished predict run, computed only from its equity, receipts and calls.

`compute_predict` returns plain values ready for JSON; an undefined value is None, never NaN or infinity. Metrics shared
with the perp venue (return, drawdown, Sharpe, counts) use the same functions and names. This module replays nothing and
reads no market data. `docs/predict-metrics.md` explains each metric.
"""

import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from pitboss.core.money import ZERO, exact
from pitboss.core.receipt import Receipt
from pitboss.sim.metrics import columns, count_figures, daily_returns, equity_course, equity_figures, intervals
from pitboss.sim.statistics import calibration, scores
from pitboss.sim.statistics.binomial import wilson
from pitboss.sim.statistics.bootstrap import MIN_BOOTSTRAP_RETURNS
from pitboss.venues.predict.outcome import MarketCall, PredictOutcome

REFERENCES = ("ask", "normalised", "fair")
"""Three readings of the market's own probability; see `reference`."""


@exact
def compute_predict(outcome: PredictOutcome, seed: int = 0) -> dict[str, Any]:
    """Compute all metrics of a run. `seed` seeds the bootstraps."""
    return {
        **money_figures(outcome, seed),
        **_trade_figures(outcome),
        **_call_figures(outcome.calls, seed),
        **_counts(outcome),
        "warnings": _warnings(outcome),
    }


def money_figures(outcome: PredictOutcome, seed: int) -> dict[str, Any]:
    """Compute the metrics of the equity curve."""
    course = equity_course(outcome)
    figures = equity_figures(outcome, course, intervals([course.returns], seed)[0])
    return {**figures, "pnl_usd": course.final - course.initial}


def forecasts(calls: Sequence[MarketCall]) -> list[MarketCall]:
    """Return the calls that can be scored: with a confidence, on a market that was open and has since settled."""
    return [call for call in calls if call.forecast and call.confidence is not None and call.won is not None]


def reference(call: MarketCall, kind: str) -> float | None:
    """Return the market's probability of the chosen side.

    `ask` is the ask itself, spread included. `normalised` divides it by the sum of both sides' asks, so that both add
    up to one. `fair` is the value from the venue's surface, without spread.
    """
    if kind == "fair":
        return None if call.fair is None else float(call.fair)
    if call.ask is None or kind == "ask":
        return None if call.ask is None else float(call.ask)
    other_ask = call.other_ask
    return None if other_ask is None else float(call.ask / (call.ask + other_ask))


def score(calls: Sequence[MarketCall], seed: int = 0) -> dict[str, Any]:
    """Score the model on these forecasts, and against each reading of the market where that reading exists."""
    chances, won = [_confidence(call) for call in calls], [bool(call.won) for call in calls]
    curve = calibration.curve(chances, won)
    return {
        "calls": len(calls),
        "markets": len({call.market_id for call in calls}),
        "brier": scores.brier(chances, won),
        "log_loss": scores.log_loss(chances, won),
        "mean_confidence": math.fsum(chances) / len(chances) if chances else None,
        "observed": sum(won) / len(won) if won else None,
        "calibration_error": calibration.calibration_error(curve),
        "calibration": curve,
        "against": {kind: _against(calls, kind, seed) for kind in REFERENCES},
    }


def _against(calls: Sequence[MarketCall], kind: str, seed: int) -> dict[str, Any]:
    """Score model and market on the same calls."""
    pairs = [(call, chance) for call in calls if (chance := reference(call, kind)) is not None]
    compared = [call for call, _ in pairs]
    ours, theirs, won = (
        [_confidence(call) for call in compared],
        [chance for _, chance in pairs],
        [bool(c.won) for c in compared],
    )
    model, market = scores.brier(ours, won), scores.brier(theirs, won)
    curve = calibration.curve(theirs, won)
    return {
        "calls": len(compared),
        "markets": len({call.market_id for call in compared}),
        "model_brier": model,
        "market_brier": market,
        "model_log_loss": scores.log_loss(ours, won),
        "market_log_loss": scores.log_loss(theirs, won),
        "skill": scores.skill(model, market),
        "skill_ci": scores.skill_interval(ours, theirs, won, [call.market_id for call in compared], seed),
        "calibration_error": calibration.calibration_error(curve),
        "calibration": curve,
    }


def _call_figures(calls: Sequence[MarketCall], seed: int) -> dict[str, Any]:
    forecast_calls = [call for call in calls if call.forecast]
    scored = forecasts(calls)
    minted = [call for call in forecast_calls if call.minted]
    wins, resolved = sum(bool(call.won) for call in minted), [call for call in minted if call.won is not None]
    return {
        "calls": len(forecast_calls),
        "calls_unresolved": sum(call.won is None for call in forecast_calls),
        "calls_without_confidence": sum(call.confidence is None for call in forecast_calls),
        "minted_resolved": len(resolved),
        "wins": wins,
        "hit_rate": wins / len(resolved) if resolved else None,
        "hit_rate_ci": wilson(wins, len(resolved)),
        "log_loss_clip": scores.CLIP,
        "scores": {"all": score(scored, seed), "minted": score([call for call in scored if call.minted], seed)},
        "edge": {"calls": _call_edge(scored), "minted": _minted_edge(resolved)},
    }


def _call_edge(scored: Sequence[MarketCall]) -> dict[str, Any]:
    """Return the mean edge of scored calls with an ask, equally weighted, whether or not they were executed."""
    rows = [(_confidence(call), float(call.ask), bool(call.won)) for call in scored if call.ask is not None]
    count = len(rows)
    return {
        "calls": count,
        "promised": math.fsum(chance - ask for chance, ask, _ in rows) / count if count else None,
        "realised": math.fsum(hit - ask for _, ask, hit in rows) / count if count else None,
    }


def _minted_edge(resolved: Sequence[MarketCall]) -> dict[str, Any]:
    """Return the edge of executed mints as if held to settlement; `promised` covers those with a confidence."""
    contracts = promised_on = realised = promised = ZERO
    for call in resolved:
        traded = call.traded
        assert traded is not None
        contracts += traded.quantity
        realised += (int(bool(call.won)) - traded.price) * traded.quantity
        if call.confidence is not None:
            promised_on += traded.quantity
            promised += (call.confidence - traded.price) * traded.quantity
    return {
        "calls": len(resolved),
        "contracts": float(contracts),
        "promised_per_contract": float(promised / promised_on) if promised_on else None,
        "promised_usd": float(promised) if promised_on else None,
        "realised_per_contract": float(realised / contracts) if contracts else None,
        "realised_usd": float(realised) if contracts else None,
    }


def _trade_figures(outcome: PredictOutcome) -> dict[str, Any]:
    """Return the totals of mints, redeems and payouts, and the cost of the spread.

    Sums are exact until the final conversion.
    """
    spend = redeemed = payout = basis = ZERO
    mint_spread = redeem_spread = ZERO
    mints = redeems = payouts = unknown = 0
    for receipt in outcome.receipts:
        facts = receipt.facts
        if receipt.kind not in ("filled", "settled") or facts.get("account") != outcome.account_id:
            continue
        if facts["action"] == "mint":
            mints += 1
            spend += Decimal(facts["cost"])
        elif receipt.kind == "settled":
            payouts += 1
            payout += Decimal(facts["payout"])
            basis += Decimal(facts["basis"])
        else:
            redeems += 1
            redeemed += Decimal(facts["payout"])
            basis += Decimal(facts["basis"])
        spread = spread_cost(receipt)
        if spread is None:
            unknown += 1
        elif facts["action"] == "mint":
            mint_spread += spread
        else:
            redeem_spread += spread
    total = mint_spread + redeem_spread
    return {
        "mints": mints,
        "redeems": redeems,
        "payouts": payouts,
        "total_spend_usd": float(spend),
        "total_redeemed_usd": float(redeemed),
        "total_payout_usd": float(payout),
        "realised_pnl_usd": float(payout + redeemed - basis),
        "spread_cost": {
            "mints_usd": float(mint_spread),
            "redeems_usd": float(redeem_spread),
            "total_usd": float(total),
            "share_of_spend": float(total / spend) if spend else None,
            "unknown_fills": unknown,
        },
    }


def spread_cost(receipt: Receipt) -> Decimal | None:
    """Return a trade's cost of the spread: ask minus fair for a mint, fair minus bid for a redeem.

    It is zero after settlement and None if the fair price is missing.
    """
    facts = receipt.facts
    if receipt.kind == "settled":
        return ZERO
    fair = facts.get("fair")
    if fair is None:
        return None
    apart = Decimal(facts["price"]) - Decimal(fair)
    return (apart if facts["action"] == "mint" else -apart) * Decimal(facts["quantity"])


def _counts(outcome: PredictOutcome) -> dict[str, Any]:
    late = Counter(call.code for call in outcome.calls if call.late)
    fills = sum(
        1
        for receipt in outcome.receipts
        if receipt.kind == "filled" and receipt.facts.get("account") == outcome.account_id
    )
    return {**count_figures(outcome, fills), "late_rejections_by_rule": dict(sorted(late.items()))}


def _warnings(outcome: PredictOutcome) -> list[str]:
    warnings: list[str] = []
    forecast_calls = [call for call in outcome.calls if call.forecast]
    scored = forecasts(outcome.calls)
    if not any(call.minted for call in forecast_calls):
        refused = sum(outcome.rejections_by_rule.values())
        warnings.append(
            f"Nothing was bought: {outcome.ticks} ticks → {outcome.decisions_asked} asked → {outcome.proposed} proposals"
            f" → {refused} refused → {outcome.accepted} accepted → 0 fills."
        )
    if forecast_calls and not any(call.confidence is not None for call in forecast_calls):
        warnings.append("No decision named a confidence, so there is no probability to score.")
    markets = len({call.market_id for call in scored})
    if scored and markets < scores.MIN_MARKETS:
        warnings.append(f"Only {markets} markets were scored: an interval of the skill needs {scores.MIN_MARKETS}.")
    unresolved = sum(call.won is None for call in forecast_calls)
    if unresolved:
        warnings.append(
            f"{unresolved} of {len(forecast_calls)} calls are on markets that did not settle within the run."
        )
    days = len(daily_returns(float(outcome.initial_usd), *columns(outcome.equity_at, outcome.equity_usd)))
    if days < MIN_BOOTSTRAP_RETURNS:
        warnings.append(f"Only {days} daily returns: intervals of return and Sharpe need {MIN_BOOTSTRAP_RETURNS}.")
    return warnings


def _confidence(call: MarketCall) -> float:
    assert call.confidence is not None
    return float(call.confidence)
