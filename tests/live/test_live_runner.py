"""The live driver: one tick per slot, no decision on old prices, no hang, and nothing published before it is stored."""

import ast
import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pitboss.live
from live.live_run_setup import SPOT, KillableJournal, KilledRun, LiveRunSetup, PauseClock, ScriptedSource
from pitboss.core.errors import BudgetExceeded, InvariantError, TransientError, UserError
from pitboss.core.instant import HOUR_MS, MINUTE_MS
from pitboss.core.intent import Decision
from pitboss.core.state import State
from pitboss.live.board import Board
from pitboss.live.pace import Pace, pace
from pitboss.live.schedule import schedule
from pitboss.testing.journal import MemoryJournal
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.ports import read_state
from pitboss.venues.predict.svi import FLOAT
from venues.predict.predict_ticks import SOON, ScriptedDecider, always_decides
from venues.predict.scene import NOW

MINT: dict[str, Any] = {
    "action": "mint",
    "market_id": SOON,
    "side": "YES",
    "strike": 63_200,
    "spend": 2,
    "reasoning": "up",
}


class HangingDecider:
    """A decider that never answers."""

    name = "hangs"

    def __init__(self) -> None:
        self.call_count = 0

    async def decide(self, observation: Any, judge: Any) -> Decision:
        self.call_count += 1
        await asyncio.Event().wait()
        raise AssertionError("nobody wakes it")


