"""The course of a predict backtest: skips, splits and pauses change nothing, nothing later is visible, and it resumes."""

import asyncio
import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.agent.decider import Judge
from pitboss.core import codec
from pitboss.core.asof import Market
from pitboss.core.curve import points
from pitboss.core.errors import RunCancelled
from pitboss.core.instant import DAY_MS, HOUR_MS, MINUTE_MS, parse_instant
from pitboss.core.intent import Decision
from pitboss.core.market import Bars
from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import Record
from pitboss.core.state import State
from pitboss.models.scripted import calls
from pitboss.runs.tool_loop import tool_loop
from pitboss.sim.connections import Connections
from pitboss.sim.course import MAX_MODEL_ERRORS, ticks_between
from pitboss.sim.replay import replay
from pitboss.sim.speculation import Speculation
from pitboss.sim.watch import Watch
from pitboss.testing.journal import MemoryJournal
from pitboss.venues.predict.agent import mandate_of, read_predict_skill, tools
from pitboss.venues.predict.assembly import PredictRun
from pitboss.venues.predict.context import PredictPrompts
from pitboss.venues.predict.course import PredictCourse, Updates, first_state
from pitboss.venues.predict.desk import Desk
from pitboss.venues.predict.execution import apply_update
from pitboss.venues.predict.heuristics import heuristic, heuristics
from pitboss.venues.predict.intents import DECISION
from pitboss.venues.predict.ladder_policy import LEAST
from pitboss.venues.predict.observation import PredictObservation
from pitboss.venues.predict.outcome import PredictLedger
from pitboss.venues.predict.policy_replay import play
from pitboss.venues.predict.portfolio import equity
from pitboss.venues.predict.ports import read_state
from pitboss.venues.predict.recorded_surfaces import RecordedSurfaces
from pitboss.venues.predict.request import PredictRequest
from pitboss.venues.predict.state import contracts
from pitboss.venues.predict.svi import Svi
from pitboss.venues.predict.world import feed
from venues.predict.scene import money

START = parse_instant("2026-02-22T21:13:00Z")
SKILL: dict[str, Any] = {
    "name": "course",
    "venue": "predict",
    "model": "policy/alternate",
    "strategy": {"mandate": "calibrated"},
    "context": {"tiers": ["15m", "1h"]},
    "risk": {"max_spend_per_day": 30, "max_total_spend": 100},
}


