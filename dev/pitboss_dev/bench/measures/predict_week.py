"""A week of ticks a minute apart on the predict venue, against as many ticks on the perp venue in the same run.

Both sides do what a user gets: records in SQLite, digests, metrics, baselines. The policy is `alternate` under the
default caps, against `sma_cross` over as many 5m bars; in model mode both ask a scripted model at every tick and the time
inside the model is taken off.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
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
from pitboss_dev.bench.market import START_AT, MarketShape, frame, walk
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import BenchRow, RatioGate
from pitboss_dev.bench.timing import interleave
from pitboss_dev.bench.trial import (
    Stopwatch,
    assembled,
    model_request,
    policy_request,
    replay_seconds,
    trader,
    with_model,
)

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


def minutes(days: int) -> Bars:
    """A walk in steps of a minute."""
    bars = walk("BTC", MarketShape(days * 5, ("BTC",)))
    count = days * DAY_MS // MINUTE_MS
    open_at = START_AT + np.arange(count, dtype=np.int64) * MINUTE_MS
    columns = (bars.open, bars.high, bars.low, bars.close, bars.volume)
    return Bars("BTC", "1m", MINUTE_MS, open_at, *(column[:count] for column in columns))


def request_of(ticks: int, model: str = "policy/alternate") -> PredictRequest:
    """So many ticks, a day of prices behind them."""
    from_at = START_AT + DAY_MS
    return PredictRequest(
        skill={**SKILL, "model": model},
        from_at=from_at,
        to_at=from_at + ticks * MINUTE_MS,
        data_venue=VENUE,
        equity_usd=Decimal(200),
    )


def better(market: str = "BTC-") -> Stopwatch:
    """A scripted model that mostly holds and mints at every 40th question, at the strike it was shown first."""
    hold = calls("submit_decision", action="hold", reasoning="Nothing has changed enough to act on it.")
    asked = 0

    def answer(request: ModelRequest) -> ModelReply:
        nonlocal asked
        asked += 1
        if asked % 40 != 10:
            return hold
        line = next(line for line in request.messages[0].text.splitlines() if line.startswith(market) and "YES" in line)
        cells = [cell.strip() for cell in line.split("|")]
        strike = float(cells[-1].split(":")[0].replace(",", ""))
        words = {"action": "mint", "market_id": cells[0], "side": "YES", "strike": strike, "spend": 2}
        return calls("submit_decision", **words, confidence=0.55, reasoning="It turns up.")

    return Stopwatch(ScriptedModel(answer))


@dataclass(slots=True)
class _PolicyRun:
    """A whole run of a policy, by its own clock, and what a tick of it costs."""

    workspace: Workspace
    request: BacktestRequest

    def seconds(self) -> float:
        run = asyncio.run(start(self.workspace, self.request))
        return run.wall_s / run.ticks


def measure(bench: Bench) -> Iterable[BenchRow]:
    """Policies over a week, then models."""
    ticks = WEEK_TICKS if bench.scale.year_days >= 365 else bench.scale.model_ticks * 4
    asked = min(bench.scale.model_ticks, ticks)
    shape = MarketShape(max(8, -(-ticks // 288) + 4))
    grounds = bench.grounds
    with grounds.workspace(shape) as workspace, grounds.workspace(shape, "one") as one:
        workspace.lake.put("bars", VENUE, "BTC", "1m", frame(minutes(-(-ticks // 1_440) + 2)), replace=True)
        ours, theirs = _PolicyRun(workspace, request_of(ticks)), _PolicyRun(workspace, _perp_policy(shape, ticks))
        models = {
            "predict": assembled(one, request_of(asked, "standin/analyst")),
            "perp": assembled(one, model_request(shape, asked)),
        }

        def model_seconds(side: str) -> float:
            model = better() if side == "predict" else trader()
            taken = replay_seconds(one, with_model(models[side], model))
            return (taken - model.seconds) / model.asked

        taken = interleave(
            {
                "policy": ours.seconds,
                "perp policy": theirs.seconds,
                "model": lambda: model_seconds("predict"),
                "perp model": lambda: model_seconds("perp"),
            },
            bench.repeats,
        )
    yield BenchRow(
        f"predict, {ticks:,} ticks of policy/alternate",
        taken["policy"] * 1e6,
        "µs a tick",
        REFERENCE,
        taken["perp policy"] * 1e6,
        GATE,
        "whole run with baselines and metrics, against sma_cross over as many 5m bars",
    )
    yield BenchRow(
        "predict, model tick",
        taken["model"] * 1e6,
        "µs a tick",
        REFERENCE,
        taken["perp model"] * 1e6,
        GATE,
        "everything apart from the model, a commit for every 50 ticks",
    )


def _perp_policy(shape: MarketShape, ticks: int) -> BacktestRequest:
    request = policy_request(shape)
    return replace(request, to_at=request.from_at + ticks * 300_000)


MEASURE = Measure("predict_week", "a week of ticks on the predict venue, against the perp venue", measure, 24)
