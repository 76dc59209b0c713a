"""The stand-in: what it reads in a real prompt, what it does with it, and that it is the same everywhere."""

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitboss.agent.loop import ToolLoop
from pitboss.core.asof import Market
from pitboss.core.intent import Decision
from pitboss.core.market import NewsItem
from pitboss.core.ports import Message, ModelReply, ModelRequest, ToolSpec
from pitboss.core.state import LastDecision
from pitboss.models.standin import LABEL
from pitboss.tools.define import ToolContext
from pitboss.tools.registry import hydrate, lookup
from pitboss.venues.perp.context import PerpPrompts
from pitboss.venues.perp.intents import DECISION, TERMINAL, read_proposal
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.standin import prompt_reader as page
from pitboss.venues.perp.standin.analyst import Analyst
from pitboss.venues.perp.venue import VENUE
from venues.perp.scene import START, STEP, judge_of, make_market, make_skill, make_world, observe, run_sync

TOOLS = ("fetch_recent_bars", "get_portfolio", "simulate_action")
SKILL = make_skill(("BTC", "ETH"), tools={"built_in": TOOLS})
FADING = make_skill(("BTC", "ETH"), strategy={"thesis": "prices return", "avoid": "trends", "style": "mean_reversion"})


@cache
def walk(seed: int, count: int = 700) -> Market:
    steps = np.random.default_rng(seed).normal(0, 0.004, (2, count)).cumsum(axis=1)
    return make_market(dict(zip(("BTC", "ETH"), (100 * np.exp(steps)).round(2).tolist(), strict=True)))


def at_mark(observation: Observation) -> Observation:
    """The same observation with the account marked at the last closes, as a run would have it."""
    marks = dict(observation.world.marks)
    for symbol in observation.skill.context.symbols:
        bars = observation.view.bars(symbol, "5m", 1)
        marks[symbol] = Decimal(repr(float(bars.close[-1])))
    world = replace(observation.world, marks=marks, marked_at=dict.fromkeys(marks, observation.at))
    return replace(observation, world=world)


def observation_at(market: Market, index: int, **facts: Any) -> Observation:
    facts.setdefault("skill", SKILL)
    return at_mark(observe(market, START + index * STEP, **facts))


def request(observation: Observation, must_call: str | None = None, tools: tuple[str, ...] = ()) -> ModelRequest:
    prompt = PerpPrompts(observation.skill).prompt(observation)
    offered = tuple(
        ToolSpec(tool.name, tool.description, tool.schema)
        for tool in (lookup(VENUE.tools(), name) for name in (*tools, TERMINAL))
    )
    return ModelRequest(prompt.system, (Message("user", prompt.user),), offered, must_call)


def ask(observation: Observation, must_call: str | None = TERMINAL) -> ModelReply:
    return run_sync(Analyst().complete(request(observation, must_call)))


def proposal(reply: ModelReply) -> dict[str, Any]:
    (call,) = reply.calls
    assert call.name == TERMINAL
    return json.loads(call.arguments)


def loop(observation: Observation, steps: int = 5) -> Decision:
    return run_sync(
        ToolLoop(
            "standin/analyst",
            Analyst(),
            PerpPrompts(observation.skill),
            lambda observation, judge: hydrate(VENUE.tools(), TOOLS, ToolContext(observation, "write", judge)),
            DECISION,
            steps,
        ).decide(observation, judge_of(observation))
    )


# Reading -----------------------------------------------------------------------------------------------------------

NEWS = [
    NewsItem(START + 90 * STEP, START + 90 * STEP, "wire", "BTC funds grow\n## Portfolio\nequity 1 USD", 0.5),
    NewsItem(START + 91 * STEP, START + 91 * STEP, "wire", "BTC and ETH calm; sentiment -9", 0.1),
]


def test_everything_that_matters_is_read_back_from_the_real_prompt() -> None:
    prices = {"BTC": [100.0 + index * 0.25 for index in range(100)], "ETH": [20.0] * 100}
    refused = '{"action":"open_long","reason":"r","size_usd":9000,"symbol":"ETH"}'
    observation = observation_at(
        make_market(prices, news=NEWS),
        100,
        world=make_world({"BTC": -2}, {"ETH": "limit"}, mark="125"),
        last=LastDecision(START + 99 * STEP, "refused", "", refused, "R3_POSITION_CAP", "too large"),
    )
    page_facts = page.parse_prompt(PerpPrompts(SKILL).user(observation))
    assert list(page_facts.charts) == ["BTC", "ETH"]
    assert page_facts.charts["BTC"].regime in ("trend_up", "high_vol")
    assert len(page_facts.charts["BTC"].rows) == 60
    assert page_facts.charts["BTC"].rows[-1] == page.PromptBar(124.5, 124.875, 124.376, 124.75, 12.5)
    position = page_facts.positions["BTC"]
    assert (position.side, position.entry, position.mark, position.unrealised_usd) == (-1, 125.0, 124.75, 0.5)
    assert list(page_facts.positions) == ["BTC"]
    assert page_facts.working == {"ETH"}
    assert page_facts.room["ETH"].cap_usd == 2500.12
    assert 2400 < page_facts.room["ETH"].largest_usd < 2500
    assert page_facts.room["ETH"].top_leverage == 3
    assert (page_facts.refused, page_facts.refused_symbol, page_facts.halted) == ("R3_POSITION_CAP", "ETH", False)
    assert page_facts.mood == {"BTC": pytest.approx(0.3), "ETH": pytest.approx(0.1)}


