"""What a run on the predict venue is held against: forecasters that need no model, and the heuristics' trading.

Every forecaster is scored on exactly the same calls: those with a confidence, a settled market and a known price of both
sides. It runs nothing itself: the ledgers of the heuristics come from whoever replays them over the same course.
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
"""Who gives the chosen side which probability. `market` is the ask-implied one of which both sides add up to one."""

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
"""What is told of a heuristic's trading."""


@exact
def baseline_metrics(
    outcome: PredictOutcome, ledgers: Mapping[str, PredictLedger] | None = None, seed: int = 0
) -> dict[str, Any]:
    """Scores of every forecaster on the run's calls, and what each heuristic made of the same course."""
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
    """The scored calls on which every forecaster has something to say."""
    return [call for call in forecasts(calls) if reference(call, "normalised") is not None]


def forecaster_scores(calls: Sequence[MarketCall]) -> dict[str, dict[str, float | int | None]]:
    """Brier score and log loss of each forecaster on these calls."""
    won = [bool(call.won) for call in calls]
    found: dict[str, dict[str, float | int | None]] = {}
    for name, chance in FORECASTERS.items():
        chances = [chance(call) for call in calls]
        found[name] = {
            "calls": len(calls),
            "brier": scores.brier(chances, won),
            "log_loss": scores.log_loss(chances, won),
        }
    return found


def traded(outcome: PredictOutcome, ledger: PredictLedger, seed: int) -> dict[str, Any]:
    """How a heuristic came out, over the range and with the money of the run."""
    ran = ledger.outcome(outcome.from_at, outcome.to_at, outcome.interval_ms, outcome.initial_usd)
    figures = compute_predict(ran, seed)
    return {name: figures[name] for name in TRADED}
