"""Baselines for a predict run: forecasters that need no model, and the trading results of the heuristics.

All forecasters are scored on the same calls: those with a confidence, a settled market and a price for both sides. This
module replays nothing: the caller supplies the ledgers of the heuristics, replayed over the same course.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pitboss.core.money import exact
from pitboss.sim.statistics import scores
from pitboss.venues.predict.metrics import compute_predict, forecasts, reference
from pitboss.venues.predict.outcome import MarketCall, PredictLedger, PredictOutcome

COIN = 0.5
FORECASTERS: dict[str, Callable[[MarketCall], float]] = {
    "model": lambda call: float(call.confidence or 0),
    "market": lambda call: reference(call, "normalised") or 0.0,
    "market_ask": lambda call: reference(call, "ask") or 0.0,
    "coin": lambda call: COIN,
    "always_no": lambda call: float(call.side == "NO"),
}
"""Probability that each forecaster assigns to the chosen side.

`market` is implied by the asks, normalised so that both sides add up to one.
"""

TRADED = (
    "total_return_pct",
    "final_equity_usd",
    "pnl_usd",
    "max_drawdown_pct",
    "sharpe",
    "mints",
    "payouts",
    "wins",
    "hit_rate",
    "total_spend_usd",
    "spread_cost",
    "edge",
)
"""Metrics reported for the trading of a heuristic."""


@exact
def baseline_metrics(
    outcome: PredictOutcome, ledgers: Mapping[str, PredictLedger] | None = None, seed: int = 0
) -> dict[str, Any]:
    """Score every forecaster on the run's calls and compute the trading metrics of each heuristic on the same course."""
    same = comparable(outcome.calls)
    return {
        "forecasts": {
            "calls": len(same),
            "markets": len({call.market_id for call in same}),
            "all": forecaster_scores(same),
            "minted": forecaster_scores([call for call in same if call.minted]),
        },
        "trading": {name: traded(outcome, ledger, seed) for name, ledger in (ledgers or {}).items()},
    }


def comparable(calls: Sequence[MarketCall]) -> list[MarketCall]:
    """Return the scored calls for which every forecaster has a probability."""
    return [call for call in forecasts(calls) if reference(call, "normalised") is not None]


def forecaster_scores(calls: Sequence[MarketCall]) -> dict[str, dict[str, float | int | None]]:
    """Return the Brier score and log loss of each forecaster on these calls."""
    won = [bool(call.won) for call in calls]
    scores_by_forecaster: dict[str, dict[str, float | int | None]] = {}
    for name, chance in FORECASTERS.items():
        chances = [chance(call) for call in calls]
        scores_by_forecaster[name] = {
            "calls": len(calls),
            "brier": scores.brier(chances, won),
            "log_loss": scores.log_loss(chances, won),
        }
    return scores_by_forecaster


def traded(outcome: PredictOutcome, ledger: PredictLedger, seed: int) -> dict[str, Any]:
    """Return the trading metrics of a heuristic, over the run's range and with its initial equity."""
    ran = ledger.outcome(outcome.from_at, outcome.to_at, outcome.interval_ms, outcome.initial_usd)
    figures = compute_predict(ran, seed)
    return {name: figures[name] for name in TRADED}
