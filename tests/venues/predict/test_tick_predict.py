"""Ticks of the predict venue: every rule through the whole tick, feedback to the model, resume, and a hijacked model."""

import json
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from pitboss.agent.request_policy import RequestPolicy
from pitboss.core import codec
from pitboss.core.instant import MINUTE_MS, day_of
from pitboss.core.ports import ModelReply, ModelRequest
from pitboss.core.rulebook import Rule
from pitboss.core.snapshot import GENESIS, check
from pitboss.engine.execute import Placed
from pitboss.models.scripted import calls, calls_text, says, together
from pitboss.tick import WorldEvents
from pitboss.venues.predict import rule_book
from pitboss.venues.predict.caps import PredictCaps, exposure
from pitboss.venues.predict.desk import Desk
from pitboss.venues.predict.heuristics import heuristic
from pitboss.venues.predict.ladder import ladder
from pitboss.venues.predict.ports import read_state
from pitboss.venues.predict.state import ACCOUNT, QUOTE
from pitboss.venues.predict.svi import FLOAT
from venues.predict.predict_ticks import (
    MANDATE,
    SOON,
    ScriptedDecider,
    always_decides,
    body,
    candles,
    deciding_loop,
    model_of,
    new_state,
    ports,
    price_path,
    run,
    state_after_update,
    step,
    tick_without_update,
    verdicts,
)
from venues.predict.scene import NOW, money
from venues.predict.test_predict_hostile import hostile

SPOT = 63_213 * FLOAT
MINT: dict[str, Any] = {
    "action": "mint",
    "market_id": SOON,
    "side": "YES",
    "strike": 63_200,
    "spend": 2,
    "confidence": Decimal("0.7"),
    "reasoning": "up",
}
REDEEM: dict[str, Any] = {"action": "redeem", "market_id": SOON, "side": "YES", "strike": 63_200, "reasoning": "out"}


def first_tick(*intents: Any, caps: PredictCaps | None = None, cash: int = 100, **more: Any) -> Any:
    return step(new_state(cash), ports(always_decides(*intents), caps, **more), SPOT, NOW)


# What a tick does --------------------------------------------------------------------------------------------------


def test_a_mint_is_judged_made_counted_and_recorded() -> None:
    done = first_tick(MINT)
    check(done.record, 0, GENESIS)
    facts, desk = body(done), done.state.world
    assert verdicts(done) == [("allowed", None)]
    (receipt,) = facts["receipts"]
    assert (receipt["kind"], receipt["facts"]["action"], receipt["symbol"]) == ("filled", "mint", SOON)
    assert {"side", "strike", "quantity", "price", "cost"} <= set(receipt["facts"])
    assert 1_999_000 < desk.spent.total == desk.spent.today <= 2 * QUOTE
    assert facts["before"]["positions"] == []
    (held,) = facts["after"]["positions"]
    assert (held["market_id"], held["side"], held["strikes"]) == (SOON, "YES", ["63200"])
    assert Decimal(facts["after"]["cash"]) == 100 - Decimal(held["cost"])
    assert 99 < Decimal(facts["after"]["equity"]) < 100
    assert desk.done[0].kind == "mint"
    assert done.state.accepted_opens == ()


def test_a_redeem_sells_the_whole_position_back() -> None:
    done = first_tick(MINT)
    after = step(done.state, ports(always_decides(REDEEM)), SPOT, NOW + MINUTE_MS)
    assert verdicts(after) == [("allowed", None)]
    assert body(after)["after"]["positions"] == []
    assert 99 < Decimal(body(after)["after"]["cash"]) < 100
    assert after.state.world.spent.total == done.state.world.spent.total


def test_a_position_is_paid_at_settlement_and_the_model_is_informed() -> None:
    spots = [SPOT] * 60 + [63_400 * FLOAT] * 2
    mind = ScriptedDecider(lambda observation: [MINT] if observation.at == NOW else [])
    state, _ = run(new_state(), ports(mind), spots)
    paid = [fill for fill in state.world.done if fill.kind == "payout"]
    assert [(fill.side, fill.price, fill.amount > 3) for fill in paid] == [("YES", 1, True)]
    assert state.world.world.accounts[ACCOUNT].positions == {}
    seen = mind.observations[60]
    assert seen.at == NOW + 60 * MINUTE_MS
    assert [fill.kind for fill in seen.since()] == ["payout"]
    assert "settled and paid: YES 63200" in ports(mind).context.user(seen)


