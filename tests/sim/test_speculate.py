"""Speculation: the records of the sequential run to the byte, no request sent twice, no task left.

The model is a function of what it is shown; how long it takes is counted in turns of the event loop, so that every order
of events can be had without waiting.
"""

import asyncio
import dataclasses
import hashlib
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pitboss.agent.loop import ToolLoop
from pitboss.core import codec
from pitboss.core.errors import BudgetExceeded, RunCancelled, TransientError, UserError
from pitboss.core.instant import MINUTE_MS, parse_instant
from pitboss.core.intent import Decision
from pitboss.core.ports import Model, ModelReply, ModelRequest
from pitboss.core.snapshot import Record
from pitboss.core.state import LastDecision, State
from pitboss.models.scripted import calls, says
from pitboss.sim.replay import replay
from pitboss.sim.speculation_budget import SpeculationBudget
from pitboss.sim.speculation_window import NO_PAST, HoldPrior
from pitboss.sim.speculator import Speculation, Speculator, Tally
from pitboss.sim.watch import Watch
from pitboss.testing.journal import MemoryJournal
from pitboss.tick import TickResult
from pitboss.tools.define import ToolContext
from pitboss.tools.registry import hydrate
from pitboss.venues.perp.assembly import read_skill
from pitboss.venues.perp.context import PerpPrompts
from pitboss.venues.perp.course import PerpCourse, first_state
from pitboss.venues.perp.intents import DECISION, TERMINAL
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.testing import build, make_market, plain_skill
from pitboss.venues.perp.venue import VENUE

BASE = 5 * MINUTE_MS
START = parse_instant("2025-06-04")
TOOLS = ["fetch_recent_bars", "get_portfolio"]

HOLD = calls(TERMINAL, action="no_op", reason="Nothing to do.")
ORDER = calls(TERMINAL, action="open_long", symbol="BTC", size_usd=50, leverage=1, reason="Up.")
CLOSE = calls(TERMINAL, action="close", symbol="BTC", reason="Enough.")
REFUSED = calls(TERMINAL, action="open_long", symbol="BTC", size_usd=90_000, leverage=1, reason="All of it.")
LOOK = calls("get_portfolio")
MALFORMED = calls(TERMINAL, action="what", reason="?")

Answer = Callable[[ModelRequest, int], ModelReply | Exception]
"""The reply to a request about the tick with this number."""


class Shared:
    """The cache of answers in small: equal questions share a call; whoever waited for one that failed asks himself."""

    def __init__(self, inner: Model) -> None:
        self.name = inner.name
        self._inner = inner
        self._answers: dict[bytes, ModelReply] = {}
        self._pending: dict[bytes, asyncio.Future[None]] = {}

    async def complete(self, request: ModelRequest) -> ModelReply:
        key = digest(request)
        while key in self._pending:
            await asyncio.wait([self._pending[key]])
        if key in self._answers:
            return self._answers[key]
        pending = self._pending[key] = asyncio.get_running_loop().create_future()
        try:
            self._answers[key] = await self._inner.complete(request)
        finally:
            del self._pending[key]
            pending.set_result(None)
        return self._answers[key]


class SlowModel:
    """A model that answers each request after a number of turns of the loop, and counts requests."""

    name = "scripted/mind"

    def __init__(
        self,
        answer: Answer,
        turns: Callable[[bytes], int] = lambda key: 3,
        cents: Callable[[bytes], int] = lambda key: 2 + key[0] % 3,
    ) -> None:
        self.asked: Counter[bytes] = Counter()
        self.answered: Counter[bytes] = Counter()
        self.at_once = self.most_at_once = 0
        self.flying: set[bytes] = set()
        self._answer, self._turns, self._cents = answer, turns, cents

    @property
    def spent(self) -> Decimal:
        """The cost of all calls that have ended, whether or not their replies were used."""
        return Decimal("0.01") * sum(self._cents(key) for key in self.asked if key not in self.flying)

    @property
    def under_way(self) -> int:
        return len(self.flying)

    async def complete(self, request: ModelRequest) -> ModelReply:
        key = digest(request)
        self.asked[key] += 1
        self.flying.add(key)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            for _ in range(self._turns(key)):
                await asyncio.sleep(0)
        finally:
            self.at_once -= 1
            self.flying.discard(key)
        answer = self._answer(request, tick_of(request))
        if isinstance(answer, Exception):
            raise answer
        self.answered[key] += 1
        return dataclasses.replace(answer, cost_usd=Decimal("0.01") * self._cents(key))


