"""The one loop with the chain behind it: the same `tick` as on paper, and what happened is in its record."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pitboss.core import codec
from pitboss.core.instant import MINUTE_MS
from pitboss.core.state import State
from pitboss.tick import TickResult, WorldEvents, tick
from pitboss.venues.predict.broker import PredictPaper
from pitboss.venues.predict.ports import read_state
from pitboss.venues.predict.state import QUOTE
from venues.predict.predict_ticks import always_decides, ports
from venues.predict.scene import SPOT
from venues.predict.single_markets import push_price
from venues.predict.sui.fake_chain import ORACLE
from venues.predict.sui.writer_machine import TICK, Machine, count_consistent_mints, fresh_desk

MachineFactory = Callable[..., Machine]
MINT: dict[str, Any] = {
    "action": "mint",
    "market_id": ORACLE,
    "side": "YES",
    "strike": 63_000,
    "spend": 5,
    "confidence": 0.7,
    "reasoning": "because",
}


def run_tick(broker: Any, state: State, at: int, *intents: Any) -> TickResult:
    return asyncio.run(tick(state, at, WorldEvents(), ports(always_decides(*intents), broker=broker)))


def test_a_tick_on_the_chain_is_a_tick_on_paper(new_machine: MachineFactory):
    machine = new_machine()
    state = State(fresh_desk())

    with machine.process() as broker:
        chain = run_tick(broker, state, TICK, MINT)
    paper = run_tick(PredictPaper(), state, TICK, MINT)

    # The same decision at the same price is the same trade; only the names of orders and what the chain adds differ.
    ours, theirs = (done.state.world.world.accounts["agent"] for done in (chain, paper))
    assert ours == theirs
    assert chain.state.world.spent == paper.state.world.spent
    verdict, on_paper = chain.covered["verdicts"][0], paper.covered["verdicts"][0]
    assert (
        (verdict["outcome"], verdict["code"]) == (on_paper["outcome"], on_paper["code"]) == ("reduced", "B9_SPEND_TICK")
    )
    assert count_consistent_mints(machine, chain.state.world, fresh_desk()) == 1
    assert read_state(codec.loads(codec.dumps(chain.state))).world == chain.state.world


def test_the_same_intent_twice_in_a_tick_is_one_mint_and_the_cap_of_the_tick_holds(new_machine: MachineFactory):
    machine = new_machine()

    with machine.process() as broker:
        done = run_tick(broker, State(fresh_desk()), TICK, MINT, MINT, {**MINT, "side": "NO"})

    assert done.covered["verdicts"][0]["outcome"] == "reduced"
    assert 0 < done.state.world.spent.total <= 2 * QUOTE
    assert count_consistent_mints(machine, done.state.world, fresh_desk()) == 1


def test_a_refusal_of_the_chain_is_the_last_rule(new_machine: MachineFactory):
    machine = new_machine(deposit=0)

    with machine.process() as broker:
        done = run_tick(broker, State(fresh_desk()), TICK, MINT)

    (verdict,) = done.covered["verdicts"]
    assert (verdict["outcome"], verdict["code"]) == ("refused", "B15_VENUE")
    assert "balance is too low" in verdict["detail"]


def test_a_tick_that_was_lost_is_found_again_before_the_next(new_machine: MachineFactory):
    machine = new_machine()
    state = State(fresh_desk())
    with machine.process() as broker:
        run_tick(broker, state, TICK, MINT)  # and the process dies before this is stored

    at = TICK + MINUTE_MS
    machine.clock[0] = at
    with machine.process() as broker:
        found = asyncio.run(broker.settle(state.world, TICK - 1, at))
        world = push_price(found.world.world, ORACLE, SPOT, SPOT, at).world
        state = replace(state, world=replace(found.world, world=world))
        done = run_tick(broker, state, at, {"action": "hold", "reasoning": "enough"})

    assert [receipt.kind for receipt in found.receipts] == ["filled"]
    assert done.state.world.spent.total > 0
    assert len(machine.chain.mints) == 1
