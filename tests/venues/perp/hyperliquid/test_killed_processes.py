"""Real processes that are killed by SIGKILL at labelled steps: the first pass of the next gives exactly the exchange's position."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from pitboss.venues.perp.hyperliquid.order_sender import STEP_LABELS
from saved_figures import save_figures
from venues.perp.hyperliquid.killed_scene import KillStatistics, kill_often

CHAINS, KILLS_OF_EACH = 50, 2
"""Deployments one after the other, and how often the process of each is killed at each label."""
HALTS = ("reject_rate", "stale_data")
"""Codes of halts that faults, and a machine that is too busy for the bars to arrive, may cause."""


def check(killed: KillStatistics) -> None:
    tally = killed.tally
    assert killed.wrong == []
    assert (tally.duplicates, tally.ghosts, tally.phantoms, tally.unsettled) == (0, 0, 0, 0)
    assert [halt for halt in killed.halts if not halt.startswith(HALTS)] == []


@pytest.mark.proof
@pytest.mark.timeout(7_200)
def test_a_thousand_kills_leave_every_position_as_the_exchange_has_it(tmp_path: Path) -> None:
    kills: Counter[str] = Counter()
    recovered_ms: list[int] = []
    unreached = 0
    for seed in range(CHAINS):
        home = tmp_path / str(seed)
        home.mkdir()
        killed = asyncio.run(kill_often(home, 2_000 + seed, list(STEP_LABELS) * KILLS_OF_EACH))
        check(killed)
        kills.update(killed.kills)
        recovered_ms += killed.recovered_ms
        unreached += killed.unreached
    recovered_ms.sort()
    save_figures(
        "killed processes",
        {
            "kills": dict(kills),
            "recoveries": len(recovered_ms),
            "unreached": unreached,
            "recovered_ms": {
                "p50": recovered_ms[len(recovered_ms) // 2],
                "p99": recovered_ms[len(recovered_ms) * 99 // 100],
                "max": recovered_ms[-1],
            },
        },
    )
    assert set(kills) == set(STEP_LABELS)