def digest(request: ModelRequest) -> bytes:
    words = [request.system, str(request.must_call), *(f"{m.role} {m.text} {m.calls}" for m in request.messages)]
    return hashlib.sha256("\x00".join(words).encode()).digest()


def tick_of(request: ModelRequest) -> int:
    """The number of the tick a request is about."""
    shown = request.messages[0].text.split("## Time\n", 1)[1].split(" UTC", 1)[0]
    return (parse_instant(shown.replace(" ", "T") + "Z") - START) // BASE


def script_of(
    model: Model, plan: Speculation | None, count: int = 40, wake_when: Any = (), memory: bool = True
) -> PerpCourse:
    schedule = {"every": "5m", **({"wake_when": list(wake_when)} if wake_when else {})}
    risk = {"max_orders_per_hour": 1_000, "daily_loss_halt_pct": 1_000, "drawdown_halt_pct": 1_000}
    document = plain_skill(tools={"built_in": TOOLS}, max_steps=4, retry_refused=0, risk=risk, schedule=schedule)
    if not memory:
        document["context"] = {**document["context"], "memory": {"enabled": False}}
    skill = read_skill(document)
    loop = ToolLoop(
        model.name,
        model,
        PerpPrompts(skill),
        lambda observation, judge: hydrate(VENUE.tools(), TOOLS, ToolContext(observation, "write", judge)),
        DECISION,
        skill.max_steps,
        skill.retry_refused,
    )
    rows, price = [], 100_000.0
    for place in range(-60, count):
        step = (int.from_bytes(hashlib.sha256(f"{place}".encode()).digest()[:2]) % 401 - 200) / 2
        opens, price = price, round(price + step, 1)
        rows.append((START + place * BASE, opens, max(opens, price) + 20, min(opens, price) - 20, price))
    request = PerpRequest(document, START, START + count * BASE)
    return dataclasses.replace(build(request, make_market({"BTC": rows}), "5m", loop), speculation=plan)


def run(script: PerpCourse, watch: Watch | None = None) -> tuple[State, list[Record]]:
    """To the end, and then nobody may be left who still works on it."""
    journal = MemoryJournal()

    async def whole() -> State:
        try:
            return await replay(script, journal, first_state(script), watch or Watch())
        finally:
            assert asyncio.all_tasks() == {asyncio.current_task()}

    try:
        return asyncio.run(whole()), list(journal.records())
    except (TransientError, RunCancelled, BudgetExceeded) as error:
        return State(type(error).__name__), list(journal.records())


def ahead(window: int | None = None, cap: float = 35.0, prior: HoldPrior = NO_PAST) -> Speculation:
    return Speculation(window, cap, prior=prior)


# The same run ---------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Habits:
    """How often out of 100 the model does what, by the digest of its prompt."""

    salt: int
    orders: int
    refused: int
    looks: int
    odd: int
    fails: int

    def answer(self, request: ModelRequest, tick: int) -> ModelReply | Exception:
        del tick
        key = hashlib.sha256(digest(request) + bytes([self.salt])).digest()
        dice, held = key[0] % 100, "no open positions" not in request.messages[0].text
        for share, reply in (
            (self.orders, CLOSE if held else ORDER),
            (self.refused, REFUSED),
            (self.looks, LOOK),
            (self.odd, says("hm") if key[1] % 2 else MALFORMED),
            (self.fails, TransientError("a bad moment")),
        ):
            if dice < share:
                return reply
            dice -= share
        return HOLD