def test_the_original_shape_without_a_market_is_taken() -> None:
    seed = {"action": "mint", "side": "YES", "strike": 63_200, "spendDusdc": 2, "confidence": 1, "reasoning": "x"}
    other = {"action": "mint", "side": "NO", "strike": 63_200, "spend_dusdc": 2, "confidence_0_1": 0, "reasoning": "x"}
    given = ports(always_decides(seed, other), PredictCaps(max_spend_per_tick=4 * QUOTE))
    several = step(new_state(), given, SPOT, NOW, tiers=("1w",))
    assert verdicts(several) == [("allowed", None), ("allowed", None)]
    nearest = min(several.state.world.world.oracles.values(), key=lambda oracle: oracle.expiry_at).id
    assert {receipt.symbol for receipt in several.receipts if receipt.kind == "filled"} == {nearest}
    assert ["B2_MARKET", None, "the nearest open market"] in body(several)["verdicts"][0]["margins"]
    state, _ = state_after_update(new_state(), given, SPOT, NOW)
    only = {name: oracle for name, oracle in state.world.world.oracles.items() if name == SOON}
    state = replace(state, world=replace(state.world, world=replace(state.world.world, oracles=only)))
    assert verdicts(tick_without_update(state, given, NOW)) == [("allowed", None), ("allowed", None)]


