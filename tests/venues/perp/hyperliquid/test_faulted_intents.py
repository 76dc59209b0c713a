"""Thousands of intents on an exchange that loses, delays and falsifies: each has at most one order, and each verdict is true."""

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from example_counts import seeds
from pitboss.testing.hyperliquid.faults import FaultRule, mixed_faults
from venues.perp.hyperliquid.faulted_run import Tally, first, run_intents, settle
from venues.perp.hyperliquid.live_scene import Scene

P99_MS, MOST_MS = 3_000, 10_000


def faults(order_share: float, read_share: float) -> tuple[FaultRule, ...]:
    """Every fault of single requests: on this share of orders, and on this share of reads."""
    orders = [rule for rule in mixed_faults(order_share) if "order" in rule.on]
    reads = [rule for rule in mixed_faults(read_share) if "order" not in rule.on]
    return (*orders, *reads)


def faulted(seed: int, count: int, order_share: float = 0.5, read_share: float = 0.15) -> Tally:
    tally = Tally()
    scene = Scene(seed, faults=faults(order_share, read_share))
    asyncio.run(run_intents(scene, count, tally))
    return tally


def p99(values: list[int]) -> int:
    return sorted(values)[len(values) * 99 // 100] if values else 0


@pytest.mark.parametrize("seed", seeds(1, 2, 3, *range(4, 40)))
def test_intents_on_a_faulty_exchange_have_no_duplicate_ghost_or_phantom(seed: int):
    tally = faulted(seed, 100)
    assert (tally.duplicates, tally.ghosts, tally.phantoms, tally.unsettled) == (0, 0, 0, 0), tally
    assert tally.outcomes["placed"] > 45
    assert max(tally.unprotected_ms, default=0) <= MOST_MS


@pytest.mark.proof
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("seed", range(1_000, 1_100))
def test_a_hundred_thousand_faulted_intents_have_no_duplicate_ghost_or_phantom(seed: int):
    tally = faulted(seed, 1_000)
    assert (tally.duplicates, tally.ghosts, tally.phantoms, tally.unsettled) == (0, 0, 0, 0), tally
    assert tally.outcomes["placed"] > 500
    assert p99(tally.unprotected_ms) <= P99_MS
    assert max(tally.unprotected_ms, default=0) <= MOST_MS


@given(seed=st.integers(10_000, 1_000_000), share=st.sampled_from([0.1, 0.5, 0.8]))
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
def test_any_seed_of_faults_leaves_stops_of_exactly_the_size_of_positions(seed: int, share: float):
    tally = Tally()
    scene = Scene(seed, faults=mixed_faults(share))
    asyncio.run(run_intents(scene, 8, tally))
    scene.plan.clear()
    asyncio.run(settled(scene, tally))
    assert tally.duplicates + tally.ghosts + tally.phantoms == 0
    for symbol in scene.setup.symbols:
        size = abs(scene.position(symbol))
        assert scene.stops(symbol) == ([size] if size else [])


async def settled(scene: Scene, tally: Tally) -> None:
    await settle(scene, await first(scene), tally)
