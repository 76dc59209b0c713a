"""Whole runs that remember and reflect: recorded, counted, replayed, resumed and foreseen, to the same digest."""

import asyncio
import dataclasses
import hashlib
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.agent.loop import ToolLoop
from pitboss.core import codec
from pitboss.core.errors import BudgetExceeded, RunCancelled, TransientError
from pitboss.core.instant import MINUTE_MS, parse_instant
from pitboss.core.ports import Model, ModelReply, ModelRequest
from pitboss.core.snapshot import Record
from pitboss.core.state import State
from pitboss.models.replayed import Replayed
from pitboss.models.scripted import calls, says
from pitboss.sim.replay import replay
from pitboss.sim.speculator import Speculation
from pitboss.sim.watch import Watch
from pitboss.testing.journal import MemoryJournal
from pitboss.venues.perp.course import PerpCourse, first_state, read_state
from pitboss.venues.perp.outcome import read_ledger
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.testing import build, make_market, plain_skill
from pitboss.venues.perp.trade_memory import NO_MEMORY
from pitboss.venues.perp.trades import book

BASE = 5 * MINUTE_MS
START = parse_instant("2025-06-04")
TOOL = "write_lessons"
HOLD = calls("propose_order", action="no_op", reason="Nothing to do.")
OPEN = calls("propose_order", action="open_long", symbol="BTC", size_usd=500, leverage=1, reason="It turns.")
CLOSE = calls("propose_order", action="close", symbol="BTC", reason="Enough.")
GREEDY = calls("propose_order", action="open_long", symbol="BTC", size_usd=90_000, leverage=1, reason="All of it.")
PRICE = Decimal("0.01")


def notes(words: str) -> ModelReply:
    slots = ("entry_timing", "sizing", "symbol_selection", "exit_timing", "regime_fit")
    return calls(TOOL, **dict.fromkeys(slots, words))


class NoteWritingModel:
    """Trades by a hash of the prompt, and writes notes on request, after a number of turns of the loop."""

    name = "scripted/mind"

    def __init__(
        self, note: Callable[[int, ModelRequest], ModelReply | Exception], turns: int = 0, luck: int = 3
    ) -> None:
        self.note, self.turns, self.luck = note, turns, luck
        self.asked: list[ModelRequest] = []
        self.reflections: list[str] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.asked.append(request)
        for _ in range(self.turns):
            await asyncio.sleep(0)
        answer = self._answer(request)
        if isinstance(answer, Exception):
            raise answer
        return dataclasses.replace(answer, cost_usd=PRICE)

    def _answer(self, request: ModelRequest) -> ModelReply | Exception:
        words = request.messages[0].text
        if request.must_call == TOOL:
            self.reflections.append(words)
            return self.note(len(self.reflections), request)
        die = hashlib.sha256(words.encode()).digest()[0] % (2 * self.luck)
        if die == 0 and "no open positions" in words:
            return GREEDY
        if die < 3:
            return OPEN if "no open positions" in words else CLOSE
        return HOLD


class Shared:
    """A cache of answers in small."""

    name = "scripted/mind"

    def __init__(self, inner: Model) -> None:
        self._inner = inner
        self._calls: dict[bytes, asyncio.Task[ModelReply]] = {}

    async def complete(self, request: ModelRequest) -> ModelReply:
        key = hashlib.sha256("\x00".join([request.system, *(m.text for m in request.messages)]).encode()).digest()
        if key not in self._calls:
            self._calls[key] = asyncio.get_running_loop().create_task(self._inner.complete(request))
        return await asyncio.shield(self._calls[key])


def rows(count: int) -> list[tuple[int, float, float, float, float]]:
    made, price = [], 100_000.0
    for place in range(-60, count):
        step = (int.from_bytes(hashlib.sha256(f"{place}".encode()).digest()[:2]) % 401 - 200) / 2
        opens, price = price, round(price + step, 1)
        made.append((START + place * BASE, opens, max(opens, price) + 20, min(opens, price) - 20, price))
    return made


def script_of(model: Model, count: int = 60, plan: Speculation | None = None, **memory: Any) -> PerpCourse:
    document = plain_skill(
        model="standin/analyst",
        max_steps=2,
        risk={"max_orders_per_hour": 1_000},
        context={
            "symbols": ["BTC"],
            "bars_interval": "5m",
            "bars_lookback": 50,
            "memory": {"trades": 5, "reflection_every": 3, **memory},
        },
    )
    made = build(PerpRequest(document, START, START + count * BASE), make_market({"BTC": rows(count)}), "5m")
    loop, writer = made.ports.decider, made.ports.reflector
    assert isinstance(loop, ToolLoop)
    ports = dataclasses.replace(
        made.ports,
        decider=dataclasses.replace(loop, model=model),
        reflector=writer and dataclasses.replace(writer, model=model),
    )
    return dataclasses.replace(made, ports=ports, speculation=plan)


