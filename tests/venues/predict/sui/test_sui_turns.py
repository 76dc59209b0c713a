"""Two processes with one outbox and the same order: in any interleaving there is one mint."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pitboss.venues.predict.sui.order_sender import WriterSettings
from venues.predict.sui.fault_injector import FaultInjector
from venues.predict.sui.test_sui_once import healthy
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


class TurnScheduler:
    """Lets one of several threads make one call of a port at a time, in the order it is given."""

    def __init__(self, order: list[int]) -> None:
        self._order = order
        self._changed = threading.Condition()
        self._at = 0
        self._alive = {0, 1}

    def wait(self, who: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._turn() == who)
            self._at += 1
            self._changed.notify_all()

    def leave(self, who: int) -> None:
        with self._changed:
            self._alive.discard(who)
            self._changed.notify_all()

    def _turn(self) -> int:
        wanted = self._order[self._at % len(self._order)]
        return wanted if wanted in self._alive else next(iter(self._alive), wanted)


def submit_together(machine: Machine, order: list[int], terms: WriterSettings, second: str = "submit") -> list[Any]:
    """Both processes submit the same order at once, or the second only resolves it."""
    turns, placed, broken = TurnScheduler(order), {}, []

    def live(who: int) -> None:
        try:
            injector = FaultInjector(before=lambda name: turns.wait(who))
            with machine.process(injector, terms) as broker:
                if who == 1 and second == "settle":
                    placed[who] = run(broker.settle(fresh_desk(), TICK - 1, TICK))
                else:
                    placed[who] = run(broker.submit(fresh_desk(), mint_request(), TICK))
        except BaseException as error:  # noqa: BLE001 – told to the test, which would otherwise know nothing of it
            broken.append(error)
        finally:
            turns.leave(who)

    threads = [threading.Thread(target=live, args=(who,)) for who in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not broken, broken
    return [placed[0], placed[1]]


@pytest.mark.parametrize(("second", "lease_ms"), [("submit", -1), ("submit", 60_000), ("settle", -1)])
def test_a_process_that_stops_at_any_call_and_goes_on_after_the_other_mints_nothing_more(
    new_machine: MachineFactory, second: str, lease_ms: int
):
    calls = healthy(new_machine, {})
    for number in range(len(calls) + 1):
        machine = new_machine()

        submit_together(machine, [*[0] * number, *[1] * 60, *[0] * 60], WriterSettings(lease_ms=lease_ms), second)

        desk = settle_all(machine, fresh_desk(), TICK - 1)
        minted = count_consistent_mints(machine, desk, fresh_desk())
        assert minted == 1 or (second == "settle" and minted == 0), number


@pytest.mark.chaos
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("lease_ms", [-1, 60_000])
def test_two_processes_that_both_stop_at_any_call_mint_once(new_machine: MachineFactory, lease_ms: int):
    calls = len(healthy(new_machine, {}))
    for first in range(calls + 1):
        for second in range(calls + 5):
            machine = new_machine()
            submit_together(
                machine, [*[0] * first, *[1] * second, *[0] * 60, *[1] * 60], WriterSettings(lease_ms=lease_ms)
            )
            desk = settle_all(machine, fresh_desk(), TICK - 1)
            assert count_consistent_mints(machine, desk, fresh_desk()) <= 1, (first, second)


@given(
    order=st.lists(st.sampled_from([0, 1]), min_size=1, max_size=40),
    lease_ms=st.sampled_from([-1, 60_000]),
    chain=st.sampled_from([{}, {"lag": 2}, {"gas_coins": 1, "locking": True}]),
)
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_two_processes_that_submit_one_order_mint_it_once(
    new_machine: MachineFactory, order: list[int], lease_ms: int, chain: dict[str, Any]
):
    # With a lease that is always over each takes the other for dead, at any step: the worst that a stopped process can do.
    machine = new_machine(**chain)

    placed = submit_together(machine, order, WriterSettings(lease_ms=lease_ms))

    assert len(machine.chain.mints) <= 1
    desk = settle_all(machine, fresh_desk(), TICK - 1)
    assert count_consistent_mints(machine, desk, fresh_desk()) <= 1
    if lease_ms > 0:
        assert len(machine.chain.mints) == 1
        assert [one.refusal == "" for one in placed].count(True) >= 1
