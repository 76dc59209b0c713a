"""A week of ticks a minute apart on the predict venue, compared with as many ticks on the perp venue in the same run.

Both sides are whole runs: records in SQLite, digests, metrics, baselines. The policy is `alternate` under the default caps,
against `sma_cross` over as many 5m bars; in model mode both ask a scripted model at every tick, and the time inside the
model is subtracted.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

import numpy as np

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import DAY_MS, MINUTE_MS
from pitboss.core.market import Bars
from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.models.scripted import ScriptedModel, calls
from pitboss.runs.run import start
from pitboss.sim.request import BacktestRequest
from pitboss.venues.predict.request import PredictRequest
from pitboss_dev.bench.backtests import (
    TimedModel,
    model_course,
    model_request,
    policy_request,
    prepare,
    replay_seconds,
    trading_model,
)
from pitboss_dev.bench.market import START_AT, STEP_MS, MarketShape, bars_frame, random_walk
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import BenchRow, RatioGate
from pitboss_dev.bench.timing import interleave

VENUE = "bench-minutes"
WEEK_TICKS = 10_080
GATE = RatioGate("at most", 2.0)
REFERENCE = "perp venue"
SKILL = {
    "pitboss": 1,
    "name": "bench",
    "venue": "predict",
    "model": "policy/alternate",
    "strategy": {"mandate": "calibrated"},
}


def minute_bars(days: int) -> Bars:
    """A random walk in steps of a minute."""
    bars = random_walk("BTC", MarketShape(days * 5, ("BTC",)))
    count = days * DAY_MS // MINUTE_MS
    open_at = START_AT + np.arange(count, dtype=np.int64) * MINUTE_MS
    columns = (bars.open, bars.high, bars.low, bars.close, bars.volume)
    return Bars("BTC", "1m", MINUTE_MS, open_at, *(column[:count] for column in columns))


def predict_request(ticks: int, model: str = "policy/alternate") -> PredictRequest:
    """A run of `ticks` ticks that starts after a day of prices."""
    from_at = START_AT + DAY_MS
    return PredictRequest(
        skill={**SKILL, "model": model},
        from_at=from_at,
        to_at=from_at + ticks * MINUTE_MS,
        data_venue=VENUE,
        equity_usd=Decimal(200),
    )


def betting_model(market: str = "BTC-") -> TimedModel:
    """A scripted model that mostly holds and mints at every 40th request, at the first strike of its prompt."""
    hold = calls("submit_decision", action="hold", reasoning="Nothing has changed enough to act on it.")
    count = 0

    def reply(request: ModelRequest) -> ModelReply:
        nonlocal count
        count += 1
        if count % 40 != 10:
            return hold
        line = next(line for line in request.messages[0].text.splitlines() if line.startswith(market) and "YES" in line)
        cells = [cell.strip() for cell in line.split("|")]
        strike = float(cells[-1].split(":")[0].replace(",", ""))
        order = {"action": "mint", "market_id": cells[0], "side": "YES", "strike": strike, "spend": 2}
        return calls("submit_decision", **order, confidence=0.55, reasoning="It turns up.")

    return TimedModel(ScriptedModel(reply))


def measure(bench: Bench) -> Iterable[BenchRow]:
    """Policies over a week, then models."""
    ticks = WEEK_TICKS if bench.scale.year_days >= 365 else bench.scale.model_ticks * 4
    model_ticks = min(bench.scale.model_ticks, ticks)
    shape = MarketShape(max(8, -(-ticks // 288) + 4))
    folder = bench.folder
    with folder.workspace(shape) as policies, folder.workspace(shape, "one") as models:
        policies.lake.put("bars", VENUE, "BTC", "1m", bars_frame(minute_bars(-(-ticks // 1_440) + 2)), replace=True)
        perp_policy = policy_request(shape)
        perp_policy = replace(perp_policy, to_at=perp_policy.from_at + ticks * STEP_MS)
        prepared = {
            "predict": prepare(models, predict_request(model_ticks, "standin/analyst")),
            "perp": prepare(models, model_request(shape, model_ticks)),
        }

        def model_seconds(venue: str) -> float:
            model = betting_model() if venue == "predict" else trading_model()
            duration = replay_seconds(models, prepared[venue], model_course(prepared[venue], model))
            return (duration - model.seconds) / model.requests

        tick_s = interleave(
            {
                "policy": lambda: _policy_seconds(policies, predict_request(ticks)),
                "perp policy": lambda: _policy_seconds(policies, perp_policy),
                "model": lambda: model_seconds("predict"),
                "perp model": lambda: model_seconds("perp"),
            },
            bench.repeats,
        )
    for name, key, note in (
        (
            f"predict, {ticks:,} ticks of policy/alternate",
            "policy",
            "whole run with baselines and metrics, against sma_cross over as many 5m bars",
        ),
        ("predict, model tick", "model", "everything apart from the model, a commit for every 50 ticks"),
    ):
        yield BenchRow(name, tick_s[key] * 1e6, "µs a tick", REFERENCE, tick_s[f"perp {key}"] * 1e6, GATE, note)


def _policy_seconds(workspace: Workspace, request: BacktestRequest) -> float:
    """Seconds of one tick of a whole run, by the run's own clock."""
    run = asyncio.run(start(workspace, request))
    return run.wall_s / run.ticks


MEASURE = Measure("predict_week", "a week of ticks on the predict venue, against the perp venue", measure, 24)