def run(
    script: PerpCourse, journal: MemoryJournal | None = None, state: State | None = None
) -> tuple[State, list[Record]]:
    journal = journal or MemoryJournal()
    end = asyncio.run(replay(script, journal, state or first_state(script), Watch()))
    return end, list(journal.records())


def good(number: int, request: ModelRequest) -> ModelReply:
    return notes(f"Lesson {number}: {hashlib.sha256(request.messages[0].text.encode()).hexdigest()[:8]}.")


def reflections(records: list[Record]) -> list[dict[str, Any]]:
    found = [codec.loads(record.covered).get("reflection") for record in records if record.kind == "tick"]
    return [one for one in found if one]


def test_a_run_reflects_after_every_third_trade_and_is_shown_its_lessons_from_then_on() -> None:
    model = NoteWritingModel(good)
    state, records = run(script_of(model))
    closed = len(book(read_ledger(records).receipts).closed)
    found = reflections(records)
    assert closed >= 6
    assert len(model.reflections) == len(found) >= 2
    assert state.memory.notes is not None
    assert state.memory.closed in (closed, closed - 1), "one may have closed after the last tick"
    result = [r.messages[0].text for r in model.asked if r.must_call != TOOL]
    first = next(place for place, words in enumerate(result) if "## Lessons" in words)
    assert all("## Lessons\n" in words for words in result[first:])
    assert "Lesson 1" in result[first]
    assert "Lesson 2" in result[-1] or len(found) > 2
    assert any("## Trade history\n" in words for words in result)
    assert any("## Risk state\n" in words for words in result)
    assert "Lesson 1" in model.reflections[1], "its own earlier notes"


def test_what_a_reflection_costs_is_part_of_its_tick_and_of_the_run() -> None:
    model = NoteWritingModel(good)
    _, records = run(script_of(model))
    assert read_ledger(records).cost_usd == PRICE * len(model.asked)
    for record in records:
        body, extra = codec.loads(record.covered), codec.loads(record.extra)
        if "reflection" in body:
            assert Decimal(extra["cost_usd"]) == PRICE * (len(body["steps"]) + 1)
            assert [step["calls"][0]["name"] for step in body["reflection"]["steps"]] == [TOOL]
            assert extra["reflection"]["prompt"][1].startswith("## Time")
        else:
            assert "reflection" not in extra


def test_where_no_reflection_takes_place_a_record_has_no_such_part() -> None:
    _, records = run(script_of(NoteWritingModel(good), count=6))
    assert reflections(records) == []
    assert not any("reflection" in codec.loads(record.covered) for record in records)


def test_without_memory_nothing_is_remembered_asked_or_shown() -> None:
    model = NoteWritingModel(good)
    state, records = run(script_of(model, enabled=False))
    assert reflections(records) == []
    assert (state.memory.trades, state.memory.closed, model.reflections) == ((), 0, [])
    assert not any(
        "## Risk state" in r.messages[0].text or "## Trade history" in r.messages[0].text for r in model.asked
    )


FAILURES: dict[str, ModelReply | Exception] = {
    "words": says("No."),
    "over-long": notes("x" * 900),
    "refused": ModelReply("", problem="the model refused.", finish_reason="error"),
    "malformed": calls(TOOL, sizing="only one"),
    "fails": TransientError("busy"),
}


@pytest.mark.parametrize("answer", FAILURES.values(), ids=FAILURES)
def test_an_answer_that_is_no_notes_stops_nothing_and_is_asked_for_again_only_after_another_trade(
    answer: ModelReply | Exception,
) -> None:
    model = NoteWritingModel(lambda number, request: good(number, request) if number == 1 else answer)
    state, records = run(script_of(model))
    found = reflections(records)
    assert [one["flags"] for one in found[:2]] == [[], ["model_error" if isinstance(answer, Exception) else "no_notes"]]
    assert found[1]["text"]
    assert state.memory.notes is not None
    assert state.memory.notes.sizing.startswith("Lesson 1")
    assert len(model.reflections) <= state.memory.closed - 2, "at most once for every trade from the third on"
    ticks = [record for record in records if record.kind == "tick"]
    assert len(ticks) == 60
    again = script_of(Replayed(records, "3f9a"))
    assert run(again)[0].prev_digest == state.prev_digest, "a replay finds the failure too"