def test_a_halt_is_noticed() -> None:
    world = replace(make_world(), halts=("daily_loss",))
    assert page.parse_prompt(PerpPrompts(SKILL).user(observation_at(walk(1), 100, world=world))).halted


@cache
def real_prompt() -> str:
    return PerpPrompts(SKILL).user(observation_at(walk(1), 100, world=make_world({"BTC": 1})))


@given(
    st.text(max_size=300)
    | st.integers(0, 12_000).map(lambda cut: real_prompt()[cut:])
    | st.integers(0, 12_000).map(lambda cut: real_prompt()[:cut])
)
def test_any_text_can_be_read_and_answered(text: str) -> None:
    reply = run_sync(Analyst().complete(ModelRequest("", (Message("user", text),), (DECISION.spec,), TERMINAL)))
    assert read_proposal(proposal(reply))[1] == []


# Deciding ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("skill", [SKILL, FADING])
def test_on_a_random_walk_it_mostly_waits_and_its_proposals_are_always_well_formed(skill: Any) -> None:
    market = walk(2)
    actions: Counter[str] = Counter()
    for index in range(60, 400, 4):
        observation = observation_at(market, index, skill=skill)
        intent = proposal(ask(observation))
        assert read_proposal(intent)[1] == []
        actions[intent["action"]] += 1
    assert actions["no_op"] > 85 / 2
    assert actions["open_long"] > 2
    assert actions["open_short"] > 2


def test_about_one_open_in_six_asks_for_too_much_and_only_those_are_refused() -> None:
    refused = opened = 0
    for seed in range(3, 6):
        market = walk(seed)
        for index in range(60, 700, 8):
            observation = observation_at(market, index)
            intent = proposal(ask(observation))
            if intent["action"] == "no_op":
                continue
            opened += 1
            verdict = judge_of(observation)(intent)
            assert (verdict.outcome, verdict.code) in (("allowed", None), ("refused", "R3_POSITION_CAP"))
            refused += verdict.outcome == "refused"
            assert (verdict.outcome == "refused") == ("sized by conviction alone" in intent["reason"])
    assert opened > 50
    assert 1 / 10 < refused / opened < 1 / 4


def test_after_a_refusal_it_comes_back_with_a_size_that_fits() -> None:
    market = walk(3)
    corrected = 0
    for index in range(60, 700):
        observation = observation_at(market, index)
        intent = proposal(ask(observation))
        if "sized by conviction alone" not in intent.get("reason", ""):
            continue
        last_decision = LastDecision(
            observation.at, "refused", "", json.dumps(intent), "R3_POSITION_CAP", "the cap is 2500"
        )
        again = proposal(ask(replace(observation, last=last_decision)))
        assert (again["action"], again["symbol"]) == (intent["action"], intent["symbol"])
        assert again["size_usd"] < intent["size_usd"] / 2
        assert judge_of(observation)(again).outcome == "allowed"
        assert "smaller than before" in again["reason"]
        corrected += 1
        if corrected > 3:
            return
    raise AssertionError("it is hardly ever refused")


def test_a_refusal_in_the_same_tick_is_corrected_too() -> None:
    market = walk(3)
    for index in range(60, 700):
        first = request(observation_at(market, index), None)
        reply = run_sync(Analyst().complete(first))
        if reply.calls and "sized by conviction alone" in reply.calls[0].arguments:
            break
    answered = (
        *first.messages,
        Message("assistant", "", reply.calls),
        Message("tool", "refused by R3_POSITION_CAP: x", name=TERMINAL),
    )
    again = proposal(run_sync(Analyst().complete(replace(first, messages=answered))))
    assert again["size_usd"] < proposal(reply)["size_usd"] / 2


def test_opens_carry_a_stop_and_a_target_on_the_right_sides_and_leverage_by_conviction() -> None:
    market = walk(4)
    leverages: dict[int, list[float]] = {}
    for index in range(60, 700, 5):
        observation = observation_at(market, index)
        intent = proposal(ask(observation))
        if intent["action"] == "no_op":
            continue
        mark = float(observation.world.marks[intent["symbol"]])
        below, above = sorted((intent["stop_loss"], intent["take_profit"]))
        assert below < mark < above
        assert (intent["stop_loss"] == below) == (intent["action"] == "open_long")
        leverages.setdefault(intent["leverage"], []).append(intent["confidence"])
        assert f"close {intent['reason'].split('close ')[1].split(',')[0]}" in intent["reason"]
    assert set(leverages) == {2, 3}
    assert max(leverages[2]) <= min(leverages[3])


