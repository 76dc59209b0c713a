"""The generated markets: the same shape gives the same bytes, and every repetition has the same bars."""

from pathlib import Path

import numpy as np
import pytest

from pitboss.data.lake import Lake
from pitboss_dev.bench.market import (
    BARS_A_DAY,
    START_AT,
    STEP_MS,
    SYMBOLS,
    VENUE,
    MarketShape,
    random_walk,
    write_market,
)


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_every_bar_is_consistent(symbol: str) -> None:
    bars = random_walk(symbol, MarketShape(3))
    assert len(bars) == 3 * BARS_A_DAY
    assert bars.open_at[0] == START_AT
    assert (np.diff(bars.open_at) == STEP_MS).all()
    assert (bars.low > 0).all()
    assert (bars.low <= np.minimum(bars.open, bars.close)).all()
    assert (bars.high >= np.maximum(bars.open, bars.close)).all()


def test_the_same_shape_gives_the_same_bars_and_another_seed_others() -> None:
    assert (random_walk("SOL", MarketShape(2)).close == random_walk("SOL", MarketShape(2)).close).all()
    assert (random_walk("SOL", MarketShape(2)).close != random_walk("SOL", MarketShape(2, seed=12)).close).any()


def test_a_repeating_market_has_the_same_bars_in_every_round() -> None:
    once, thrice = random_walk("SOL", MarketShape(2, period=2)), random_walk("SOL", MarketShape(6, period=2))
    for column in ("open", "high", "low", "close"):
        rounds = getattr(thrice, column).reshape(3, -1)
        assert (rounds[1] == rounds[2]).all()
        assert (rounds[0] == getattr(once, column)).all()


def test_a_written_market_is_marked_as_generated_and_has_funding_when_asked(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    write_market(lake, MarketShape(2, ("SOL", "BTC"), funding=True))
    assert lake.is_synthetic(VENUE)
    assert {(series.kind, series.symbol, series.rows, series.gaps) for series in lake.list()} == {
        ("bars", "BTC", 2 * BARS_A_DAY, 0),
        ("bars", "SOL", 2 * BARS_A_DAY, 0),
        ("funding", "BTC", 48, 0),
        ("funding", "SOL", 48, 0),
    }
