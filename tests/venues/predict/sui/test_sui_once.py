"""An order is minted once, whatever breaks: every call broken in every way, alone and in pairs, then a restart."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pitboss.core.errors import UserError
from pitboss.core.instant import MINUTE_MS
from pitboss.venues.predict.desk import Desk
from simulated_kill import Killed
from venues.predict.sui.fault_injector import FaultInjector, possible_faults
from venues.predict.sui.writer_machine import (
    TICK,
    Machine,
    count_consistent_mints,
    fresh_desk,
    mint_request,
    run,
    settle_all,
)

MachineFactory = Callable[..., Machine]
CHAINS: dict[str, dict[str, Any]] = {
    "plain": {},
    "lagging": {"lag": 3},
    "locking": {"locking": True},
    "one coin": {"gas_coins": 1, "lag": 3, "locking": True},
}
SHARED = settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture])


def first_life(machine: Machine, injector: FaultInjector, stored: bool) -> tuple[Desk, int]:
    """A process that sends an order, and what its database has of the desk afterwards: with the tick, or without it."""
    desk = fresh_desk()
    with machine.process(injector) as broker:
        try:
            placed = run(broker.submit(desk, mint_request(), TICK))
        except (Killed, UserError):
            return desk, TICK - MINUTE_MS
    return (placed.world, TICK) if stored else (desk, TICK - MINUTE_MS)


def next_life(machine: Machine, injector: FaultInjector, desk: Desk, since: int, again: bool) -> tuple[Desk, int]:
    """Another process, later: it finds out what became of the order, and may be asked for the same once more."""
    with machine.process(injector) as broker:
        try:
            after = run(broker.settle(desk, since, machine.now())).world
            if again:
                after = run(broker.submit(after, mint_request(), machine.now())).world
        except (Killed, UserError):
            return desk, since
    return after, since


def story(
    machine: Machine, first: FaultInjector, second: FaultInjector, stored: bool, again: bool, wait_ms: int = 61_000
) -> int:
    desk, since = first_life(machine, first, stored)
    since = TICK - MINUTE_MS if again else since  # a tick that is run again is one that was not stored
    machine.clock[0] += wait_ms
    desk, since = next_life(machine, second, desk, since, again)
    return count_consistent_mints(machine, settle_all(machine, desk, since), fresh_desk())


def healthy(new_machine: MachineFactory, chain: dict[str, Any]) -> list[str]:
    """The calls of a life in which nothing breaks."""
    injector = FaultInjector()
    first_life(new_machine(**chain), injector, True)
    return injector.calls


def test_an_order_is_minted_and_chain_outbox_and_desk_agree(new_machine: MachineFactory):
    machine, desk = new_machine(), fresh_desk()

    with machine.process() as broker:
        placed = run(broker.submit(desk, mint_request(), TICK))

    assert placed.refusal == ""
    (entry,) = machine.entries()
    assert placed.order_id == entry.order_id
    assert [receipt.kind for receipt in placed.receipts] == ["filled"]
    assert count_consistent_mints(machine, placed.world, desk) == 1


def test_the_same_order_submitted_twice_is_minted_once(new_machine: MachineFactory):
    machine, desk = new_machine(), fresh_desk()

    with machine.process() as broker:
        first = run(broker.submit(desk, mint_request(), TICK))
        on_what_came_of_it = run(broker.submit(first.world, mint_request(), TICK))
        on_the_desk_before = run(broker.submit(desk, mint_request(), TICK))

    assert first.order_id == on_what_came_of_it.order_id == on_the_desk_before.order_id
    assert (on_what_came_of_it.world, on_what_came_of_it.receipts) == (first.world, ())
    assert on_the_desk_before.world == first.world
    assert count_consistent_mints(machine, first.world, desk) == 1


def test_every_step_of_the_writer_is_among_the_calls_that_are_broken(new_machine: MachineFactory):
    calls = healthy(new_machine, {})

    assert {name.split(".")[0] for name in calls} == {"chain", "outbox", "signer"}
    assert [name for name in calls if name in ("signer.sign", "outbox.sign", "outbox.send", "chain.execute")] == [
        "signer.sign",
        "outbox.sign",
        "outbox.send",
        "chain.execute",
    ]
    assert calls.index("chain.simulate") < calls.index("signer.sign")
    assert "chain.simulate" in calls[calls.index("outbox.sign") : calls.index("outbox.send")]


def cases() -> list[Any]:
    """Every chain, with and without the order being asked for again; the quick one in every run."""
    quick = "plain", False
    return [
        pytest.param(chain, again, id=f"{chain}-{again}", marks=() if (chain, again) == quick else pytest.mark.chaos)
        for chain in CHAINS
        for again in (False, True)
    ]


@pytest.mark.parametrize(("chain", "again"), cases())
def test_no_single_fault_mints_twice_and_outbox_and_desk_agree_with_the_chain(
    new_machine: MachineFactory, chain: str, again: bool
):
    calls = healthy(new_machine, CHAINS[chain])
    minted: dict[tuple[int, str, bool], int] = {}

    for number, kind in possible_faults(calls):
        for stored in (False,) if again else (False, True):
            machine = new_machine(**CHAINS[chain])
            minted[number, kind, stored] = story(machine, FaultInjector({number: kind}), FaultInjector(), stored, again)

    assert set(minted.values()) == ({1} if again else {0, 1})
    executed = calls.index("chain.execute")
    for (number, kind, _), count in minted.items():
        if number > executed or (number == executed and kind in ("crash_after", "lost_after")):
            assert count == 1, (number, kind)


@pytest.mark.parametrize("stored", [False, True], ids=["unstored", "stored"])
@pytest.mark.parametrize("again", [False, True], ids=["once", "again"])
@given(data=st.data())
@SHARED
def test_no_two_faults_in_two_lives_mint_twice(
    new_machine: MachineFactory, stored: bool, again: bool, data: st.DataObject
):
    chain = CHAINS[data.draw(st.sampled_from(sorted(CHAINS)))]
    first = data.draw(st.sampled_from(possible_faults(healthy(new_machine, chain))))
    wait_ms = data.draw(st.sampled_from([1_000, 31_000, 61_000]))
    counting = FaultInjector()
    story(new_machine(**chain), FaultInjector(dict([first])), counting, stored, again, wait_ms)
    second = data.draw(st.sampled_from(possible_faults(counting.calls)))

    assert (
        story(new_machine(**chain), FaultInjector(dict([first])), FaultInjector(dict([second])), stored, again, wait_ms)
        <= 1
    )


@given(data=st.data())
@SHARED
def test_no_two_faults_in_one_life_mint_twice(new_machine: MachineFactory, data: st.DataObject):
    chain = CHAINS[data.draw(st.sampled_from(sorted(CHAINS)))]
    number, kind = data.draw(st.sampled_from(possible_faults(healthy(new_machine, chain))))
    counting = FaultInjector({number: kind})
    story(new_machine(**chain), counting, FaultInjector(), True, True)
    later = [fault for fault in possible_faults(counting.calls) if fault[0] > number]
    faults = dict([(number, kind), *([data.draw(st.sampled_from(later))] if later else [])])

    assert story(new_machine(**chain), FaultInjector(faults), FaultInjector(), data.draw(st.booleans()), True) <= 1


@pytest.mark.chaos
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("wait_ms", [1_000, 61_000])
def test_no_pair_of_faults_at_all_mints_twice(new_machine: MachineFactory, chain: str, wait_ms: int):
    stories = 0
    for first in possible_faults(healthy(new_machine, CHAINS[chain])):
        counting = FaultInjector()
        story(new_machine(**CHAINS[chain]), FaultInjector(dict([first])), counting, False, True, wait_ms)
        for second in possible_faults(counting.calls):
            injectors = FaultInjector(dict([first])), FaultInjector(dict([second]))
            assert story(new_machine(**CHAINS[chain]), *injectors, False, True, wait_ms) <= 1, (first, second)
            stories += 1
    assert stories > 1_000
