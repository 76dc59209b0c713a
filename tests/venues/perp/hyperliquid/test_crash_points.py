"""A process that is killed at any labelled point: the first pass of the next one gives exactly the exchange's position."""

import asyncio
from decimal import localcontext
from pathlib import Path

import pytest

from example_counts import seeds
from pitboss.core import codec
from pitboss.core.errors import TransientError
from pitboss.core.money import CONTEXT
from pitboss.store.database import open_database
from pitboss.testing.hyperliquid.faults import mixed_faults
from pitboss.testing.hyperliquid.seeded import SeededNumbers
from pitboss.venues.perp.hyperliquid.order_sender import STEP_LABELS, StepLabel
from pitboss.venues.perp.state import ReportedWorld
from simulated_kill import Killed
from venues.perp.hyperliquid.faulted_run import Tally, check_orders, first_world, random_request, settle_orders
from venues.perp.hyperliquid.live_scene import Scene, open_request

MOST_PASS_MS = 10_000


def killer(label: StepLabel, after: int):
    """A step listener that kills the process when a label is reached after `after` earlier times."""
    left = after

    def reached(step: StepLabel) -> None:
        nonlocal left
        if step == label:
            left -= 1
            if left < 0:
                raise Killed

    return reached


async def trade_until_killed(scene: Scene, world: ReportedWorld, seed: int, label: StepLabel) -> bytes:
    """Trade until the process is killed; return the world that was committed last."""
    numbers = SeededNumbers(seed, "life")
    committed = codec.dumps(world)
    scene.start(killer(label, numbers.below(3)))
    for number in range(60):
        try:
            request = random_request(scene, world, numbers, f"{seed}:{number}")
            world = (await scene.broker.submit(world, request, scene.now())).world
            committed = codec.dumps(world)
            for _ in range(3):
                await scene.clock.sleep(2.0)
                try:
                    world = (await scene.broker.resolve(world)).world
                except TransientError:
                    continue
                committed = codec.dumps(world)
        except Killed:
            return committed
    return committed


async def crash_and_restart(scene: Scene, seed: int, label: StepLabel) -> int:
    """Kill a process and start the next; return the milliseconds of its first pass."""
    with localcontext(CONTEXT):
        world = await first_world(scene)
        committed = await trade_until_killed(scene, world, seed, label)
        scene.plan.clear()
        scene.start()
        stored = codec.parse(ReportedWorld, codec.loads(committed))
        before = scene.clock.now()
        assert scene.broker.open_problem("ETH")  # nothing opens before the first pass
        while True:
            fills = scene.exchange.truth().fills
            reconciled = await scene.broker.resolve(stored)
            spent = scene.clock.now() - before
            if scene.exchange.truth().fills == fills:
                break
            before = scene.clock.now()  # something was filled during the pass: the next one is the one that counts
            scene.start()
        sizes = {symbol: one.size for symbol, one in reconciled.world.positions.items()}
        assert sizes == scene.exchange.truth().positions
        scene.start()
        doubtful = {order.order_id for order in scene.store.open_orders() if order.fence.is_in_doubt}
        again = await scene.broker.resolve(reconciled.world)
        if scene.exchange.truth().fills == fills:
            # An order in doubt may end here: the exchange's time has passed its expiry since. Nothing else is new.
            assert {receipt.kind for receipt in again.receipts} <= {"rejected", "cancelled"}
            assert {receipt.order_id for receipt in again.receipts} <= doubtful
            assert again.world.positions == reconciled.world.positions
        tally = Tally()
        await settle_orders(scene, again.world, tally)
        check_orders(scene, tally)
        assert tally.is_clean, tally
        return spent


def crash(folder: Path, seed: int, label: StepLabel) -> int:
    with open_database(folder / "pitboss.db") as database:
        scene = Scene(seed, faults=mixed_faults(0.3), database=database)
        return asyncio.run(crash_and_restart(scene, seed, label))


@pytest.mark.parametrize("label", STEP_LABELS)
@pytest.mark.parametrize("seed", seeds(*range(1, 101), quick=1))
def test_the_first_pass_after_a_crash_gives_the_position_of_the_exchange(seed: int, label: StepLabel, tmp_path: Path):
    assert crash(tmp_path, seed, label) <= MOST_PASS_MS


def test_an_order_whose_expiry_passes_after_the_first_pass_ends_in_the_second(tmp_path: Path):
    assert crash(tmp_path, 1_033, "protected") <= MOST_PASS_MS


def test_a_process_that_has_opened_the_account_reads_what_was_filled_since_the_stored_world_in_one_pass():
    async def story(scene: Scene) -> None:
        stored = await scene.world()
        placed = await scene.broker.submit(stored, open_request(), scene.now())
        assert not placed.refusal
        scene.start()  # the process was killed before it stored the world after the fill
        await scene.broker.resolve(None)  # the account is opened
        reconciled = await scene.broker.resolve(stored)
        sizes = {symbol: one.size for symbol, one in reconciled.world.positions.items()}
        assert sizes == scene.exchange.truth().positions != {}

    with localcontext(CONTEXT):
        asyncio.run(story(Scene(1)))