# Every rule through a tick -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "change", "caps"),
    [
        ("B1_SHAPE", {"side": "UP"}, {}),
        ("B2_MARKET", {"market_id": "BTC-never"}, {}),
        ("B2_MARKET", {"market_id": None, "expiry": "2026-05-27T13:07:00Z"}, {}),
        ("B3_EXPIRY", {}, {"min_ms_to_expiry": 3_600_001}),
        ("B5_NOT_QUOTED", {"strike": Decimal("63200.5")}, {}),
        ("B5_NOT_QUOTED", {"strike": 150_000}, {}),
        ("B8_EDGE", {"confidence": Decimal("0.5")}, {"min_edge": FLOAT // 100}),
        ("B10_SPEND_DAY", {}, {"max_spend_per_day": 2 * QUOTE - 1}),
        ("B11_SPEND_TOTAL", {}, {"max_total_spend": 2 * QUOTE - 1}),
        ("B12_EXPOSURE", {}, {"max_exposure_per_expiry": 2 * QUOTE - 1}),
    ],
)
def test_a_rule_refuses_through_the_tick_and_is_reported_at_the_next(
    code: str, change: dict[str, Any], caps: dict[str, Any]
) -> None:
    done = first_tick({**MINT, **change}, caps=PredictCaps(**caps))
    assert verdicts(done) == [("refused", code)]
    assert done.state.world.world.accounts[ACCOUNT].cash == 100 * QUOTE
    assert done.state.world.spent.total == 0
    given = ports(always_decides(), PredictCaps(**caps))
    after = step(done.state, given, SPOT, NOW + MINUTE_MS)
    prompt = codec.loads(after.record.extra)["prompt"][1]
    assert f"engine: refused {code}" in prompt
    assert "detail: <data>" in prompt


def test_b4_an_old_price_is_refused_and_a_fresh_one_is_waited_for() -> None:
    given = ports(always_decides(MINT))
    state, _ = state_after_update(new_state(), given, SPOT, NOW)
    assert verdicts(tick_without_update(state, given, NOW + 30_001)) == [("refused", "B4_STALE")]
    assert verdicts(tick_without_update(state, given, NOW + 30_000)) == [("allowed", None)]


def test_b6_an_ask_outside_the_bounds_is_refused() -> None:
    given = ports(always_decides())
    world = step(new_state(), given, SPOT, NOW).state.world.world
    far = next(rung for rung in ladder(world, SOON, NOW, 50 * FLOAT, 40) if "YES" not in rung.sides)
    assert verdicts(first_tick({**MINT, "strike": far.strike // FLOAT})) == [("refused", "B6_ASK_BOUNDS")]


def test_b7_compares_with_the_ask_of_this_tick_and_never_with_that_of_an_earlier_one() -> None:
    looks = iter(
        [
            calls("list_strikes", market_id=SOON, count=2),
            calls("submit_decision", action="hold", reasoning="looking"),
            calls("submit_decision", **MINT),
        ]
    )
    context = ports(always_decides()).context
    given = ports(deciding_loop(model_of(lambda request: next(looks)), context))
    first = step(new_state(), given, SPOT, NOW)
    jumped = SPOT + 60 * FLOAT  # the nearest strike is another one, so the prompt shows 63200 no more
    second = step(first.state, given, jumped, NOW + MINUTE_MS)
    assert verdicts(second) == [("allowed", None)]


def test_b9_a_spend_beyond_the_tick_is_reduced_and_reported() -> None:
    done = first_tick({**MINT, "spend": 50})
    assert verdicts(done) == [("reduced", "B9_SPEND_TICK")]
    assert done.state.world.spent.total <= 2 * QUOTE
    after = step(done.state, ports(always_decides()), SPOT, NOW + MINUTE_MS)
    prompt = codec.loads(after.record.extra)["prompt"][1]
    assert "engine: accepted B9_SPEND_TICK" in prompt
    assert "spend 50 reduced to 2" in prompt


def test_b9_what_a_tick_has_spent_is_gone_for_its_next_intent() -> None:
    other = {**MINT, "side": "NO"}
    assert verdicts(first_tick({**MINT, "spend": Decimal("1.5")}, other)) == [
        ("allowed", None),
        ("reduced", "B9_SPEND_TICK"),
    ]
    done = first_tick({**MINT, "spend": 2}, {**other, "spend": 1}, {**other, "spend": 5})
    assert done.state.world.spent.total <= 2 * QUOTE
    assert verdicts(done)[0] == ("allowed", None)


def test_b13_a_spend_beyond_the_balance_is_refused() -> None:
    assert verdicts(first_tick(MINT, cash=1)) == [("refused", "B13_BALANCE")]


def test_b14_the_same_intent_twice_is_answered_once() -> None:
    done = first_tick({**MINT, "spend": 1}, {**MINT, "spend": 1})
    assert [verdict["duplicate"] for verdict in body(done)["verdicts"]] == [False, True]
    assert len(body(done)["receipts"]) == 1
    assert done.state.world.spent.total <= QUOTE


def test_b15_a_refusing_broker_is_reported_by_its_own_words() -> None:
    class RefusingBroker:
        async def submit(self, world: Any, request: Any, at: int) -> Placed:
            return Placed(world, refusal=f"no {request.order.action} today")

        async def cancel(self, world: Any, order_id: str, at: int) -> Placed:
            raise AssertionError

    done = first_tick(MINT, broker=RefusingBroker())
    assert verdicts(done) == [("refused", "B15_VENUE")]
    assert body(done)["verdicts"][0]["detail"] == "no mint today"
    assert done.state.world.spent.total == 0


def test_a_rule_that_breaks_halts_mints_and_leaves_redeems(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(case: Any) -> Any:
        raise RuntimeError("oops")

    held = first_tick(MINT).state
    rules = (*rule_book.RULES[:5], Rule("B6_ASK_BOUNDS", "mints", broken, ""), *rule_book.RULES[6:])
    with monkeypatch.context() as patch:
        patch.setattr(rule_book, "RULES", rules)
        done = step(held, ports(always_decides(MINT)), SPOT, NOW + MINUTE_MS)
    assert verdicts(done) == [("refused", "B6_ASK_BOUNDS")]
    assert [receipt["kind"] for receipt in body(done)["receipts"]] == ["halted"]
    after = step(done.state, ports(always_decides(MINT, REDEEM)), SPOT, NOW + 2 * MINUTE_MS)
    assert verdicts(after) == [("refused", "B15_VENUE"), ("allowed", None)]


def test_no_model_is_called_for_an_empty_account() -> None:
    mind = always_decides(MINT)
    done = step(new_state(0), ports(mind), SPOT, NOW)
    assert (mind.observations, body(done)["flags"], body(done)["prompt_sha256"]) == ([], ["ruined"], None)
    held = first_tick(MINT).state.world
    broke = replace(held, world=replace(held.world, accounts={ACCOUNT: replace(held.world.accounts[ACCOUNT], cash=0)}))
    assert not ports(mind).is_over(broke)


# The model ---------------------------------------------------------------------------------------------------------


def test_a_model_looks_decides_and_is_forced_on_its_last_step() -> None:
    asked: list[ModelRequest] = []

    def answer(request: ModelRequest) -> ModelReply:
        asked.append(request)
        if request.must_call:
            return calls("submit_decision", **MINT)
        looks = [("btc_candles", {}), ("get_my_positions", {}), ("recent_fills", {"market_id": SOON})]
        name, arguments = looks[len(asked) % 3]
        return calls(name, **arguments)

    context = ports(always_decides()).context
    spots = price_path(1, 40)
    given = ports(deciding_loop(model_of(answer), context, max_steps=4), view=candles(spots).view)
    done = step(new_state(), given, SPOT, NOW)
    assert [request.must_call for request in asked] == [None, None, None, "submit_decision"]
    assert [tool.name for tool in asked[-1].tools] == ["submit_decision"]
    assert verdicts(done) == [("allowed", None)]
    assert MANDATE in asked[0].system
    assert done.decision.steps[0].calls[0].failed is False


def test_a_model_that_never_decides_holds() -> None:
    context = ports(always_decides()).context
    given = ports(deciding_loop(model_of(lambda request: says("hm")), context, max_steps=3))
    done = step(new_state(), given, SPOT, NOW)
    assert body(done)["flags"] == ["no_decision"]
    prompt = codec.loads(step(done.state, given, SPOT, NOW + MINUTE_MS).record.extra)["prompt"][1]
    assert "## Last decision\nhold (no_decision)" in prompt


def test_a_malformed_decision_is_reported_in_the_words_of_this_venue() -> None:
    replies = iter(
        [calls("submit_decision", action="open_long", reasoning="?"), says("well"), calls("submit_decision", **MINT)]
    )
    model = model_of(lambda request: next(replies))
    done = step(new_state(), ports(deciding_loop(model, ports(always_decides()).context)), SPOT, NOW)
    assert verdicts(done) == [("allowed", None)]
    heard = [message.text for message in model.requests[-1].messages if message.role != "assistant"]
    assert "action must be one of mint, redeem, hold" in heard[1]
    assert heard[2].endswith("hold is a valid action.")


def test_a_decision_as_json_text_is_read_where_the_model_cannot_be_made_to_call() -> None:
    text = codec.dumps(codec.number_fragments(MINT)).decode()
    loop = deciding_loop(
        model_of(lambda request: says(text)),
        ports(always_decides()).context,
        max_steps=2,
        policy=RequestPolicy("schema"),
    )
    assert verdicts(step(new_state(), ports(loop), SPOT, NOW)) == [("allowed", None)]


# Determinism and resume --------------------------------------------------------------------------------------------


def talkative_model() -> Any:
    """A model whose replies are random, seeded by the request: it calls tools, and mints at random."""

    def answer(request: ModelRequest) -> ModelReply:
        rng = Random(request.messages[0].text)
        if len(request.messages) == 1:
            return calls("list_strikes", market_id=SOON, count=rng.randint(1, 6))
        if rng.random() < 0.2:
            return calls("submit_decision", action="hold", reasoning="no")
        return calls(
            "submit_decision",
            **{
                **MINT,
                "market_id": SOON if rng.random() < 0.6 else None,
                "side": rng.choice(["YES", "NO"]),
                "strike": 63_200 + rng.randint(-8, 8) * 50,
                "spend": rng.choice([1, 2, 9]),
            },
        )

    return deciding_loop(model_of(answer), ports(always_decides()).context)


@pytest.mark.parametrize("decider", ["model", "alternate"])
def test_the_same_path_gives_the_same_bytes_and_a_stored_state_goes_on_with_them(decider: str) -> None:
    def given() -> Any:
        return ports(
            talkative_model() if decider == "model" else heuristic(decider),
            PredictCaps(max_spend_per_day=20 * QUOTE),
            view=candles(spots).view,
            build_prompts=decider == "model",
        )

    spots = price_path(7, 80)
    whole, records = run(new_state(), given(), spots)
    again, others = run(new_state(), given(), spots)
    assert [record.covered for record in records] == [record.covered for record in others]
    assert [record.extra for record in records] == [record.extra for record in others]
    half, first = run(new_state(), given(), spots, until=33)
    stored = codec.loads(codec.dumps(half))
    back = read_state(stored)
    assert back == half
    assert codec.dumps(back) == codec.dumps(half)
    end, rest = run(back, given(), spots, first=33)
    assert [record.digest for record in (*first, *rest)] == [record.digest for record in records]
    assert codec.dumps(end) == codec.dumps(whole) == codec.dumps(again)
    assert whole.world.spent.total > 5 * QUOTE


def test_a_state_with_waiting_orders_is_stored_and_goes_on() -> None:
    given = ports(always_decides(MINT))
    state, _ = state_after_update(new_state(), given, SPOT, NOW)
    waiting = tick_without_update(state, given, NOW + 5_000).state
    assert [ticket.id for ticket in waiting.world.waiting] == ["o1"]
    back = read_state(codec.loads(codec.dumps(waiting)))
    assert back == waiting
    ends = [state_after_update(one, given, SPOT, NOW + 9_000) for one in (waiting, back)]
    assert codec.dumps(ends[0]) == codec.dumps(ends[1])
    assert ends[0][0].world.world.accounts[ACCOUNT].positions


def test_a_refusal_at_execution_is_reported_at_the_next_tick() -> None:
    given = ports(always_decides(MINT))
    state, _ = state_after_update(new_state(), given, SPOT, NOW)
    waiting = tick_without_update(state, given, NOW + 5_000)
    assert verdicts(waiting) == [("allowed", None)]
    assert [receipt.kind for receipt in waiting.receipts] == ["accepted"]
    done = step(waiting.state, ports(always_decides()), SPOT, NOW + 5_000 + 40_000)
    prompt = codec.loads(done.record.extra)["prompt"][1]
    assert "## Since your last decision" in prompt
    assert "refused at execution by B4_STALE: YES 63200" in prompt
    assert [receipt["facts"]["code"] for receipt in body(done)["receipts"]] == ["B4_STALE"]


def test_an_update_after_the_tick_cannot_change_its_record() -> None:
    spots = price_path(3, 20)
    bent = [*spots[:10], *(spot + 500 * FLOAT for spot in spots[10:])]
    digests = []
    for chosen in (spots, bent):
        given = ports(talkative_model(), view=candles(chosen).view)
        digests.append([record.digest for record in run(new_state(), given, chosen)[1]])
    assert digests[0][:10] == digests[1][:10]
    assert digests[0][10] != digests[1][10]


# A hijacked model --------------------------------------------------------------------------------------------------


CAPS = PredictCaps(
    max_spend_per_tick=2 * QUOTE,
    max_spend_per_day=25 * QUOTE,
    max_total_spend=45 * QUOTE,
    max_exposure_per_expiry=9 * QUOTE,
)


class CountedAccount:
    """One account with an independent count of every cent it spent, by tick and by day."""

    def __init__(self, at: int) -> None:
        self.state, self.at, self.began = new_state(80), at, at
        self.money = money(self.state.world.world)
        self.decided_at: dict[str, int] = {}
        self.on_day: dict[int, int] = {}
        self.at_tick: dict[int, int] = {}
        self.late = self.filled = 0

    def count(self, receipts: Any) -> None:
        for receipt in receipts:
            if receipt.kind == "accepted":
                self.decided_at[receipt.order_id] = receipt.at
            elif receipt.kind == "filled" and receipt.facts["action"] == "mint":
                cost = int(Decimal(receipt.facts["cost"]).scaleb(6))
                tick_at = self.decided_at.get(str(receipt.facts.get("order")), receipt.at)
                assert receipt.at - tick_at <= CAPS.max_price_age_ms
                self.filled += 1
                self.late += tick_at != receipt.at
                self.on_day[day_of(receipt.at)] = self.on_day.get(day_of(receipt.at), 0) + cost
                self.at_tick[tick_at] = self.at_tick.get(tick_at, 0) + cost

    def check(self) -> None:
        desk: Desk = self.state.world
        assert money(desk.world) == self.money
        assert max(self.at_tick.values(), default=0) <= CAPS.max_spend_per_tick
        assert max(self.on_day.values(), default=0) <= CAPS.max_spend_per_day
        assert sum(self.on_day.values()) == desk.spent.total <= CAPS.max_total_spend
        for expiry_at in {held.expiry_at for held in desk.world.accounts[ACCOUNT].positions.values()}:
            assert exposure(desk.world, ACCOUNT, expiry_at) <= CAPS.max_exposure_per_expiry


def campaign(seed: int, ticks: int) -> dict[str, int]:
    """The outcomes of hostile decisions at many ticks, some on a fresh price and some on an old one."""
    rng, spot, life = Random(seed), SPOT, CountedAccount(NOW)
    counts = {"filled": 0, "late": 0, "refused": 0}
    for number in range(ticks):
        if number % 100 == 99:  # a new life: else the total budget ends the campaign early
            counts["filled"], counts["late"] = counts["filled"] + life.filled, counts["late"] + life.late
            life = CountedAccount(life.at)
        life.at += rng.choice([1_000, 7_000, 15_000, 20_000, 60_000, 900_000])
        intents = [hostile(rng, life.state.world.world, spot) for _ in range(rng.randint(0, 4))]
        given, happened = ports(always_decides(*intents), CAPS, build_prompts=False), WorldEvents()
        if rng.random() < 0.5:
            spot = max(55_000 * FLOAT, spot + int(rng.gauss(0, 40)) * FLOAT)
            life.state, happened = state_after_update(life.state, given, spot, life.at)
            life.count(happened.receipts)
        done = tick_without_update(life.state, given, life.at, happened)
        life.count(done.receipts[len(happened.receipts) :])
        life.state = done.state
        counts["refused"] += sum(outcome == "refused" for outcome, _ in verdicts(done))
        life.check()
    return counts


def test_hostile_decisions_through_the_whole_tick_never_pass_a_cap() -> None:
    counts = campaign(1, 600)
    assert counts["filled"] > 50
    assert counts["late"] > 5
    assert counts["refused"] > 300


@pytest.mark.proof
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(10))
def test_many_hostile_decisions_through_the_whole_tick_never_pass_a_cap(seed: int) -> None:
    assert campaign(100 + seed, 20_000)["late"] > 100


def test_a_hijacked_model_s_calls_never_pass_a_cap() -> None:
    rng, life = Random(4), CountedAccount(NOW)
    said: list[str] = []

    def answer(request: ModelRequest) -> ModelReply:
        intent = hostile(rng, life.state.world.world, SPOT)
        said.append(json.dumps(intent, default=str, skipkeys=True))
        reply = calls_text("submit_decision", said[-1])
        return together(reply, calls("list_strikes", market_id=SOON, count=40)) if rng.random() < 0.3 else reply

    given = ports(deciding_loop(model_of(answer), ports(always_decides()).context, max_steps=2), CAPS)
    for place in range(150):
        life.at = NOW + place * MINUTE_MS
        life.state, happened = state_after_update(life.state, given, SPOT, life.at)
        life.count(happened.receipts)
        done = tick_without_update(life.state, given, life.at, happened)
        life.count(done.receipts[len(happened.receipts) :])
        life.state = done.state
        life.check()
        assert len(codec.dumps(life.state)) < 200_000
    assert life.filled > 5
    assert len(said) > 150


def test_a_tick_of_a_policy_without_a_prompt_is_free() -> None:
    given = ports(heuristic("yes-only"), build_prompts=False)
    done = step(new_state(), given, SPOT, NOW)
    assert body(done)["prompt_sha256"] is None
    assert codec.loads(done.record.extra) == {"cost_usd": "0"}