shares = st.sampled_from([0, 0, 3, 10, 30])
habits = st.builds(Habits, st.integers(0, 255), st.sampled_from([0, 3, 10, 40, 100]), shares, shares, shares, shares)
turns_of = st.sampled_from(
    [lambda key: 0, lambda key: 1, lambda key: 25, lambda key: key[5] % 9, lambda key: 60 if key[6] < 20 else 2]
)
conditions = st.sampled_from([(), (), ("position_open",), ({"move_atr": 0.8},), ("new_news", {"move_atr": 0.3})])


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    habits=habits,
    turns=turns_of,
    window=st.one_of(st.none(), st.integers(0, 12)),
    cap=st.sampled_from([0.0, 10.0, 35.0, 100.0, 1_000.0]),
    wake_when=conditions,
    prior=st.sampled_from([NO_PAST, NO_PAST.with_past(0, 500), NO_PAST.with_past(500, 0), HoldPrior(8, 1)]),
)
def test_the_records_are_those_of_the_sequential_run_to_the_byte(
    habits: Habits, turns: Callable[[bytes], int], window: int | None, cap: float, wake_when: Any, prior: HoldPrior
) -> None:
    alone, model, plan = SlowModel(habits.answer, turns), SlowModel(habits.answer, turns), ahead(window, cap, prior)
    expected = run(script_of(Shared(alone), None, 30, wake_when))
    found = run(script_of(Shared(model), plan, 30, wake_when))
    assert found[1] == expected[1]
    assert codec.dumps(found[0]) == codec.dumps(expected[0])
    assert set(alone.asked) <= set(model.asked)
    assert max(model.answered.values(), default=0) <= 1, "an answer was paid for twice"
    tally = plan.tally
    assert tally.launched == tally.used + tally.wasted + tally.failed
    if window != 0 and not habits.fails and expected[0].world != "TransientError":
        assert tally.wasted * 100 <= cap * tally.useful + 1e-9
        assert tally.useful_usd == sum(Decimal(codec.loads(r.extra)["cost_usd"]) for r in found[1] if r.kind == "tick")


@settings(max_examples=15, deadline=None)
@given(
    habits=habits,
    turns=turns_of,
    window=st.integers(1, 8),
    error=st.sampled_from([0, 1, 2, 3]),
    share=st.integers(1, 256),
)
def test_a_failure_of_a_guess_never_reaches_the_run(
    habits: Habits, turns: Callable[[bytes], int], window: int, error: int, share: int
) -> None:
    calm = dataclasses.replace(habits, fails=0)
    here = -1

    def look() -> bool:
        nonlocal here
        here += 1
        return False

    errors = [TransientError("busy"), BudgetExceeded("no money"), UserError("no key"), RuntimeError("a fault")]

    def answer(request: ModelRequest, tick: int) -> ModelReply | Exception:
        if tick > here and digest(request)[7] < share:
            return errors[error]
        return calm.answer(request, tick)

    expected = run(script_of(Shared(SlowModel(calm.answer, turns)), None))
    found = run(script_of(Shared(SlowModel(answer, turns)), ahead(window, 500.0)), Watch(stop=look))
    assert found[1] == expected[1]
    assert codec.dumps(found[0]) == codec.dumps(expected[0])


# What is asked --------------------------------------------------------------------------------------------------------


def acting(at: dict[int, ModelReply]) -> Answer:
    return lambda request, tick: at.get(tick, HOLD)


def test_holds_are_asked_together_and_every_guess_is_used() -> None:
    model, plan = SlowModel(acting({}), lambda key: 50), ahead(4, 100.0)
    run(script_of(Shared(model), plan, 41))
    assert model.most_at_once == 5
    # The first tick is the replay's own; of the later windows the first tick may be asked ahead as well.
    assert 32 <= plan.tally.launched == plan.tally.used <= 40
    assert plan.tally.wasted == 0
    assert len(model.asked) == plan.tally.useful == 41
    assert plan.tally.waste_pct == 0


