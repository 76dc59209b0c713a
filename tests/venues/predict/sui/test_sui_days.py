"""Many ticks of a driver under faults: crashes, lost and late replies, a lagging index, ending epochs."""

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pitboss.core.errors import UserError
from pitboss.core.instant import MINUTE_MS
from pitboss.venues.predict.desk import Desk
from simulated_kill import Killed
from venues.predict.sui.fault_injector import KINDS, FaultInjector
from venues.predict.sui.writer_machine import (
    TICK,
    Machine,
    count_consistent_mints,
    fresh_desk,
    mint_request,
    redeem_request,
    run,
    settle_all,
)

MachineFactory = Callable[..., Machine]


class RandomFaults(dict[int, str]):
    """Fails each call with the probability `share`, by a random kind of fault."""

    def __init__(self, random: Random, share: float) -> None:
        super().__init__()
        self._random, self._share = random, share

    def get(self, number: int, default: str = "") -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._random.choice(KINDS) if self._random.random() < self._share else default


def request_at(desk: Desk, at: int, random: Random):
    """Mostly a mint; now and then all of what is held is sold."""
    positions = list(desk.world.accounts["agent"].positions.values())
    if positions and random.random() < 0.25:
        held = random.choice(positions)
        return redeem_request(held.quantity, held.contract.side, at)
    return mint_request(side=random.choice(["YES", "NO"]), tick_at=at)


def bad_day(machine: Machine, random: Random, ticks: int, share: float) -> Desk:
    """A driver that stores its desk after each tick, and is started again whenever it dies."""
    desk, since = fresh_desk(), TICK
    at = TICK
    broker, injector = None, FaultInjector()
    for _ in range(ticks):
        at += MINUTE_MS
        machine.clock[0] = at
        if random.random() < 0.2:
            machine.chain.heal()
        if random.random() < 0.05:
            machine.chain.pass_epochs(random.randint(1, 2))
        machine.chain.lag = random.choice([0, 0, 2, 6])
        if broker is None:
            injector = FaultInjector(RandomFaults(random, share))
            with machine.process(injector) as broker:
                pass
        try:
            found = run(broker.settle(desk, since, at)).world
            found = run(broker.submit(found, request_at(found, at, random), at)).world
            if random.random() < share:
                raise Killed("before the tick was stored")
            desk, since = found, at
        except Killed:
            broker = None
        except UserError:
            continue  # the tick is lost, the process goes on
    machine.chain.lag = 0
    return settle_all(machine, desk, since)


def accounted_for(machine: Machine, desk: Desk) -> None:
    count_consistent_mints(machine, desk, fresh_desk())
    landed = Counter(entry.order_id for entry in machine.entries() if entry.state == "landed")
    assert set(landed.values()) <= {1}


@given(seed=st.integers(0, 2**32), share=st.sampled_from([0.02, 0.1, 0.3]), locking=st.booleans())
@settings(max_examples=2, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(seed=189, share=0.1, locking=False)  # epochs passed while the index lagged
def test_after_a_bad_day_chain_outbox_and_desk_agree_on_every_order(
    new_machine: MachineFactory, seed: int, share: float, locking: bool
):
    machine = new_machine(gas_coins=2, locking=locking)

    accounted_for(machine, bad_day(machine, Random(seed), 15, share))


@pytest.mark.chaos
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("share", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("locking", [False, True])
def test_after_many_bad_days_chain_outbox_and_desk_agree_on_every_order(
    new_machine: MachineFactory, share: float, locking: bool
):
    sent = 0
    for seed in range(60):
        machine = new_machine(gas_coins=2, locking=locking)
        accounted_for(machine, bad_day(machine, Random(seed), 30, share))
        sent += len(machine.entries())
    assert sent > 500
