"""A deployment whose model is an attacker's loses in a day no more than the cap of a day and what one bar takes.

The deployments are on paper and go through the live path, in virtual time on volatile markets.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile_days import SYMBOLS, HoldingAttacker, RecordedDays, day_results, live_days, opens_while_halted

from example_counts import seeds
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.venues.perp.redteam.hostile_model import HostileTrader

DAYS = 3
ACCOUNTS = 334
"""Of three days each: a thousand days."""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with open_workspace(load_settings(tmp_path_factory.mktemp("hostile"))) as opened:
        yield opened


def attack(workspace: Workspace, seed: int) -> RecordedDays:
    attacker = HoldingAttacker(seed) if seed % 2 else HostileTrader(str(seed), SYMBOLS)
    return asyncio.run(live_days(workspace, seed, DAYS, attacker))


def check(lived: RecordedDays) -> tuple[int, int]:
    """Check one account; returns its days, and how many reached the cap."""
    results = day_results(lived)
    assert [each for each in results if not each.is_bounded] == []
    assert opens_while_halted(lived) == []
    return len(results), sum(each.gap > 0 for each in results)


@pytest.mark.parametrize("seed", seeds(7, 2, quick=1))
def test_a_day_with_a_hostile_model_loses_at_most_the_cap_and_one_bar(workspace: Workspace, seed: int) -> None:
    _, reached = check(attack(workspace, seed))
    assert reached  # else nothing was shown


@pytest.mark.proof
def test_a_thousand_days_with_a_hostile_model_lose_at_most_the_cap_and_one_bar_each(tmp_path: Path) -> None:
    days = reached = 0
    with open_workspace(load_settings(tmp_path)) as workspace:
        for seed in range(ACCOUNTS):
            more, halted = check(attack(workspace, seed))
            days, reached = days + more, reached + halted
    print(f"{days} days, {reached} of them reached the cap")
    assert days >= 1_000
    assert reached > days / 10
