"""The one loop: ticks without a decider call, with a broken rule, with refusals of the venue, with repeated intents."""

import asyncio
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import pytest

from pitboss.agent.decider import Judge
from pitboss.core import codec
from pitboss.core.instant import DAY_MS, HOUR_MS, MINUTE_MS, parse_instant
from pitboss.core.intent import Decision
from pitboss.core.rulebook import Finding, Rule
from pitboss.core.snapshot import GENESIS, Record, check, prompt_sha256
from pitboss.core.state import State
from pitboss.core.verdict import margin_fields
from pitboss.engine.execute import Placed
from pitboss.tick import WorldEvents, foresee, tick
from pitboss.venues.perp import rule_book
from pitboss.venues.perp.assets import SHIPPED
from pitboss.venues.perp.broker import PaperBroker
from pitboss.venues.perp.case import PerpCase
from pitboss.venues.perp.context import PerpPrompts
from pitboss.venues.perp.course import read_state
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.ports import PerpPorts
from pitboss.venues.perp.skill import PerpSkill
from pitboss.venues.perp.skill_caps import caps_of
from pitboss.venues.perp.state import PerpWorld, Position, TradingTerms, WorkingOrder, open_world
from pitboss.venues.perp.testing import judge as guard
from pitboss.venues.perp.testing import make_market, plain_skill
from pitboss.venues.perp.trade_memory import NO_MEMORY
from pitboss.venues.perp.world import OrderRequest, set_marks

NOW = parse_instant("2025-06-03T12:00:00Z")
TERMS = TradingTerms(SHIPPED, daily_loss_halt_pct=Decimal(5), drawdown_halt_pct=Decimal(15))
OPEN: dict[str, Any] = {"action": "open_long", "symbol": "BTC", "size_usd": 1_000, "reason": "up"}
MARKET = make_market({"BTC": [(NOW - place * 5 * MINUTE_MS, 1e5, 1e5, 1e5, 1e5) for place in range(60, 0, -1)]})


def initial_state(world: PerpWorld, **more: Any) -> State:
    """The state of a run at its beginning."""
    return State(world, memory=NO_MEMORY, **more)


@dataclass
class CountingDecider:
    """Decides fixed intents and counts its calls."""

    intents: tuple[Any, ...] = ()
    flags: tuple[str, ...] = ()
    call_count: int = 0
    verdicts: list[Any] = field(default_factory=list)
    name: str = "mind"

    async def decide(self, observation: Observation, judge: Judge) -> Decision:
        self.call_count += 1
        self.verdicts = [judge(intent) for intent in self.intents]
        return Decision(self.intents, "thinking", flags=self.flags)


@dataclass
class CountingBroker:
    """A paper broker that remembers what it was sent."""

    inner: PaperBroker = field(default_factory=lambda: PaperBroker(TERMS))
    sent: list[OrderRequest] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)

    async def submit(self, world: Any, request: OrderRequest, at: int) -> Placed:
        self.sent.append(request)
        return await self.inner.submit(world, request, at)

    async def cancel(self, world: Any, order_id: str, at: int) -> Placed:
        self.cancelled.append(order_id)
        return await self.inner.cancel(world, order_id, at)


class RefusingBroker:
    """Says no to everything."""

    async def submit(self, world: Any, request: OrderRequest, at: int) -> Placed:
        return Placed(world, refusal=f"no {request.symbol} today")

    async def cancel(self, world: Any, order_id: str, at: int) -> Placed:
        return Placed(world, refusal=f"{order_id} is gone")


