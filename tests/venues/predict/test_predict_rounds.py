"""Real up/down rounds settled by price history, and the comparison itself on a few made-up rounds."""

from pathlib import Path

import numpy as np
import pytest

from pitboss.venues.predict.rounds import Agreement, compare, first_price
from pitboss.venues.predict.state import Contract, Grid, open_world
from pitboss.venues.predict.svi import FLOAT
from venues.predict.scene import world_after
from venues.predict.single_markets import create_oracle, push_price

DATA = Path(__file__).parents[3].parent / "shared" / "data" / "predict"
MINUTE = 60_000


def agreement_of(outcomes: list[float], prices: list[float], within_ms: int = MINUTE) -> Agreement:
    starts = np.arange(len(outcomes), dtype=np.int64) * 5 * MINUTE
    times = np.arange(len(prices), dtype=np.int64) * 5 * MINUTE
    durations = np.full(len(outcomes), 300, dtype=np.int64)
    return compare(starts, durations, np.array(outcomes), times, np.array(prices), within_ms)


def test_rounds_that_differ_are_listed_by_the_size_of_their_move() -> None:
    found = agreement_of([1.0, 1.0, 0.0, 0.5, 1.0], [100.0, 101.0, 100.99, 100.995, 102.0, 102.0])
    assert (found.rounds, found.agreed, found.undecided, found.unpriced) == (4, 1, 1, 0)
    assert [round(miss.move_bps, 2) for miss in found.misses] == [-0.99, 0.5, 0.0]
    assert found.share == 0.25
    assert found.bands()[0] == ("under 1 bps", 3)
    assert sum(count for _, count in found.bands()) == 3


def test_a_tie_is_nos() -> None:
    assert agreement_of([0.0], [100.0, 100.0]).agreed == 1
    assert agreement_of([1.0], [100.0, 100.0]).agreed == 0


def test_a_round_without_prices_in_time_is_not_counted() -> None:
    found = agreement_of([1.0, 1.0], [100.0, 101.0])
    assert (found.rounds, found.unpriced) == (1, 1)
    times, prices = np.array([10, 20], dtype=np.int64), np.array([1.0, 2.0])
    asked = np.array([0, 10, 11, 21], dtype=np.int64)
    assert first_price(times, prices, asked, 5).tolist()[1] == 1.0
    assert np.isnan(first_price(times, prices, asked, 5)).tolist() == [True, False, True, True]
    assert np.isnan(first_price(times[:0], prices[:0], asked, 5)).all()


@pytest.fixture(scope="module")
def rounds() -> tuple[Agreement, dict[str, np.ndarray]]:
    if not (DATA / "updown_rounds_btc.parquet").exists():
        pytest.skip("the real rounds are not here")
    import polars as pl

    table = pl.read_parquet(DATA / "updown_rounds_btc.parquet")
    bars = pl.read_parquet(DATA / "binance_spot_1m_btc.parquet")
    columns = {
        "start_at": table["start"].dt.epoch("ms").to_numpy(),
        "duration_s": table["duration_s"].to_numpy().astype(np.int64),
        "up_price": table["up_price"].to_numpy(),
        "times": bars["date"].dt.epoch("ms").to_numpy(),
        "prices": bars["open"].to_numpy(),
    }
    return compare(**columns), columns


def test_at_least_97_percent_of_real_rounds_settle_as_recorded(
    rounds: tuple[Agreement, dict[str, np.ndarray]],
) -> None:
    found, _ = rounds
    assert found.rounds > 2_000
    assert found.share >= 0.97
    assert all(abs(miss.move_bps) < 5 for miss in found.misses)
    moves = [abs(miss.move_bps) for miss in found.misses]
    assert moves == sorted(moves, reverse=True)


def test_the_venue_itself_settles_the_real_rounds_as_the_comparison_says(
    rounds: tuple[Agreement, dict[str, np.ndarray]],
) -> None:
    found, columns = rounds
    times, prices = columns["times"], np.round(columns["prices"] * FLOAT).astype(np.int64)
    opened = first_price(times, prices, columns["start_at"], MINUTE)
    agreed = 0
    for start_at, seconds, up_price, strike in zip(
        columns["start_at"].tolist(),
        columns["duration_s"].tolist(),
        columns["up_price"].tolist(),
        opened.tolist(),
        strict=True,
    ):
        expiry_at = start_at + seconds * 1000
        place = int(np.searchsorted(times, expiry_at))
        if up_price not in (0.0, 1.0) or np.isnan(strike) or place >= len(times) or times[place] - expiry_at > MINUTE:
            continue
        world = world_after(create_oracle(open_world(1, 1), "m", "BTC", expiry_at, start_at, Grid()))
        if place:
            before = int(prices[place - 1])
            world = world_after(push_price(world, "m", before, before, int(times[place - 1])))
            assert world.oracles["m"].settlement is None
        world = world_after(push_price(world, "m", int(prices[place]), int(prices[place]), int(times[place])))
        settlement = world.oracles["m"].settlement
        assert settlement is not None
        agreed += Contract("m", int(strike), None).wins(settlement) == (up_price == 1.0)
    assert agreed == found.agreed
