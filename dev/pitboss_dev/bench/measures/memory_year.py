"""A tick whose prompt has news, events and memory, compared with the same tick without them; the model is excluded.

Both sides run the same 15m ticks over the same market and make the same trades. One of them ranks the headlines of the last
six hours, reads a calendar, remembers its trades and has lessons written about them. A month of ticks represents the year:
the cost of a tick does not grow with the run (`history` measures that).
"""

import math
from collections.abc import Iterable
from dataclasses import replace

import polars as pl
from numpy.random import PCG64, Generator

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import DAY_MS, HOUR_MS, INTERVALS
from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.models.scripted import ScriptedModel, calls
from pitboss.sim.prepared_run import PreparedRun
from pitboss.venues.perp.standin import lessons
from pitboss_dev.bench.backtests import TimedModel, model_course, model_request, prepare, replay_seconds
from pitboss_dev.bench.market import START_AT, VENUE, MarketShape
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import BenchRow, RatioGate
from pitboss_dev.bench.timing import interleave

EVERY = "15m"
STEP_MS = INTERVALS[EVERY]
NEWS_A_DAY = 72
"""Three an hour, more than a typical feed has about a handful of coins."""
EVENTS_A_DAY = 3
TRADE_TICKS = 12
"""Ticks of one round trip: eight trades a day, far more than an agent is expected to make."""
REFERENCE = "the same tick without them"
WITH = {"news_lookback_hours": 6, "news_top_k": 10, "events": {"enabled": True}, "memory": {"enabled": True}}
WITHOUT = {"news_top_k": 0, "events": {"enabled": False}, "memory": {"enabled": False}}

_WORDS = [
    "SOL",
    "solana",
    "bitcoin",
    "market",
    "rally",
    "fund",
    "breakout",
    "trend",
    "traders",
    "report",
    "exchange",
    "rate",
    "outflow",
    "inflow",
    "network",
    "upgrade",
    "outage",
    "investors",
    "price",
    "volume",
    "funding",
    "liquidation",
    "regulator",
    "lawsuit",
    "listing",
    "partnership",
    "yield",
    "futures",
    "open",
    "interest",
    "resistance",
    "support",
    "level",
    "weekly",
    "monthly",
    "rises",
    "falls",
    "slips",
    "gains",
    "jumps",
    "steady",
    "ahead",
    "after",
    "amid",
    "over",
    "despite",
    "week",
]


def measure(bench: Bench) -> Iterable[BenchRow]:
    """Both sides in turn."""
    ticks = 2 * bench.scale.model_ticks
    shape = MarketShape(4 + math.ceil(ticks * STEP_MS / DAY_MS), seed=23)
    with bench.folder.workspace(shape, "one") as workspace:
        write_news_and_events(workspace, shape)
        full, plain = _prepared(workspace, shape, ticks, WITH), _prepared(workspace, shape, ticks, WITHOUT)
        tick_s = interleave(
            {"full": lambda: _tick_seconds(workspace, full), "plain": lambda: _tick_seconds(workspace, plain)},
            bench.repeats,
        )
    note = (
        f"{ticks:,} ticks of {EVERY}, {NEWS_A_DAY} headlines and {EVENTS_A_DAY} events a day, a closed trade every "
        f"{TRADE_TICKS} ticks, lessons after every tenth"
    )
    name, gate = "model tick with news, events and memory", RatioGate("at most", 3.0)
    yield BenchRow(name, tick_s["full"] * 1e6, "µs", REFERENCE, tick_s["plain"] * 1e6, gate, note)


def _prepared(workspace: Workspace, shape: MarketShape, ticks: int, context: dict[str, object]) -> PreparedRun:
    request = model_request(shape, ticks, EVERY, STEP_MS)
    skill = {**request.skill, "context": {**request.skill["context"], **context}}
    return prepare(workspace, replace(request, skill=skill))


def _tick_seconds(workspace: Workspace, prepared: PreparedRun) -> float:
    """Seconds of one tick without those inside the model."""
    model = TimedModel(ScriptedModel(_Trader().reply))
    duration = replay_seconds(workspace, prepared, model_course(prepared, model))
    return (duration - model.seconds) / len(prepared.tick_at)


class _Trader:
    """Opens and closes in turn, holds in between, and writes lessons when they are requested."""

    def __init__(self) -> None:
        self._decisions = 0

    def reply(self, request: ModelRequest) -> ModelReply:
        if request.must_call == lessons.TOOL:
            return calls(lessons.TOOL, **lessons.write(request.messages[0].text))
        self._decisions += 1
        turn = self._decisions % TRADE_TICKS
        if turn == 2:
            reason = "Close above the channel of twenty bars with volume."
            return calls("propose_order", action="open_long", symbol="SOL", size_usd=20_000, leverage=2, reason=reason)
        if turn == TRADE_TICKS // 2:
            return calls("propose_order", action="close", symbol="SOL", reason="The move has had its time.")
        return calls("propose_order", action="no_op", symbol="SOL", reason="Nothing has changed enough to act on it.")


def write_news_and_events(workspace: Workspace, shape: MarketShape) -> None:
    """Write headlines and a calendar into the lake. The same shape gives the same rows."""
    random = Generator(PCG64([shape.seed, 7]))
    news: list[tuple[int, str, str, float | None, str, bool]] = []
    for number in range(shape.days * NEWS_A_DAY):
        at = START_AT + round((number + random.random()) * DAY_MS / NEWS_A_DAY)
        text = " ".join(_WORDS[int(index)] for index in random.integers(len(_WORDS), size=int(random.integers(8, 18))))
        sentiment = None if random.random() < 0.3 else round(float(random.uniform(-1, 1)), 3)
        source, symbol = f"feed{int(random.integers(6))}", "SOL" if random.random() < 0.5 else ""
        news.append((at, source, text, sentiment, symbol, False))
    names = ("published_at", "source", "text", "sentiment", "symbols", "date_only")
    frame = pl.DataFrame(news, schema=names, orient="row", infer_schema_length=None).unique(
        names[:3], maintain_order=True
    )
    frame = frame.with_columns(pl.from_epoch("published_at", "ms").dt.replace_time_zone("UTC"))
    workspace.lake.put("news", VENUE, None, None, frame, replace=True)
    events: list[tuple[int, str, str, int, float, str]] = []
    for number in range(shape.days * EVENTS_A_DAY):
        at = START_AT + round((number + random.random()) * DAY_MS / EVENTS_A_DAY) // HOUR_MS * HOUR_MS
        events.append((at, "report", f"Report number {number}", at - 14 * DAY_MS, 0.5, ""))
    names = ("scheduled_at", "kind", "title", "known_at", "importance", "symbols")
    frame = pl.DataFrame(sorted(events), schema=names, orient="row")
    times = [pl.from_epoch(name, "ms").dt.replace_time_zone("UTC") for name in ("scheduled_at", "known_at")]
    workspace.lake.put("events", VENUE, None, None, frame.with_columns(times), replace=True)


MEASURE = Measure("memory_year", "a tick with news, events and memory, and one without; model excluded", measure, 25)