def test_a_replay_finds_every_reflection_and_ends_in_the_same_digest() -> None:
    state, records = run(script_of(NoteWritingModel(good)))
    assert len(reflections(records)) >= 2
    source = Replayed(records, "3f9a")
    again, replayed = run(script_of(source))
    assert again.prev_digest == state.prev_digest
    assert codec.dumps(again) == codec.dumps(state)
    assert source.calls == sum(len(codec.loads(r.covered).get("steps", ())) for r in records) + len(
        reflections(replayed)
    )


def test_a_run_that_was_stopped_anywhere_and_goes_on_from_storage_ends_the_same() -> None:
    expected, whole = run(script_of(NoteWritingModel(good)))
    for stop in (1, 14, 23, 37, 51):
        journal, count = MemoryJournal(), 0

        def cancel(stop: int = stop) -> bool:
            nonlocal count
            count += 1
            return count > stop

        shared = Shared(NoteWritingModel(good))
        stopped = script_of(shared)
        with pytest.raises(RunCancelled):
            asyncio.run(replay(stopped, journal, first_state(stopped), Watch(stop=cancel)))
        kept = list(journal.records())
        assert len(kept) == stop
        stored = journal.latest_state()
        assert stored is not None
        model = NoteWritingModel(lambda number, request: good(number + len(reflections(kept)), request))  # noqa: B023
        end, records = run(script_of(model), journal, read_state(stored[1]))
        assert [record.digest for record in records] == [record.digest for record in whole]
        assert codec.dumps(end) == codec.dumps(expected)


@settings(max_examples=4, deadline=None)  # each is two runs
@given(st.integers(1, 6), st.integers(0, 6), st.integers(2, 12), st.booleans())
def test_asking_ahead_changes_no_record_where_lessons_are_written(
    window: int, turns: int, luck: int, fails: bool
) -> None:
    """Equal with and without speculation, also where a guess has to reflect first or a reflection fails."""

    def note(number: int, request: ModelRequest) -> ModelReply:
        del number  # a guess may have been asked first: an answer depends on its question alone
        words = hashlib.sha256(request.messages[0].text.encode()).hexdigest()
        return says("no") if fails and words[0] in "01234" else notes(f"Lesson {words[:8]}.")

    alone, alone_records = run(script_of(Shared(NoteWritingModel(note, turns, luck))))
    plan = Speculation(window=window, max_waste_pct=500.0)
    ahead, records = run(script_of(Shared(NoteWritingModel(note, turns, luck)), plan=plan))
    assert [record.covered for record in records] == [record.covered for record in alone_records]
    assert codec.dumps(ahead) == codec.dumps(alone)


def test_a_guess_asks_the_reflection_that_its_tick_will_ask() -> None:
    """The clone reflects through the same model, so the tick finds notes and the decision after them under way."""

    def note(number: int, request: ModelRequest) -> ModelReply:
        del number
        return notes(hashlib.sha256(request.messages[0].text.encode()).hexdigest()[:8])

    model = NoteWritingModel(note, 20, 3)
    _, records = run(script_of(Shared(model), plan=Speculation(window=4, max_waste_pct=500.0)))
    asked = [request.messages[0].text for request in model.asked if request.must_call == TOOL]
    assert len(reflections(records)) >= 2
    assert len(asked) == len(set(asked)), "no question twice"


def test_a_run_that_builds_no_prompt_remembers_nothing() -> None:
    document = plain_skill(model="policy/buy_and_hold")
    request = PerpRequest(document, START, START + 60 * BASE)
    for prompts in (None, True):
        made = build(dataclasses.replace(request, prompts=prompts), make_market({"BTC": rows(60)}), "5m")
        assert made.ports.reflector is None
        state, records = run(made)
        assert (state.memory == NO_MEMORY) == (not prompts)
        assert reflections(records) == []


def test_a_budget_that_ends_at_a_reflection_keeps_everything_and_the_run_goes_on_to_the_same_digest() -> None:
    expected, _ = run(script_of(NoteWritingModel(good)))
    broke = NoteWritingModel(
        lambda number, request: good(number, request) if number == 1 else BudgetExceeded("no money")
    )
    journal, script = MemoryJournal(), script_of(broke)
    with pytest.raises(BudgetExceeded):
        asyncio.run(replay(script, journal, first_state(script), Watch()))
    stored = journal.latest_state()
    assert stored is not None
    assert len(broke.reflections) == 2
    rest = NoteWritingModel(lambda number, request: good(number + 1, request))
    end, _ = run(script_of(rest), journal, read_state(stored[1]))
    assert end.prev_digest == expected.prev_digest
