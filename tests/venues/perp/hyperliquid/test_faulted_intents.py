"""Thousands of intents on an exchange that loses, delays and falsifies: each has at most one order, and each verdict is true."""

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from example_counts import seeds
from pitboss.testing.hyperliquid.faults import FaultRule, mixed_faults
from saved_figures import save_figures
from venues.perp.hyperliquid.faulted_run import Tally, first_world, run_intents, settle_orders
from venues.perp.hyperliquid.live_scene import Scene

P99_MS, MOST_MS = 3_000, 10_000


def faults(order_share: float, read_share: float) -> tuple[FaultRule, ...]:
    """Every fault of single requests: on this share of orders, and on this share of reads."""
    orders = [rule for rule in mixed_faults(order_share) if "order" in rule.on]
    reads = [rule for rule in mixed_faults(read_share) if "order" not in rule.on]
    return (*orders, *reads)


STREAM_SHARE = 0.1
"""The share of messages of streams that are lost, late, doubled, out of order, or about another account."""
DROP_SHARE = 0.005
"""The share of seconds in which a connection of streams ends, or stays open and carries nothing more."""


def stream_faults() -> tuple[FaultRule, ...]:
    """Every fault of streams."""
    messages = ("ws_gap", "ws_wrong_user", "ws_doubled_fill", "ws_fills_out_of_order", "ws_duplicate_snapshot")
    drops = ("ws_drop", "ws_half_open", "ws_silent_close")
    return (
        *(FaultRule(kind, STREAM_SHARE) for kind in messages),
        FaultRule("ws_late_fill", STREAM_SHARE, low_ms=500, high_ms=5_000),
        *(FaultRule(kind, DROP_SHARE) for kind in drops),
    )


def run_faulted(seed: int, count: int, order_share: float = 0.5, read_share: float = 0.15) -> Tally:
    """The account is read every second, and its streams are followed."""
    tally = Tally()
    scene = Scene(seed, faults=(*faults(order_share, read_share), *stream_faults()))
    scene.run(run_intents(scene, count, tally))
    return tally


def p99(values: list[int]) -> int:
    return sorted(values)[len(values) * 99 // 100] if values else 0


@pytest.mark.parametrize("seed", seeds(*range(1, 40), quick=1))
def test_intents_on_a_faulty_exchange_have_no_duplicate_ghost_or_phantom(seed: int):
    tally = run_faulted(seed, 60)
    assert (tally.duplicates, tally.ghosts, tally.phantoms, tally.unsettled) == (0, 0, 0, 0), tally
    assert tally.outcomes["placed"] > 24
    assert max(tally.unprotected_ms, default=0) <= MOST_MS


@pytest.mark.proof
@pytest.mark.timeout(14_400)
@pytest.mark.parametrize("first_seed", range(1_000, 1_100, 10))
def test_a_hundred_thousand_faulted_intents_have_no_duplicate_ghost_or_phantom(first_seed: int):
    uncovered_ms: list[int] = []
    for seed in range(first_seed, first_seed + 10):
        tally = run_faulted(seed, 1_000)
        assert (tally.duplicates, tally.ghosts, tally.phantoms, tally.unsettled) == (0, 0, 0, 0), (seed, tally)
        assert tally.outcomes["placed"] > 400
        uncovered_ms += tally.uncovered_ms
    figures = {"uncovered": len(uncovered_ms), "p99_ms": p99(uncovered_ms), "most_ms": max(uncovered_ms)}
    save_figures(f"fill_to_stop_{first_seed}", figures)
    assert p99(uncovered_ms) <= P99_MS
    assert max(uncovered_ms) <= MOST_MS


@given(seed=st.integers(10_000, 1_000_000), share=st.sampled_from([0.1, 0.5, 0.8]))
@settings(max_examples=4, suppress_health_check=[HealthCheck.too_slow])
def test_any_seed_of_faults_leaves_stops_of_exactly_the_size_of_positions(seed: int, share: float):
    tally = Tally()
    scene = Scene(seed, faults=mixed_faults(share))
    asyncio.run(run_intents(scene, 8, tally))
    scene.plan.clear()
    asyncio.run(settle_account(scene, tally))
    assert tally.duplicates + tally.ghosts + tally.phantoms == 0
    for symbol in scene.setup.symbols:
        size = abs(scene.position(symbol))
        assert scene.stops(symbol) == ([size] if size else [])


async def settle_account(scene: Scene, tally: Tally) -> None:
    await settle_orders(scene, await first_world(scene), tally)
