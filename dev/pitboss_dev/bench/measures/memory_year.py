"""A tick that is told of news, events and its own past, against the same tick without them, everything apart from the model.

Both sides run the same ticks of 15m over the same market and make the same trades; one of them ranks the headlines of the
last six hours, looks through a calendar, remembers its trades and has lessons written about them. By default a month of
ticks stands for the year: what a tick costs does not grow with the run (`history` measures that).
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
from pitboss.sim.request import PreparedRun
from pitboss.venues.perp.assembly import reflector_of
from pitboss.venues.perp.standin import lessons as lesson
from pitboss_dev.bench.market import START_AT, VENUE, MarketShape
from pitboss_dev.bench.measure import Bench, Measure
from pitboss_dev.bench.row import BenchRow, RatioGate
from pitboss_dev.bench.timing import interleave
from pitboss_dev.bench.trial import Stopwatch, assembled, model_request, replay_seconds, with_model

EVERY = "15m"
STEP_MS = INTERVALS[EVERY]
NEWS_A_DAY = 72
"""Three an hour: more than any feed that we know of has about a handful of coins."""
EVENTS_A_DAY = 3
TRADE_TICKS = 12
"""A round trip in so many ticks: eight a day, far more than an agent that thinks makes."""
REFERENCE = "the same tick without them"
TOLD = {"news_lookback_hours": 6, "news_top_k": 10, "events": {"enabled": True}, "memory": {"enabled": True}}
UNTOLD = {"news_top_k": 0, "events": {"enabled": False}, "memory": {"enabled": False}}

_HEADLINES = (
    "SOL solana bitcoin market rally fund breakout trend traders report exchange rate outflow inflow network upgrade "
    "outage investors price volume funding liquidation regulator lawsuit listing partnership yield futures open interest "
    "resistance support level weekly monthly rises falls slips gains jumps steady ahead after amid over despite week"
)
_WORDS = _HEADLINES.split()


def measure(bench: Bench) -> Iterable[BenchRow]:
    """Both sides in turn."""
    ticks = 2 * bench.scale.model_ticks
    shape = MarketShape(4 + math.ceil(ticks * STEP_MS / DAY_MS), seed=23)
    with bench.grounds.workspace(shape, "one") as workspace:
        write_told(workspace, shape)
        told, untold = _side(workspace, shape, ticks, TOLD), _side(workspace, shape, ticks, UNTOLD)
        taken = interleave(
            {"told": lambda: _seconds(workspace, told), "untold": lambda: _seconds(workspace, untold)}, bench.repeats
        )
    note = (
        f"{ticks:,} ticks of {EVERY}, {NEWS_A_DAY} headlines and {EVENTS_A_DAY} events a day, a closed trade every "
        f"{TRADE_TICKS} ticks, lessons after every tenth"
    )
    with_them, without = taken["told"] * 1e6, taken["untold"] * 1e6
    yield BenchRow(
        "model tick with news, events and memory", with_them, "µs", REFERENCE, without, RatioGate("at most", 3.0), note
    )


def _side(workspace: Workspace, shape: MarketShape, ticks: int, context: dict[str, object]) -> PreparedRun:
    request = model_request(shape, ticks, EVERY, STEP_MS)
    skill = {**request.skill, "context": {**request.skill["context"], **context}}
    return assembled(workspace, replace(request, skill=skill))


def _seconds(workspace: Workspace, assembly: PreparedRun) -> float:
    """Seconds of one tick, those inside the model taken off."""
    model = Stopwatch(ScriptedModel(_Trader().answer))
    ready = with_model(assembly, model)
    ports = ready.script.ports
    writing = replace(ports, reflector=reflector_of(ports.decider, ready.skill))
    ready = replace(ready, script=replace(ready.script, ports=writing))
    taken = replay_seconds(workspace, ready)
    return (taken - model.seconds) / len(ready.script.tick_at)


class _Trader:
    """Opens and closes in turn, holds in between, and writes lessons when it is asked for them."""

    def __init__(self) -> None:
        self._asked = 0

    def answer(self, request: ModelRequest) -> ModelReply:
        if request.must_call == lesson.TOOL:
            return calls(lesson.TOOL, **lesson.write(request.messages[0].text))
        self._asked += 1
        turn = self._asked % TRADE_TICKS
        if turn == 2:
            reason = "Close above the channel of twenty bars with volume."
            return calls("propose_order", action="open_long", symbol="SOL", size_usd=20_000, leverage=2, reason=reason)
        if turn == TRADE_TICKS // 2:
            return calls("propose_order", action="close", symbol="SOL", reason="The move has had its time.")
        return calls("propose_order", action="no_op", symbol="SOL", reason="Nothing has changed enough to act on it.")


def write_told(workspace: Workspace, shape: MarketShape) -> None:
    """Put headlines and a calendar beside the market. The same shape gives the same ones."""
    dice = Generator(PCG64([shape.seed, 7]))
    news: list[tuple[int, str, str, float | None, str, bool]] = []
    for number in range(shape.days * NEWS_A_DAY):
        at = START_AT + round((number + dice.random()) * DAY_MS / NEWS_A_DAY)
        words = " ".join(_WORDS[int(place)] for place in dice.integers(len(_WORDS), size=int(dice.integers(8, 18))))
        mood = None if dice.random() < 0.3 else round(float(dice.uniform(-1, 1)), 3)
        news.append((at, f"feed{int(dice.integers(6))}", words, mood, "SOL" if dice.random() < 0.5 else "", False))
    names = ("published_at", "source", "text", "sentiment", "symbols", "date_only")
    frame = pl.DataFrame(news, schema=names, orient="row", infer_schema_length=None).unique(
        names[:3], maintain_order=True
    )
    frame = frame.with_columns(pl.from_epoch("published_at", "ms").dt.replace_time_zone("UTC"))
    workspace.lake.put("news", VENUE, None, None, frame, replace=True)
    events: list[tuple[int, str, str, int, float, str]] = []
    for number in range(shape.days * EVENTS_A_DAY):
        at = START_AT + round((number + dice.random()) * DAY_MS / EVENTS_A_DAY) // HOUR_MS * HOUR_MS
        events.append((at, "report", f"Report number {number}", at - 14 * DAY_MS, 0.5, ""))
    names = ("scheduled_at", "kind", "title", "known_at", "importance", "symbols")
    frame = pl.DataFrame(sorted(events), schema=names, orient="row")
    times = [pl.from_epoch(name, "ms").dt.replace_time_zone("UTC") for name in ("scheduled_at", "known_at")]
    workspace.lake.put("events", VENUE, None, None, frame.with_columns(times), replace=True)


MEASURE = Measure(
    "memory_year", "a tick with news, events and memory, against one without, apart from the model", measure, 25
)