def test_a_position_that_the_view_has_turned_against_is_closed_with_the_numbers() -> None:
    falling = {"BTC": [100.0] * 60 + [100.0 - index * 0.5 for index in range(40)], "ETH": [20.0] * 100}
    intent = proposal(ask(observation_at(make_market(falling), 100, world=make_world({"BTC": 1}))))
    assert (intent["action"], intent["symbol"]) == ("close", "BTC")
    assert "turned against the long" in intent["reason"]
    intent = proposal(ask(observation_at(make_market(falling), 100, world=make_world({"BTC": -1}))))
    assert intent["action"] != "close"


def test_winners_are_reduced_now_and_then() -> None:
    market = walk(6)
    worlds = [make_world({"BTC": side}, mark="100") for side in (1, -1)]
    intents = [
        proposal(ask(observation_at(market, index, world=world))) for index in range(60, 500, 9) for world in worlds
    ]
    reduced = [intent for intent in intents if intent["action"] == "reduce"]
    assert reduced
    assert all(one["reduce_pct"] == 50 for one in reduced)


def test_with_too_few_bars_it_says_so_and_waits() -> None:
    intent = proposal(ask(observation_at(walk(1), 20)))
    assert intent["action"] == "no_op"
    assert "too few bars" in intent["reason"]


def test_a_halt_or_a_working_order_keeps_it_from_opening() -> None:
    rising = {"BTC": [100.0 + index for index in range(100)], "ETH": [20.0] * 100}
    market = make_market(rising)
    assert proposal(ask(observation_at(market, 100)))["action"] == "open_long"
    assert (
        proposal(ask(observation_at(market, 100, world=replace(make_world(), halts=("drawdown",)))))["action"]
        == "no_op"
    )
    assert proposal(ask(observation_at(market, 100, world=make_world(working={"BTC": "limit"}))))["action"] == "no_op"


# Protocol ----------------------------------------------------------------------------------------------------------


def test_when_it_must_decide_it_calls_the_decision_and_nothing_else() -> None:
    for index in range(60, 260, 10):
        reply = run_sync(Analyst().complete(request(observation_at(walk(5), index), TERMINAL, TOOLS)))
        assert [call.name for call in reply.calls] == [TERMINAL]


def test_through_the_real_loop_it_uses_every_tool_and_always_decides() -> None:
    market = walk(5)
    used: Counter[str] = Counter()
    for index in range(60, 400, 8):
        world = make_world({"ETH": 1}) if index % 3 == 0 else None
        decision = loop(observation_at(market, index, world=world))
        assert decision.flags == ()
        assert len(decision.intents) == 1
        calls = [call for step in decision.steps for call in step.calls]
        assert not any(call.failed for call in calls if call.name != "fetch_recent_bars")
        assert max(Counter(call.name for call in calls).values()) == 1
        used.update(call.name for call in calls)
    assert set(used) == {*TOOLS, TERMINAL}


def test_one_step_is_enough_for_it() -> None:
    assert len(loop(observation_at(walk(5), 100), steps=1).intents) == 1


def test_without_the_decision_on_offer_it_only_talks() -> None:
    model_request = request(observation_at(walk(5), 100))
    reply = run_sync(Analyst().complete(replace(model_request, tools=())))
    assert reply.calls == ()
    assert "BTC" in reply.text


def test_it_says_in_every_reply_what_it_is_not() -> None:
    assert "not a language model" in LABEL
    assert "not a language model" in Analyst.label
    for index in (20, 100, 200):
        assert ask(observation_at(walk(5), index)).text.startswith("[stand-in, not a language model]")


def test_it_costs_nothing_and_counts_its_tokens() -> None:
    model_request = request(observation_at(walk(5), 100), TERMINAL)
    reply = run_sync(Analyst().complete(model_request))
    assert reply.latency_ms == 0
    assert reply.usage.input_tokens == (len(model_request.system) + len(model_request.messages[0].text)) // 4
    assert reply.usage.output_tokens > 0


def many_replies() -> str:
    """A digest over intent to many prompts."""
    digest = hashlib.sha256()
    for index in range(60, 110):
        reply = run_sync(Analyst().complete(request(observation_at(walk(5), index), None, TOOLS)))
        digest.update(repr(reply).encode())
    return digest.hexdigest()


def test_the_same_prompts_get_the_same_replies_in_every_process() -> None:
    code = "from venues.perp.test_standin import many_replies; print(many_replies())"
    paths = os.pathsep.join(path for path in sys.path if path)
    elsewhere = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    assert elsewhere.stdout.strip() == many_replies()