def test_an_order_wastes_the_rest_of_its_window_and_nothing_else() -> None:
    model, plan = SlowModel(acting({12: ORDER}), lambda key: 50), ahead(4, 100.0)
    run(script_of(Shared(model), plan, 40))
    # Windows begin at 0, 5 and 10: the guesses for 13 and 14 assumed that nothing had happened at 12.
    assert plan.tally.wasted == 2
    assert len(model.asked) == 42


def test_a_refused_order_wastes_only_the_question_whose_prompt_it_changes() -> None:
    model, plan = SlowModel(acting({11: REFUSED}), lambda key: 50), ahead(4, 100.0)
    run(script_of(Shared(model), plan, 40, memory=False))
    assert plan.tally.wasted == 1
    assert len(model.asked) == 41


def test_a_refused_order_that_is_remembered_wastes_the_rest_of_its_window() -> None:
    """The risk state of the hour after it tells of the refusal, so every prompt of that hour is another one."""
    model, plan = SlowModel(acting({11: REFUSED}), lambda key: 50), ahead(4, 100.0)
    run(script_of(Shared(model), plan, 40))
    assert plan.tally.wasted == 3
    assert len(model.asked) == 43


def test_what_was_dropped_sends_no_further_step() -> None:
    def answer(request: ModelRequest, tick: int) -> ModelReply:
        if tick == 10:
            return ORDER
        return LOOK if tick > 10 and len(request.messages) == 1 else HOLD

    def turns(key: bytes) -> int:
        return 50

    model, plan = SlowModel(answer, turns), ahead(4, 100.0)
    run(script_of(Shared(model), plan, 12))
    # Ticks 0 to 10 ask once and 11 twice; the guess for 11 is dropped while its first step is under way.
    assert plan.tally.wasted == 1
    assert sum(model.asked.values()) == 11 + 2 + 1


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    habits=habits,
    turns=turns_of,
    window=st.one_of(st.none(), st.integers(1, 12)),
    cap=st.sampled_from([5.0, 10.0, 35.0]),
    count=st.integers(20, 60),
)
def test_the_cap_is_kept_in_money_where_calls_cost_the_same_however_many_a_decision_takes(
    habits: Habits, turns: Callable[[bytes], int], window: int | None, cap: float, count: int
) -> None:
    calm = dataclasses.replace(habits, fails=0)
    plan = ahead(window, cap)
    model = SlowModel(calm.answer, turns, lambda key: 2)
    run(script_of(Shared(model), plan, count))
    assert plan.tally.wasted_usd * 100 <= Decimal(cap) * plan.tally.useful_usd
    assert Decimal("0.02") * len(model.asked) <= plan.tally.useful_usd + plan.tally.wasted_usd
    assert plan.tally.waste_pct <= cap + 1e-9


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    habits=habits,
    turns=turns_of,
    window=st.one_of(st.none(), st.integers(1, 12)),
    cap=st.sampled_from([5.0, 10.0, 35.0]),
    count=st.integers(20, 60),
    top=st.integers(10, 20),
)
def test_the_cap_is_kept_in_money_where_no_call_costs_more_than_twice_another(
    habits: Habits, turns: Callable[[bytes], int], window: int | None, cap: float, count: int, top: int
) -> None:
    def cents(key: bytes) -> int:
        return 10 + key[3] % (top - 9)

    calm = dataclasses.replace(habits, fails=0)
    model = SlowModel(calm.answer, turns, cents)
    budget = SpeculationBudget(lambda request: Decimal(100), model)  # a price list that allows far more
    plan = Speculation(window, cap, budget=budget)
    run(script_of(Shared(model), plan, count))
    assert (model.spent - plan.tally.useful_usd) * 100 <= Decimal(cap) * plan.tally.useful_usd


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    habits=habits,
    turns=turns_of,
    window=st.one_of(st.none(), st.integers(1, 12)),
    cap=st.sampled_from([10.0, 35.0, 100.0]),
    count=st.integers(20, 60),
    most=st.sampled_from([5, 50, 500]),
    rare=st.sampled_from([1, 8, 64]),
)
def test_once_calls_are_seen_to_differ_the_cap_is_kept_whatever_they_cost(
    habits: Habits, turns: Callable[[bytes], int], window: int | None, cap: float, count: int, most: int, rare: int
) -> None:
    def cents(key: bytes) -> int:
        return most if key[3] % rare == 0 else 1 + key[4] % most

    calm = dataclasses.replace(habits, fails=0)
    model = SlowModel(calm.answer, turns, cents)
    plan = Speculation(window, cap, budget=SpeculationBudget(lambda request: Decimal("0.01") * most, model))
    for seen in (1, most):
        plan.budget.add_call(Decimal("0.01") * seen)
    run(script_of(Shared(model), plan, count))
    assert (model.spent - plan.tally.useful_usd) * 100 <= Decimal(cap) * plan.tally.useful_usd


