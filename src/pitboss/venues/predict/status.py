"""The status document of a live predict run: the original agent service's fields by name, and additional ones.

Plain values only. Model text is included as data, truncated by the board. It contains no key, because no key is passed
to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pitboss.core.instant import SECOND_MS, Instant, iso
from pitboss.core.money import text
from pitboss.live.board import Board
from pitboss.venues.predict.data.market_watch import MarketWatch
from pitboss.venues.predict.data.spot import age_s
from pitboss.venues.predict.deployment import STRATEGIES, PredictDeployment
from pitboss.venues.predict.live_feed import LiveFeed
from pitboss.venues.predict.request import SURFACES_PROTOCOL

WHERE = {"paper": "on paper", "sui": "on the chain", "dry run": "simulated on the chain, nothing is sent"}
"""Where a run spends, by its mode."""
SURFACE = "flat, from the realised volatility of one-minute closes of the last 24 h"


@dataclass(slots=True)
class StatusSource:
    """The inputs of the status document."""

    deployment: PredictDeployment
    model: str
    run_id: str
    board: Board
    live_feed: LiveFeed
    started_at: Instant
    warnings: tuple[str, ...] = ()

    def document(self, now: Instant, next_at: Instant | None) -> dict[str, Any]:
        """Return the document at an instant."""
        board, is_policy = self.board, self.model.startswith("policy/")
        events = board.events
        return {
            "name": self.deployment.name,
            "strategy": _strategy(self.model),
            "config": _config(self.deployment),
            "model": None if is_policy else self.model,
            "mandate": self.deployment.mandate,
            "lastTick": None if board.last_tick_at is None else iso(board.last_tick_at),
            "ticks": board.ticks,
            "mints": events["filled", "mint"],
            "skips": board.skips,
            "errors": board.errors,
            "actionFeed": board.newest(),
            "runId": self.run_id,
            "mode": self.deployment.mode,
            "venue": "predict",
            "startedAt": iso(self.started_at),
            "at": iso(now),
            "nextTick": None if next_at is None else iso(next_at),
            "missed": board.missed_slots,
            "redeems": events["filled", "redeem"],
            "flags": dict(sorted(board.flags.items())),
            "account": dict(board.account),
            "feed": self._feed(now),
            "costUsd": None if board.cost_usd is None else text(board.cost_usd),
            "warnings": list(self.warnings),
        }

    def _feed(self, now: Instant) -> dict[str, Any]:
        spot, watch = self.live_feed.spot, self.live_feed.watch
        newest, trouble = spot.newest, self.live_feed.source.trouble()
        ready = spot.volatility is not None if watch is None else watch.newest is not None
        return {
            "ok": newest is not None and ready and not trouble,
            "symbol": spot.symbol,
            "price": None if newest is None else text(newest.price),
            "publishedAt": None if newest is None else iso(newest.published_at),
            "ageS": age_s(newest, now),
            "candlesUntil": None if spot.candles_at is None else iso(spot.candles_at),
            "volatility": spot.volatility,
            "surface": SURFACE if watch is None else SURFACES_PROTOCOL,
            "markets": _markets(watch, now),
            "trouble": trouble,
        }


def _markets(watch: MarketWatch | None, now: Instant) -> list[dict[str, Any]] | None:
    """Return the protocol's markets as read last; None if the markets are those of the schedule."""
    if watch is None:
        return None
    return [
        {
            "id": oracle.id,
            "expiry": iso(oracle.expiry_at),
            "priceAgeS": None if oracle.priced_at is None else (now - oracle.priced_at) / SECOND_MS,
        }
        for oracle in (() if watch.newest is None else watch.newest.oracles)
    ]


def _strategy(model: str) -> str:
    return next((name for name, model_name in STRATEGIES.items() if model_name == model), "llm")


def _config(deployment: PredictDeployment) -> dict[str, Any]:
    risk, context = deployment.skill.risk, deployment.skill.context
    return {
        "tradeDusdc": text(risk.max_spend_per_tick),
        "tickMs": deployment.every_ms,
        "underlying": context.underlying,
        "tiers": list(context.sorted_tiers()),
        "maxSpendPerDay": text(risk.max_spend_per_day),
        "maxTotalSpend": text(risk.max_total_spend),
        "maxExposurePerExpiry": text(risk.max_exposure_per_expiry),
        "maxSlippageBps": risk.max_slippage_bps,
        "minEdge": None if risk.min_edge is None else text(risk.min_edge),
        "minSecondsToExpiry": text(risk.min_seconds_to_expiry),
        "maxPriceAgeS": text(risk.max_price_age_s),
        "maxCostUsd": None if deployment.max_cost_usd is None else text(deployment.max_cost_usd),
        "maxCostUsdPerDay": None if deployment.max_cost_usd_per_day is None else text(deployment.max_cost_usd_per_day),
    }


def caps_line(deployment: PredictDeployment) -> str:
    """Format the limits as one line."""
    risk = deployment.skill.risk
    parts: Sequence[str] = (
        f"{text(risk.max_spend_per_tick)} a tick",
        f"{text(risk.max_spend_per_day)} a day",
        f"{text(risk.max_total_spend)} in all",
        f"{text(risk.max_exposure_per_expiry)} on one expiry",
    )
    return f"spends at most {', '.join(parts)} (DUSDC, {WHERE[deployment.mode]})"