def market_of(seed: int, minutes: int, holes: Sequence[int] = ()) -> Market:
    """Bars of a random walk, some left out; the first day is before the start."""
    rng, price, rows = Random(seed), 64_000.0, []
    for place in range(-DAY_MS // MINUTE_MS, minutes):
        opens = price
        price = round(price * (1 + rng.gauss(0, 0.0006)), 2)
        if place not in holes:
            rows.append((START + place * MINUTE_MS, opens, price))
    at, opened, close = (np.array(column) for column in zip(*rows, strict=True))
    low, high = np.minimum(opened, close) - 3, np.maximum(opened, close) + 3
    ones = np.ones(len(rows))
    return Market({("BTC", "1m"): Bars("BTC", "1m", MINUTE_MS, at.astype(np.int64), opened, high, low, close, ones)})


def script_of(market: Market, minutes: int, decider: Any, every: str = "60s", **risk: Any) -> PredictCourse:
    document = {**SKILL, "schedule": {"every": every}, "risk": {**SKILL["risk"], **risk}}
    skill = read_predict_skill(document)
    to_at = START + minutes * MINUTE_MS
    request = PredictRequest(document, START, to_at)
    if hasattr(decider, "complete"):
        request = replace(request, model=decider.name)
        context, connections = PredictPrompts(mandate_of(skill)), Connections(model=decider)
        decider = tool_loop(decider.name, skill, DECISION, context, tools(), connections)
    prepared = PredictRun(
        request=request,
        skill=skill,
        data_venue="made",
        data_digest="",
        synthetic=True,
        tick_at=ticks_between(START, to_at, skill.every_ms),
        market=market,
        surfaces=None,
        commit_records=7,
        most_errors=MAX_MODEL_ERRORS,
    )
    return prepared.course(Connections(decider=decider))


def run(script: PredictCourse, journal: MemoryJournal | None = None) -> tuple[State, list[Record], PredictLedger]:
    journal, ledger = journal or MemoryJournal(), PredictLedger()
    state = asyncio.run(replay(script, journal, first_state(script), Watch(), ledger))
    return state, list(journal.records()), ledger


class RandomModel:
    """Mints, redeems and holds as the digest of the tick's time says, with confidences."""

    name = "dice"

    def __init__(self, seed: int, acts: float = 0.3) -> None:
        self.seed, self.acts = seed, acts

    async def decide(self, observation: PredictObservation, judge: Judge) -> Decision:
        del judge
        rng = Random(f"{self.seed}/{observation.at}")
        open_now = observation.markets()
        if rng.random() > self.acts or not open_now:
            return Decision()
        held = [one for one in observation.portfolio().positions if one.status == "active"]
        if held and rng.random() < 0.4:
            one = rng.choice(held)
            redeem = {"action": "redeem", "market_id": one.market_id, "side": one.side, "strike": one.strikes[0]}
            return Decision(({**redeem, "reasoning": "enough"},))
        market = rng.choice(open_now)
        strike = round(market.spot / 1e9 / 50) * 50 + 50 * rng.randrange(-2, 3)
        mint = {"action": "mint", "market_id": market.id, "side": rng.choice(["YES", "NO"]), "strike": strike}
        return Decision(({**mint, "spend": rng.choice([1, 2, 5]), "confidence": 0.6, "reasoning": "dice"},))


# Slow and obvious against quick ---------------------------------------------------------------------------------------


def step_by_step(
    script: PredictCourse, desk: Desk, start: int, stop: int
) -> tuple[Desk, list[Receipt], list[tuple[int, str]]]:
    """Every update, one after the other, and the account's worth after each."""
    receipts: list[Receipt] = []
    worth: list[tuple[int, str]] = []
    updates = script.updates
    for place in range(start, stop):
        at, spot = int(updates.at[place]), int(updates.spot[place])
        step = feed(desk.world, "BTC", spot, at, float(updates.volatility[place]), tiers=script.tiers)
        desk, happened = apply_update(desk, step, script.ports.caps, at)
        receipts += happened
        worth.append((at, codec.dumps(contracts(equity(desk.world))).decode().strip('"')))
    return desk, receipts, worth


@settings(max_examples=4)
@given(
    st.integers(0, 10_000),
    st.lists(st.tuples(st.integers(0, 239), st.integers(1, 90)), max_size=4),
    st.integers(0, 240),
    st.integers(0, 240),
    st.sampled_from([("15m",), ("15m", "1h"), ("1h", "1d"), ("15m", "1h", "1d", "1w")]),
)
def test_leaping_over_quiet_updates_gives_what_walking_gives(
    seed: int, gaps: list[tuple[int, int]], one: int, other: int, tiers: tuple[str, ...]
) -> None:
    holes = {place for first, count in gaps for place in range(first, first + count)}
    script = replace(script_of(market_of(seed, 240, sorted(holes)), 240, RandomModel(seed)), tiers=tiers)
    start, stop = sorted((min(one, len(script.updates)), min(other, len(script.updates))))
    for desk in (first_state(script).world, _desk_at_update(script, start)):
        quick = script.advance(desk, start, stop)
        walked, receipts, worth = step_by_step(script, desk, start, stop)
        assert quick.world == walked
        assert list(quick.receipts) == receipts
        assert [(at, codec.dumps(text).decode().strip('"')) for at, text in points(quick.equity)] == worth
        assert quick.index == stop


def _desk_at_update(script: PredictCourse, stop: int) -> Desk:
    """The desk of an account that traded until an update."""
    ticks = script.tick_at[script.tick_at <= (script.updates.at[stop - 1] if stop else START)]
    if not len(ticks):
        return first_state(script).world
    part = script.until(int(ticks[-1]) + 1)
    state, *_ = run(dataclasses.replace(part, updates=_first_updates(script.updates, stop)))
    return state.world


def _first_updates(updates: Updates, stop: int) -> Updates:
    return Updates(updates.at[:stop], updates.spot[:stop], updates.volatility[:stop])


@settings(max_examples=4)
@given(st.integers(0, 10_000), st.integers(0, 200), st.integers(0, 200), st.integers(0, 200))
def test_a_course_cut_anywhere_is_the_same_course(seed: int, first: int, second: int, third: int) -> None:
    script = script_of(market_of(seed, 200), 200, RandomModel(seed))
    start, middle, stop = sorted((first, second, third))
    desk = _desk_at_update(script, start)
    whole = script.advance(desk, start, stop)
    one = script.advance(desk, start, middle)
    two = script.advance(one.world, middle, stop)
    assert two.world == whole.world
    assert one.receipts + two.receipts == whole.receipts
    assert [*points(one.equity), *points(two.equity)] == list(points(whole.equity))
    assert money(whole.world.world) == money(desk.world)


@settings(max_examples=4)
@given(st.integers(0, 10_000), st.integers(30, 150))
def test_a_pause_ends_before_the_account_changes(seed: int, start: int) -> None:
    script = script_of(market_of(seed, 240), 240, RandomModel(seed, 0.8))
    desk = _desk_at_update(script, start)
    paused = script.advance(desk, start, len(script.updates), pause_before_change=True)
    assert paused.world.world.accounts == desk.world.accounts
    if paused.index < len(script.updates):
        after = script.advance(paused.world, paused.index, paused.index + 1)
        assert after.world.world.accounts != desk.world.accounts or desk.waiting


@pytest.mark.parametrize("name", sorted(heuristics()))
@settings(max_examples=8)
@given(
    st.integers(0, 10_000),
    st.sampled_from(["30s", "60s", "5m", "7m"]),
    st.sampled_from([0, 3, 30]),
    st.sampled_from([7, 100]),
)
def test_a_heuristic_that_leaps_does_what_it_does_when_asked_at_every_tick(
    name: str, seed: int, every: str, day: int, total: int
) -> None:
    limits = {"max_spend_per_day": day, "max_total_spend": total}
    script = script_of(market_of(seed, 300), 300, heuristic(name), every, **limits)
    assert script.planned
    leapt, records, quick = run(script)
    asked, every_tick, walked = run(replace(script, planned=False))
    assert len(records) <= len(every_tick)
    assert leapt.world == asked.world
    assert quick.receipts == walked.receipts
    assert list(points(quick.equity)) == list(points(walked.equity))
    assert quick.ticks == walked.ticks == len(script.tick_at)
    assert quick.calls == walked.calls
    played = play(script, heuristic(name).intent, LEAST)
    assert (played.calls, played.receipts, played.ticks) == (quick.calls, quick.receipts, quick.ticks)
    assert list(points(played.equity)) == list(points(quick.equity))
    counts = [(one.asked, one.proposed, one.accepted, one.rejections, one.noops) for one in (played, quick)]
    assert counts[0] == counts[1]


# No look-ahead --------------------------------------------------------------------------------------------------------


@settings(max_examples=3)
@given(st.integers(0, 10_000), st.integers(5, 55))
def test_prices_after_a_tick_change_nothing_up_to_it(seed: int, cut: int) -> None:
    market = market_of(seed, 60)
    at = START + cut * MINUTE_MS
    bars = market.bars["BTC", "1m"]
    later = bars.open_at + MINUTE_MS > at
    close = np.where(later, bars.close * 1.07, bars.close)
    other = Market({("BTC", "1m"): dataclasses.replace(bars, close=close, high=np.maximum(bars.high, close) + 1)})
    model = PromptSeededModel(seed)
    before = [_digests_until(run(script_of(one, 60, model))[1], at) for one in (market, other)]
    assert before[0] == before[1]
    assert before[0]


def _digests_until(records: list[Record], at: int) -> list[str]:
    return [record.digest for record in records if record.tick_at <= at and record.kind == "tick"]


def test_a_recorded_surface_counts_from_its_time_on() -> None:
    script = script_of(market_of(1, 60), 60, heuristic("yes_only"))
    expiry = str(START - START % HOUR_MS + 2 * HOUR_MS)
    steep = Svi(0.02, 0.0, 0.0, 0.0, 0.1)

    class SteepSurface:
        at = np.array([START + 30 * MINUTE_MS], np.int64)
        market_id = (expiry,)

        def svi(self, place: int) -> Svi:
            assert place == 0
            return steep

    with_file = replace(script, surface=RecordedSurfaces(SteepSurface(), script.updates))
    for minute, recorded in ((29, False), (30, True)):
        place = int(np.searchsorted(script.updates.at, START + minute * MINUTE_MS, side="right"))
        world = with_file.advance(first_state(script).world, 0, place).world.world
        market = next(one for one in world.oracles.values() if str(one.expiry_at) == expiry)
        assert (market.svi == steep) is recorded
        others = [one for one in world.oracles.values() if one is not market]
        assert others
        assert all(one.svi is not None and one.svi != steep for one in others)
    state, records, _ = run(with_file)
    assert state.prev_digest == records[-1].digest


# Stopping and asking ahead --------------------------------------------------------------------------------------------


class PromptSeededModel:
    """A model whose replies are random but depend on the prompt alone. Equal prompts share a reply, as with a cache."""

    name = "scripted/moody"

    def __init__(self, seed: int, orders: float = 0.15, wait_s: float = 0.0) -> None:
        self.seed, self.orders, self.wait_s = seed, orders, wait_s
        self._replies: dict[str, asyncio.Future[ModelReply]] = {}

    async def complete(self, request: ModelRequest) -> ModelReply:
        key = codec.digest([request.system, [message.text for message in request.messages]])
        if key not in self._replies:
            self._replies[key] = asyncio.get_running_loop().create_future()
            await asyncio.sleep(self.wait_s)
            self._replies[key].set_result(self._answer(request))
        return await asyncio.shield(self._replies[key])

    def _answer(self, request: ModelRequest) -> ModelReply:
        prompt = request.messages[0].text
        rng = Random(hashlib.sha256(f"{self.seed}{prompt}".encode()).digest())
        if len(request.messages) == 1 and rng.random() < 0.2:
            return calls("list_btc_markets")
        names = sorted({word.strip("|,. ") for word in prompt.split() if word.startswith("BTC-2026")})
        if rng.random() > self.orders or not names:
            return calls("submit_decision", action="hold", reasoning="Nothing.")
        chosen = {"action": "mint", "market_id": rng.choice(names), "side": rng.choice(["YES", "NO"])}
        strike = 64_000 + 50 * rng.randrange(-10, 11)
        return calls(
            "submit_decision", **chosen, strike=strike, spend=2, confidence=round(rng.random(), 2), reasoning="So."
        )


@settings(max_examples=3)
@given(st.integers(0, 10_000), st.sampled_from([None, 1, 5]), st.sampled_from([0.02, 0.15, 0.6]))
def test_asking_ahead_changes_no_record(seed: int, window: int | None, orders: float) -> None:
    market = market_of(seed, 60)
    alone = run(script_of(market, 60, PromptSeededModel(seed, orders)))[1]
    plan = Speculation(window, 200.0)
    ahead = run(replace(script_of(market, 60, PromptSeededModel(seed, orders)), speculation=plan))[1]
    assert [record.digest for record in ahead] == [record.digest for record in alone]
    if orders < 0.1:
        assert plan.tally.launched > 0
        assert plan.tally.used > 0


@settings(max_examples=4)
@given(st.integers(0, 10_000), st.integers(1, 59), st.booleans())
def test_a_run_that_was_stopped_goes_on_to_the_same_digest(seed: int, stop: int, policy: bool) -> None:
    market = market_of(seed, 60)
    made = script_of(market, 60, _new_decider(policy, seed))
    whole, records, _ = run(made)
    journal, checked = MemoryJournal(), 0

    def enough() -> bool:
        nonlocal checked
        checked += 1
        return checked > stop

    again = script_of(market, 60, _new_decider(policy, seed))
    try:
        asyncio.run(replay(again, journal, first_state(again), Watch(stop=enough), PredictLedger()))
    except RunCancelled:
        stored = journal.latest_state()
        state = first_state(again) if stored is None else read_state(stored[1])
        later = MemoryJournal(journal)
        end = asyncio.run(replay(script_of(market, 60, _new_decider(policy, seed)), later, state, Watch()))
        assert end.prev_digest == whole.prev_digest
        assert [record.digest for record in later.records()] == [record.digest for record in records]


def _new_decider(policy: bool, seed: int) -> Any:
    return heuristic("alternate") if policy else PromptSeededModel(seed, 0.4)