def test_a_guess_stops_where_it_would_become_dearer_than_any_decision_so_far() -> None:
    def answer(request: ModelRequest, tick: int) -> ModelReply:
        return LOOK if tick == 12 and len(request.messages) < 4 else HOLD

    model, plan = SlowModel(answer, lambda key: 50, lambda key: 2), ahead(4, 100.0)
    _, records = run(script_of(Shared(model), plan, 14))
    # Tick 12 takes three questions; its guess was allowed the one that every tick before it had taken.
    assert plan.tally.failed == 0
    assert plan.tally.used == plan.tally.launched
    assert plan.tally.most_usd == Decimal("0.06")
    assert sum(model.asked.values()) == len(model.asked)
    assert len([record for record in records if record.kind == "tick"]) == 14


def test_at_orders_alone_it_gives_up_after_a_handful() -> None:
    model, plan = SlowModel(Habits(0, 100, 0, 0, 0, 0).answer, lambda key: 50), ahead()
    run(script_of(Shared(model), plan, 120))
    assert 0 < plan.tally.launched < 10
    assert plan.tally.used == 0
    assert plan.tally.waste_pct <= 8


def test_at_orders_that_are_all_refused_it_gives_up_after_a_handful_and_ends_the_same() -> None:
    """They leave the account as it is, but the next prompt tells of each, so every guess behind one is in vain."""
    model, plan = SlowModel(Habits(0, 0, 100, 0, 0, 0).answer, lambda key: 50), ahead()
    found = run(script_of(Shared(model), plan, 120, memory=False))
    assert plan.tally.launched < 10
    assert plan.tally.waste_pct <= 8
    alone = SlowModel(Habits(0, 0, 100, 0, 0, 0).answer, lambda key: 50)
    assert found == run(script_of(Shared(alone), None, 120, memory=False))


def test_ticks_slept_through_are_not_asked_ahead() -> None:
    wake_when = ({"move_atr": 1.5},)
    alone, model, plan = (
        SlowModel(acting({}), lambda key: 50),
        SlowModel(acting({}), lambda key: 50),
        ahead(3, 1_000.0),
    )
    run(script_of(Shared(alone), None, 120, wake_when))
    run(script_of(Shared(model), plan, 120, wake_when))
    assert model.asked == alone.asked
    assert 3 < plan.tally.used < len(model.asked) < 110


@pytest.mark.parametrize("flag", ["asleep", "ruined", "no_quote"])
def test_a_tick_at_which_the_model_is_not_called_allows_no_waste(flag: str) -> None:
    plan = ahead()
    script = script_of(SlowModel(acting({})), plan)
    state = first_state(script)
    after = dataclasses.replace(state, last=LastDecision(START, "noop", flag))
    skipped = Record(0, "tick", START, "", "", b"{}", b"{}")
    result = TickResult(after, skipped, Decision(flags=(flag,)), {}, ())
    Speculator(plan, script).after(0, state, result)
    assert plan.tally == Tally()