def account(cash: int = 10_000) -> PerpWorld:
    return set_marks(open_world(Decimal(cash), NOW // DAY_MS), {"BTC": (Decimal(100_000), NOW)})


def ports(decider: CountingDecider, broker: Any = None, **skill: Any) -> PerpPorts:
    document = PerpSkill.model_validate(plain_skill(**skill))
    return PerpPorts(
        skill=document,
        limits=caps_of(document),
        terms=TERMS,
        view=MARKET.view,
        decider=decider,
        broker=broker or PaperBroker(TERMS),
        context=PerpPrompts(document),
        started_at=NOW - HOUR_MS,
    )


def run_tick(
    state: State,
    given: PerpPorts,
    happened: WorldEvents = WorldEvents(),  # noqa: B008
) -> tuple[State, dict[str, Any], Record]:
    done = asyncio.run(tick(state, NOW, happened, given))
    return done.state, codec.loads(done.record.covered), done.record


def test_a_tick_records_what_was_seen_decided_judged_and_done() -> None:
    decider = CountingDecider((OPEN,))
    given = ports(decider)
    happened = WorldEvents((), [(NOW, 300_000, "10000", 1)])
    after, body, record = run_tick(initial_state(account()), given, happened)
    check(record, 0, GENESIS)
    assert (after.seq, after.prev_digest, after.tick_at, after.accepted_opens) == (1, record.digest, NOW, (NOW,))
    assert body["proposals"] == [OPEN]
    assert [verdict["outcome"] for verdict in body["verdicts"]] == ["allowed"]
    assert [receipt["kind"] for receipt in body["receipts"]] == ["accepted"]
    assert body["equity"] == [[NOW, 300_000, "10000", 1]]
    assert (body["before"]["orders"], len(body["after"]["orders"])) == ([], 1)
    prompt = codec.loads(record.extra)["prompt"]
    assert body["prompt_sha256"] == prompt_sha256(tuple(prompt))
    assert body["text"] == "thinking"


def test_the_judge_a_mind_may_ask_changes_nothing() -> None:
    decider = CountingDecider((OPEN,))
    broker = CountingBroker()
    after, _, _ = run_tick(initial_state(account()), ports(decider, broker))
    assert [verdict.outcome for verdict in decider.verdicts] == ["allowed"]
    assert len(broker.sent) == len(after.world.orders) == 1


def test_a_ruined_account_is_not_asked_any_more() -> None:
    decider = CountingDecider((OPEN,))
    after, body, _ = run_tick(initial_state(account(0)), ports(decider))
    assert (decider.call_count, body["flags"], body["proposals"], body["prompt_sha256"]) == (0, ["ruined"], [], None)
    assert after.last is not None
    assert (after.last.outcome, after.last.flag) == ("noop", "ruined")


def test_an_account_without_money_is_still_asked_while_something_is_open() -> None:
    held = Position("BTC", Decimal("0.01"), Decimal(2_000), NOW - HOUR_MS)
    order = WorkingOrder("o1", "close", "BTC", -1, Decimal("0.01"), NOW, NOW)
    is_over = ports(CountingDecider(())).is_over
    assert is_over(account(0))
    assert is_over(account(-5))
    assert not is_over(replace(account(0), positions={"BTC": held}))
    assert not is_over(replace(account(0), orders=(order,)))
    decider = CountingDecider(({"action": "close", "symbol": "BTC", "reason": "out"},))
    _, body, _ = run_tick(initial_state(replace(account(0), positions={"BTC": held})), ports(decider))
    assert [verdict["outcome"] for verdict in body["verdicts"]] == ["allowed"]


def test_a_tick_without_wake_calls_no_model_and_builds_no_prompt() -> None:
    decider = CountingDecider((OPEN,))
    given = ports(decider, schedule={"every": "5m", "wake_when": ["position_open"]})
    after, body, _ = run_tick(initial_state(account()), given)
    assert (decider.call_count, body["flags"], body["prompt_sha256"], after.asked_close) == (0, ["asleep"], None, {})
    held = Position("BTC", Decimal("0.01"), Decimal(1_000), NOW - HOUR_MS)
    after, body, _ = run_tick(initial_state(replace(account(), positions={"BTC": held})), given)
    assert (decider.call_count, body["flags"], after.asked_close) == (1, [], {"BTC": 100_000.0})


def test_of_a_no_op_the_next_tick_shows_nothing_but_its_flag() -> None:
    for intents, flags in (((), ("no_decision",)), (({"action": "no_op", "reason": "secret plan"},), ())):
        after, _, _ = run_tick(initial_state(account()), ports(CountingDecider(intents, flags)))
        assert after.last is not None
        assert (after.last.outcome, after.last.flag) == ("noop", flags[0] if flags else "")
        assert (after.last.proposal, after.last.code, after.last.detail) == ("", "", "")


def test_of_a_refusal_the_next_tick_shows_the_proposal_the_code_and_the_detail() -> None:
    after, _, _ = run_tick(initial_state(account()), ports(CountingDecider(({**OPEN, "size_usd": 2_501},))))
    assert after.last is not None
    assert (after.last.outcome, after.last.code) == ("refused", "R3_POSITION_CAP")
    assert '"size_usd":2501' in after.last.proposal
    assert "2501.00" in after.last.detail


def test_a_refusing_broker_makes_it_r13_with_its_own_words() -> None:
    order = WorkingOrder("o1", "limit", "BTC", 1, Decimal("0.001"), NOW, NOW, Decimal(99_000))
    state = initial_state(replace(account(), orders=(order,)))
    cancel = {"action": "cancel", "symbol": "BTC", "order_id": "o1", "reason": "off"}
    after, body, _ = run_tick(state, ports(CountingDecider((OPEN, cancel)), RefusingBroker()))
    assert [(verdict["code"], verdict["detail"]) for verdict in body["verdicts"]] == [
        ("R13_VENUE", "no BTC today"),
        ("R13_VENUE", "o1 is gone"),
    ]
    assert (after.world, after.accepted_opens, body["receipts"]) == (state.world, (), [])
    assert after.last is not None
    assert after.last.code == "R13_VENUE"


def test_e22_identical_intents_in_one_tick_send_one_order() -> None:
    broker = CountingBroker()
    turned = dict(reversed(OPEN.items()))
    after, body, _ = run_tick(initial_state(account()), ports(CountingDecider((OPEN, turned, OPEN)), broker))
    assert len(broker.sent) == len(after.world.orders) == len(after.accepted_opens) == 1
    assert [(verdict["outcome"], verdict["duplicate"]) for verdict in body["verdicts"]] == [
        ("allowed", False),
        ("allowed", True),
        ("allowed", True),
    ]
    assert {verdict["order_id"] for verdict in body["verdicts"]} == {"o1"}


def test_e22_the_same_cancel_twice_is_sent_once() -> None:
    broker = CountingBroker()
    order = WorkingOrder("o1", "limit", "BTC", 1, Decimal("0.001"), NOW, NOW, Decimal(99_000))
    cancel = {"action": "cancel", "symbol": "BTC", "order_id": "o1", "reason": "off"}
    _, body, _ = run_tick(
        initial_state(replace(account(), orders=(order,))), ports(CountingDecider((cancel, cancel)), broker)
    )
    assert broker.cancelled == ["o1"]
    assert [verdict["outcome"] for verdict in body["verdicts"]] == ["allowed", "allowed"]


def test_later_intents_of_a_tick_are_judged_on_what_the_earlier_ones_did() -> None:
    first, second = {**OPEN, "size_usd": 2_000}, {**OPEN, "size_usd": 600}
    _, body, _ = run_tick(initial_state(account()), ports(CountingDecider((first, second))))
    assert [verdict["code"] for verdict in body["verdicts"]] == [None, "R3_POSITION_CAP"]


def raising_check(case: PerpCase) -> Finding:
    raise ZeroDivisionError("a rule with a bug")


@pytest.fixture
def a_broken_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tuple(
        Rule(rule.code, rule.scope, raising_check, rule.doc) if rule.code == "R9_MARGIN" else rule
        for rule in rule_book.RULES
    )
    monkeypatch.setattr(rule_book, "RULES", broken)


@pytest.mark.usefixtures("a_broken_rule")
def test_a_rule_that_breaks_refuses_and_halts_the_account_once() -> None:
    order = WorkingOrder("o1", "limit", "BTC", 1, Decimal("0.001"), NOW, NOW, Decimal(99_000))
    state = initial_state(replace(account(), orders=(order,)))
    after, body, _ = run_tick(state, ports(CountingDecider((OPEN, {**OPEN, "size_usd": 999}))))
    assert [(verdict["outcome"], verdict["code"]) for verdict in body["verdicts"]] == [
        ("refused", "R9_MARGIN"),
        ("refused", "R8_HALTED"),
    ]
    assert "ZeroDivisionError" in body["verdicts"][0]["detail"]
    assert after.world.halts == ("invariant",)
    assert after.world.orders == (), "a halt cancels working opens"
    assert [receipt["kind"] for receipt in body["receipts"]] == ["halted", "cancelled"]
    assert body["after"]["halts"] == ["invariant"]


@pytest.mark.usefixtures("a_broken_rule")
def test_a_broken_rule_about_opens_does_not_trap_a_position() -> None:
    held = Position("BTC", Decimal("0.01"), Decimal(1_000), NOW - HOUR_MS)
    decider = CountingDecider((OPEN, {"action": "close", "symbol": "BTC", "reason": "out"}))
    after, body, _ = run_tick(initial_state(replace(account(), positions={"BTC": held})), ports(decider))
    assert [verdict["outcome"] for verdict in body["verdicts"]] == ["refused", "allowed"]
    assert [order.kind for order in after.world.orders] == ["close"]


def test_model_errors_are_counted_and_forgotten_after_an_answer() -> None:
    failing, fine = ports(CountingDecider(flags=("model_error",))), ports(CountingDecider())
    state = initial_state(account())
    for count in (1, 2, 3):
        state, _, _ = run_tick(state, failing)
        assert state.model_errors == count
    state, _, _ = run_tick(state, fine)
    assert state.model_errors == 0


def test_e26_the_recorded_verdict_can_be_reached_again_from_the_stored_state_and_proposal() -> None:
    """E26: the state stored before the tick and the proposal in the snapshot give the verdict in the snapshot."""
    given = ports(CountingDecider(({**OPEN, "size_usd": Decimal("2500.01"), "stop_loss": Decimal("99000.5")},)))
    state = initial_state(account())
    stored = codec.dumps(state)
    _, _, record = run_tick(state, given)
    body = codec.loads_exact(record.covered)
    again = guard(given.limits, TERMS, read_state(codec.loads(stored)), body["proposals"][0], NOW).verdict
    assert (again.outcome, again.code) == (body["verdicts"][0]["outcome"], body["verdicts"][0]["code"])
    assert [codec.plain(margin.left) for margin in again.margins] == [
        margin["left"] for margin in margin_fields(body["verdicts"][0]["margins"])
    ]


def test_the_digest_covers_no_prompt_text_but_its_digest() -> None:
    kept = ports(CountingDecider((OPEN,)))
    _, _, one = run_tick(initial_state(account()), kept)
    _, _, other = run_tick(initial_state(account()), replace(kept, keep_prompts=False))
    assert one.digest == other.digest
    assert codec.loads(other.extra)["prompt"] is None


def test_half_a_surrogate_pair_in_a_reason_does_not_stop_the_run() -> None:
    after, body, _ = run_tick(initial_state(account()), ports(CountingDecider(({**OPEN, "reason": "\ud800"},))))
    assert [verdict["outcome"] for verdict in body["verdicts"]] == ["allowed"]
    assert read_state(codec.loads(codec.dumps(after))) == after


@pytest.mark.parametrize("wake_when", [[], ["position_open"], [{"move_atr": 1}]])
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("cash", [0, 10_000])
def test_what_is_foreseen_of_a_hold_is_what_the_tick_does(wake_when: list[Any], held: bool, cash: int) -> None:
    """The scout's short way and the tick itself lead to the same state, but for the place in the chain."""
    positions = {"BTC": Position("BTC", Decimal("0.01"), Decimal(1_000), NOW - HOUR_MS)} if held else {}
    decider = CountingDecider(())
    given = ports(decider, schedule={"every": "5m", "wake_when": wake_when})
    state = initial_state(replace(account(cash), positions=positions), model_errors=2)
    after, observation = foresee(state, NOW, (), given)
    done = asyncio.run(tick(state, NOW, WorldEvents(), given))
    assert after == replace(done.state, seq=after.seq, prev_digest=after.prev_digest)
    assert (observation is None) == bool(done.decision.flags)