class RaisingDecider(HangingDecider):
    """A decider that cannot answer."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    async def decide(self, observation: Any, judge: Any) -> Decision:
        self.call_count += 1
        raise self.error


def run(setup: LiveRunSetup, ticks: int, **more: Any) -> State:
    return asyncio.run(setup.runner(ticks, **more).run())


# Ticks ---------------------------------------------------------------------------------------------------------------


def test_ticks_come_at_their_slots_and_the_chain_holds() -> None:
    setup = LiveRunSetup(always_decides(), clock=PauseClock(NOW + 17_000))
    state = run(setup, 3)
    assert setup.ticks() == [NOW + MINUTE_MS * place for place in (1, 2, 3)]
    assert state.prev_digest == setup.verified_records()[-1].digest
    kept = setup.journal.latest_state()
    assert kept is not None
    assert read_state(kept[1]) == state


@given(st.integers(1, 400), st.integers(0, 999))
@settings(max_examples=4, deadline=None)
def test_a_tick_never_finds_a_price_from_its_slot_on(looks_ms: int, start_ms: int) -> None:
    mind = always_decides(MINT)
    clock = PauseClock(NOW + start_ms, looks_ms=looks_ms)
    setup = LiveRunSetup(mind, clock=clock, source=ScriptedSource(PredictCaps(), step_ms=500), slots=schedule(10_000))
    run(setup, 3)
    assert mind.observations
    for seen in mind.observations:
        assert seen.desk.world.feeds["BTC"].at < seen.at
    setup.verified_records()


def test_an_order_is_filled_between_ticks_and_that_is_kept_at_once() -> None:
    mind = ScriptedDecider(lambda observation: [MINT] if observation.at == NOW else [])
    setup = LiveRunSetup(mind)
    run(setup, 2)
    kinds = [(record.kind, record.tick_at) for record in setup.verified_records()]
    assert kinds[0] == ("tick", NOW)
    assert kinds[1][0] == "span"
    assert NOW < kinds[1][1] <= NOW + 4_000
    assert kinds[2] == ("tick", NOW + MINUTE_MS)
    (filled,) = [one for one in setup.bodies("span")[0]["receipts"] if one["kind"] != "settled"]
    assert (filled["kind"], filled["facts"]["action"]) == ("filled", "mint")
    assert setup.board.events["filled", "mint"] == 1
    assert setup.board.account["positions"][0]["strikes"] == ["63200"]


def test_a_settlement_between_ticks_is_recorded_before_the_next_decision() -> None:
    mind = ScriptedDecider(lambda observation: [MINT] if observation.at == NOW else [])
    setup = LiveRunSetup(
        mind, slots=schedule(HOUR_MS), source=ScriptedSource(PredictCaps(), lambda at: SPOT + 300 * FLOAT)
    )
    run(setup, 3)
    assert setup.ticks() == [NOW, NOW + HOUR_MS, NOW + 2 * HOUR_MS]
    paid = [
        (body["until_at"], receipt["facts"]["payout"])
        for body in setup.bodies("span")
        for receipt in body["receipts"]
        if "payout" in receipt["facts"]
    ]
    assert len(paid) == 1
    assert NOW + HOUR_MS < paid[0][0] <= NOW + HOUR_MS + 4_000


def test_the_last_order_of_a_run_that_ends_is_seen_through() -> None:
    setup = LiveRunSetup(always_decides(MINT))
    state = run(setup, 1)
    assert state.world.waiting == ()
    assert setup.board.events["filled", "mint"] == 1


# Time ----------------------------------------------------------------------------------------------------------------


def test_slots_that_were_slept_through_are_one_record_and_no_ticks() -> None:
    setup = LiveRunSetup(always_decides(), clock=PauseClock(NOW + 1, {3: HOUR_MS}))
    run(setup, 2)
    first, second = setup.ticks()
    assert (first, second) == (NOW + 61 * MINUTE_MS, NOW + 62 * MINUTE_MS)
    assert setup.missed() == 60
    assert [entry["slots"] for entry in setup.entries if entry["kind"] == "missed"] == [setup.missed()]
    assert setup.board.missed_slots == setup.missed()


def test_a_clock_that_goes_back_makes_no_slot_tick_twice_and_is_reported() -> None:
    brought: list[int] = []

    async def note(before: int) -> None:
        brought.append(before)

    setup = LiveRunSetup(
        always_decides(), clock=PauseClock(NOW, {2: -HOUR_MS}), source=ScriptedSource(PredictCaps(), hang=note)
    )
    run(setup, 4)
    assert min(brought) >= NOW, "nor is the world asked what it was like before the last tick"
    assert setup.ticks() == [NOW + MINUTE_MS * place for place in range(4)]
    remarks = [entry["detail"] for entry in setup.entries if entry["kind"] == "remark"]
    assert [words for words in remarks if "the clock went back" in words] == remarks
    assert len(remarks) == 1


def test_a_tick_that_is_longer_than_its_period_is_not_allowed() -> None:
    with pytest.raises(InvariantError, match="shorter than the period"):
        Pace(schedule(MINUTE_MS), 50_000, 10_000, 2_000)
    for period in (1_000, 10_000, MINUTE_MS, HOUR_MS):
        made = pace(schedule(period), 2_000)
        assert made.deadline_ms + made.feed_ms < period


# Deciders that do not answer ------------------------------------------------------------------------------------------


def test_a_model_that_hangs_ends_in_a_hold_with_a_flag() -> None:
    hangs = HangingDecider()
    setup = LiveRunSetup(hangs)
    run(setup, 2, deadline_ms=40)
    assert hangs.call_count == 2
    assert [body["flags"] for body in setup.bodies()] == [["deadline"], ["deadline"]]
    assert (setup.board.errors, setup.board.skips) == (2, 0)


@pytest.mark.parametrize(
    ("error", "flag"),
    [
        (BudgetExceeded("$2 of $2 spent"), "budget"),
        (TransientError("busy"), "model_error"),
        (UserError("the key was withdrawn", "set another"), "model_error"),
    ],
)
def test_a_decider_that_fails_holds_with_a_flag_and_the_run_continues(error: Exception, flag: str) -> None:
    setup = LiveRunSetup(RaisingDecider(error))
    state = run(setup, 2)
    assert [(body["flags"], body["text"]) for body in setup.bodies()] == [([flag], str(error))] * 2
    assert state.model_errors == (2 if flag == "model_error" else 0)


def test_what_must_never_happen_stops_the_run_with_what_was_kept() -> None:
    setup = LiveRunSetup(RaisingDecider(InvariantError("look-ahead")))
    with pytest.raises(InvariantError, match="look-ahead"):
        run(setup, 2)
    assert setup.entries == []
    assert list(setup.journal.records()) == []


def test_on_old_prices_no_model_is_called() -> None:
    mind = always_decides(MINT)
    setup = LiveRunSetup(mind, source=ScriptedSource(PredictCaps(), silent=lambda at: at > NOW + 10_000))
    run(setup, 3)
    assert [body["flags"] for body in setup.bodies()] == [[], ["stale_prices"], ["stale_prices"]]
    assert [seen.at for seen in mind.observations] == [NOW]


def test_a_loss_limit_closes_at_ticks_and_between_them_without_the_agent() -> None:
    mind = always_decides(MINT)
    setup = LiveRunSetup(mind)
    runner = setup.runner(5)
    runner.must_close = lambda world, at: "the limit is reached" if at <= NOW + 2 * MINUTE_MS else ""
    asyncio.run(runner.run())

    closed = [at for at, body in zip(setup.ticks(), setup.bodies(), strict=True) if body["flags"] == ["loss_limit"]]
    between = [at for at in closed if at % MINUTE_MS]
    assert len(closed) > len(between) > 1  # at slots, and between them half a minute apart
    assert min(later - earlier for earlier, later in pairwise(between)) >= 30_000
    assert len(mind.observations) == len(setup.ticks()) - len(closed) > 0  # after the limit
    assert any(entry.get("detail") == "closes what is open: the limit is reached" for entry in setup.entries)
    setup.verified_records()


def test_before_the_first_price_no_model_is_called() -> None:
    mind = always_decides(MINT)
    setup = LiveRunSetup(mind, source=ScriptedSource(PredictCaps(), first=NOW + 90_000))
    run(setup, 3)
    assert [body["flags"] for body in setup.bodies()] == [["no_feed"], ["no_feed"], []]
    assert len(mind.observations) == 1


def test_a_feed_that_hangs_ends_in_a_flag_and_is_reported_once() -> None:
    async def hang(before: int) -> None:
        if before >= NOW:
            await asyncio.Event().wait()

    mind = always_decides(MINT)
    setup = LiveRunSetup(mind, source=ScriptedSource(PredictCaps(), hang=hang))
    run(setup, 1, feed_ms=15)
    assert [body["flags"] for body in setup.bodies()] == [["feed_timeout"]]
    assert mind.observations == []
    assert [entry["detail"] for entry in setup.entries if entry["kind"] == "remark"] == [
        "feed: the feed does not answer in time"
    ]


def test_trouble_with_the_feed_is_reported_when_it_begins_and_when_it_is_over() -> None:
    setup = LiveRunSetup(always_decides())
    setup.source = ScriptedSource(PredictCaps())

    async def trouble(before: int) -> None:
        assert setup.source is not None
        setup.source.trouble_text = "hermes cannot be reached" if NOW + 70_000 < before < NOW + 100_000 else ""

    setup.source.hang = trouble
    run(setup, 3)
    remarks = [entry["detail"] for entry in setup.entries if entry["kind"] == "remark"]
    assert remarks == ["feed: hermes cannot be reached", "feed: prices come again"]


# What is kept ----------------------------------------------------------------------------------------------------------


def test_nothing_is_reported_that_could_not_be_kept() -> None:
    class FullDiskJournal(MemoryJournal):
        async def commit(self, batch: Any, state: Any, progress: float) -> None:
            raise OSError(28, "No space left on device")

    setup = LiveRunSetup(always_decides(MINT))
    with pytest.raises(OSError, match="No space"):
        run(setup, 1, journal=FullDiskJournal())
    assert setup.entries == []
    assert setup.board.ticks == 0


def test_a_stop_lets_the_tick_in_hand_finish() -> None:
    asked: list[int] = []

    async def slowly(observation: Any, judge: Any) -> Decision:
        asked.append(observation.at)
        await asyncio.sleep(0)
        return Decision((MINT,), "thought about it")

    mind = always_decides()
    mind.decide = slowly  # type: ignore[method-assign]
    setup = LiveRunSetup(mind, stop=lambda: bool(asked))
    run(setup, 5)
    assert setup.ticks() == [NOW]
    assert setup.bodies()[0]["verdicts"][0]["outcome"] == "allowed"


@given(st.integers(0, 12), st.booleans())
@settings(max_examples=4, deadline=None)
def test_a_run_killed_at_any_commit_goes_on_with_the_same_chain(dies_at: int, after: bool) -> None:
    def mind() -> ScriptedDecider:
        return ScriptedDecider(lambda observation: [MINT] if observation.ticks < 6 else [])

    first = LiveRunSetup(mind())
    mortal = KillableJournal(None, dies_at, after)
    first.journal = mortal
    killed = False
    try:
        run(first, 8)
    except KilledRun:
        killed = True
    kept = mortal.latest_state()
    assert killed or first.board.ticks == 8
    result = len([entry for entry in first.entries if entry["kind"] != "remark"])
    assert result <= len(list(mortal.records())) <= result + 1
    second = LiveRunSetup(mind(), clock=PauseClock(first.clock.at + 3_000), journal=MemoryJournal(mortal))
    second.state = None if kept is None else read_state(kept[1])
    second.board.restore(second.journal.records())
    run(second, 3)
    second.verified_records()
    ticks = second.ticks()
    assert ticks == sorted(set(ticks))
    assert (ticks[-1] - ticks[0]) // MINUTE_MS + 1 == len(ticks) + second.missed()
    again = Board()
    again.restore(second.journal.records())
    assert (again.ticks, again.acted, again.skips, again.errors, again.missed_slots, again.events, again.account) == (
        second.board.ticks,
        second.board.acted,
        second.board.skips,
        second.board.errors,
        second.board.missed_slots,
        second.board.events,
        second.board.account,
    )


@given(
    st.dictionaries(
        st.integers(0, 60), st.sampled_from((-HOUR_MS, -61_000, -3_000, 3_000, 61_000, HOUR_MS)), max_size=6
    ),
    st.lists(st.booleans(), min_size=8, max_size=8),
)
@settings(max_examples=4, deadline=None)
def test_whatever_clock_and_feed_do_every_slot_is_accounted_for_once(jumps: dict[int, int], down: list[bool]) -> None:
    mind = always_decides(MINT)
    quiet = ScriptedSource(PredictCaps(), silent=lambda at: down[at // 40_000 % 8])
    setup = LiveRunSetup(mind, clock=PauseClock(NOW + 5, jumps), source=quiet)
    run(setup, 5)
    setup.verified_records()
    ticks = setup.ticks()
    assert ticks == sorted(set(ticks))
    assert (ticks[-1] - (NOW + MINUTE_MS)) // MINUTE_MS + 1 == len(ticks) + setup.missed()
    flagged = {
        record.tick_at: flags
        for record, flags in zip(
            [one for one in setup.journal.records() if one.kind == "tick"],
            [body["flags"] for body in setup.bodies()],
            strict=True,
        )
    }
    for seen in mind.observations:  # no decision was made on a price older than half a minute
        assert seen.at - seen.desk.world.feeds["BTC"].at <= 30_000
        assert "stale_prices" not in flagged[seen.at]


def test_the_same_clock_prices_and_decisions_give_the_same_bytes() -> None:
    ends: set[str] = set()
    for _ in range(2):
        setup = LiveRunSetup(ScriptedDecider(lambda observation: [MINT] if observation.ticks % 2 else []))
        setup.clock.jumps = {40: 7 * MINUTE_MS}
        ends.add(run(setup, 6).prev_digest)
    assert len(ends) == 1


def test_the_driver_knows_no_venue() -> None:
    allowed = ("pitboss.core", "pitboss.tick", "pitboss.agent.decider", "pitboss.engine", "pitboss.live")
    for path in Path(pitboss.live.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [one.name for one in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                if name and name.startswith("pitboss"):
                    assert name.startswith(allowed), f"{path.name} imports {name}"
                    assert not name.startswith(("pitboss.venues.perp.ports", "pitboss.venues.predict.ports"))