def test_answers_that_come_at_once_are_not_guessed() -> None:
    """A warm rerun finds everything in the cache: guessing would only cost time."""
    model, plan = SlowModel(acting({}), lambda key: 0), ahead(4, 100.0)
    run(script_of(Shared(model), plan))
    tally = plan.tally
    assert (tally.launched, tally.used, tally.wasted, tally.failed, tally.useful) == (0, 0, 0, 0, 40)


def test_a_window_of_none_is_the_sequential_run() -> None:
    model, plan = SlowModel(acting({}), lambda key: 50), ahead(0)
    run(script_of(Shared(model), plan))
    assert model.most_at_once == 1
    assert plan.tally == Tally()


def test_after_a_failed_guess_it_rests_and_without_money_it_ends() -> None:
    def failing(error: Exception) -> Answer:
        return lambda request, tick: error if tick == 3 else HOLD

    busy, model = ahead(4, 100.0), SlowModel(failing(TransientError("busy")), lambda key: 50)
    run(script_of(Shared(model), busy, 60))
    assert busy.tally.failed == 1
    assert 30 < busy.tally.used < 45
    refusals = [BudgetExceeded("enough")]
    poor = ahead(4, 100.0)
    model = SlowModel(lambda request, tick: refusals.pop() if tick == 3 and refusals else HOLD, lambda key: 50)
    run(script_of(Shared(model), poor, 60))
    assert (poor.tally.launched, poor.tally.used, poor.tally.failed) == (4, 3, 1)


def test_ticks_of_one_window_are_committed_together_while_the_next_is_awaited() -> None:
    seen: list[tuple[int, int]] = []

    class Looking(SlowModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            seen.append((tick_of(request), len(list(journal.records()))))
            return await super().complete(request)

    journal = MemoryJournal()
    script = script_of(Shared(Looking(acting({}), lambda key: 200)), ahead(4, 100.0), 40)
    asyncio.run(replay(script, journal, first_state(script), Watch()))
    assert all(stored >= tick - 10 for tick, stored in seen), "no more than the window before is not kept yet"
    assert 8 <= journal.commits <= 9


# The end --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stop_at", [1, 3, 17])
def test_a_run_that_is_stopped_leaves_no_task_behind(stop_at: int) -> None:
    checks = 0

    def stop() -> bool:
        nonlocal checks
        checks += 1
        return checks > stop_at

    plan = ahead(6, 1_000.0)
    state, records = run(script_of(Shared(SlowModel(acting({}), lambda key: 50)), plan), Watch(stop=stop))
    assert state.world == "RunCancelled"
    assert len(records) == stop_at
    assert plan.tally.launched == plan.tally.used + plan.tally.wasted + plan.tally.failed


@pytest.mark.parametrize("turn", [2, 5, 40, 111])
def test_a_run_that_is_interrupted_in_the_middle_of_a_tick_leaves_no_task_behind(turn: int) -> None:
    model, journal = SlowModel(acting({9: ORDER}), lambda key: 30), MemoryJournal()
    script = script_of(Shared(model), ahead(6, 1_000.0))

    async def whole() -> None:
        running = asyncio.create_task(replay(script, journal, first_state(script), Watch()))
        for _ in range(turn):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert model.at_once == 0

    asyncio.run(whole())
    alone = run(script_of(Shared(SlowModel(acting({9: ORDER}))), None))
    assert list(journal.records()) == alone[1][: len(list(journal.records()))]


def test_five_failures_in_a_row_end_the_run_as_they_would_alone() -> None:
    def answer(request: ModelRequest, tick: int) -> ModelReply | Exception:
        return TransientError("down") if tick >= 8 else HOLD

    alone, found = (
        run(script_of(Shared(SlowModel(answer)), None)),
        run(script_of(Shared(SlowModel(answer)), ahead(4, 100.0))),
    )
    assert found[0].world == alone[0].world == "TransientError"
    assert found[1] == alone[1]


# The window -----------------------------------------------------------------------------------------------------------
