"""Recorded predict data in files: prices, surfaces and rounds as columns, or one line about the row that is wrong."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from import_files import SHARED, bar_rows, write

from pitboss.core.errors import UserError
from pitboss.core.instant import parse_instant
from pitboss.venues.predict.data.recorded import agreement, read_prices, read_rounds, read_surfaces
from pitboss.venues.predict.svi import FLOAT, Svi

START = parse_instant("2026-02-21T14:30:00Z")
MINUTE = 60_000
ORACLE = f"0x{'7' * 64}"


def price_update_row(number: int, **more: Any) -> dict[str, Any]:
    at = START + number * 1_000
    row = {"event_digest": f"d{number}", "checkpoint_timestamp_ms": at + 300, "oracle_id": ORACLE}
    return {**row, "spot": 68_000 * FLOAT + number, "forward": 68_010 * FLOAT, "onchain_timestamp": at, **more}


def surface_row(number: int, **more: Any) -> dict[str, Any]:
    row = {"oracle_id": ORACLE, "a": 171_736, "b": 7_449_196, "rho": 243_059_022, "rho_negative": True}
    row |= {"m": 1_133_202, "m_negative": False, "sigma": 15_731_214}
    return {**row, "onchain_timestamp": START + number * 10_000, **more}


def round_row(number: int, up_price: float | None, asset: str = "BTC", **more: Any) -> dict[str, Any]:
    return {"asset": asset, "duration_s": 300, "start": START + number * 5 * MINUTE, "up_price": up_price, **more}


def test_bars_are_the_price_of_their_open_at_that_instant(tmp_path: Path) -> None:
    rows = bar_rows(10, START, MINUTE)
    points = read_prices(write(tmp_path / "bars.parquet", rows))
    assert points.at.tolist() == [START + index * MINUTE for index in range(10)]
    assert points.spot.tolist() == [round(row["open"] * FLOAT) for row in rows]
    assert points.forward.tolist() == points.spot.tolist()
    assert len(points) == 10


@pytest.mark.parametrize("name", ["pushes.jsonl", "pushes.csv", "pushes.csv.gz", "pushes.parquet", "pushes.json"])
def test_rows_of_the_indexer_keep_their_units_to_the_last_digit_and_come_in_order(tmp_path: Path, name: str) -> None:
    points = read_prices(write(tmp_path / name, [price_update_row(number) for number in (2, 1, 0, 1)]))
    assert points.at.tolist() == [START, START + 1_000, START + 2_000]
    assert points.spot.tolist() == [68_000 * FLOAT, 68_000 * FLOAT + 1, 68_000 * FLOAT + 2]
    assert points.forward.tolist() == [68_010 * FLOAT] * 3


def test_updates_of_a_chain_count_from_the_block_that_shows_them(tmp_path: Path) -> None:
    second = START // 1000
    rows = [{"updated_at_s": second, "block_timestamp_s": second + 2, "price_usd": 68161.3, "symbol": "BTC"}]
    points = read_prices(write(tmp_path / "updates.csv", rows))
    assert (points.at.tolist(), points.spot.tolist()) == ([START + 2_000], [68_161_300_000_000])


@pytest.mark.parametrize("name", ["svi.jsonl", "svi.csv", "svi.parquet"])
def test_surfaces_have_their_signs(tmp_path: Path, name: str) -> None:
    rows = read_surfaces(write(tmp_path / name, [surface_row(1), surface_row(0, m_negative=True), surface_row(1)]))
    assert rows.at.tolist() == [START, START + 10_000]
    assert rows.market_id == (ORACLE, ORACLE)
    assert rows.svi(0) == Svi(0.000171736, 0.007449196, -0.243059022, -0.001133202, 0.015731214)
    assert rows.svi(1).m == 0.001133202


def test_rounds_come_in_order_and_an_open_one_has_no_outcome(tmp_path: Path) -> None:
    rows = read_rounds(write(tmp_path / "rounds.parquet", [round_row(1, 1.0), round_row(0, 0.0), round_row(2, None)]))
    assert rows.start_at.tolist() == [START, START + 5 * MINUTE, START + 10 * MINUTE]
    assert rows.up_price.tolist()[:2] == [0.0, 1.0]
    assert np.isnan(rows.up_price[2])


def test_surfaces_of_several_assets_are_refused_without_an_option_that_there_is_not(tmp_path: Path) -> None:
    path = write(tmp_path / "svi.csv", [surface_row(0, asset="BTC"), surface_row(1, asset="ETH")])
    with pytest.raises(UserError, match="rows of several assets") as caught:
        read_surfaces(path)
    assert caught.value.hint == "keep the rows of one of BTC, ETH"


@pytest.mark.parametrize("name", ["svi.csv", "svi.parquet"])
def test_a_surface_without_an_oracle_is_refused(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, [surface_row(0), surface_row(1, oracle_id=None)])
    with pytest.raises(UserError, match=r"row 2 .*: the oracle's id is missing"):
        read_surfaces(path)


def test_a_file_of_several_assets_needs_one_named(tmp_path: Path) -> None:
    path = write(tmp_path / "rounds.csv", [round_row(0, 1.0), round_row(0, 0.0, "ETH")])
    with pytest.raises(UserError) as caught:
        read_rounds(path)
    assert caught.value.hint == "--asset, one of BTC, ETH"
    assert read_rounds(path, "ETH").up_price.tolist() == [0.0]
    with pytest.raises(UserError, match="no rows of 'SOL'"):
        read_rounds(path, "SOL")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([price_update_row(0), price_update_row(0, spot=5 * FLOAT)], r"row 2: another row has the same time"),
        ([price_update_row(0), price_update_row(1, spot=0)], r"row 2 .* is not a price"),
        ([price_update_row(0, spot=-5 * FLOAT)], r"row 1 .* is not a price"),
        ([price_update_row(0, forward=None)], r"forward is missing"),
        ([price_update_row(0, spot="many")], r"the price is 'many', not a number"),
        ([price_update_row(0, onchain_timestamp="noon")], r"'noon' is not a time"),
        ([{"onchain_timestamp": START}], r"no column for the price"),
        ([{"spot": 5.0}], r"no column for time"),
        ([{"time": START, "price": 1e30}], r"is not a price"),
        ([{"time": START, "price": "inf"}], r"not a number"),
        ([{"time": START, "price": 1e-12}], r"1e-12 is not a price"),
    ],
)
def test_a_price_that_cannot_be_names_its_row(tmp_path: Path, rows: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_prices(write(tmp_path / "prices.jsonl", rows))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (surface_row(0, rho_negative="maybe"), "neither true nor false"),
        (surface_row(0, rho=2 * FLOAT), "outside"),
        (surface_row(0, a=-5), "below zero"),
        (surface_row(0, sigma=None), "sigma is missing"),
        ({name: value for name, value in surface_row(0).items() if name != "m_negative"}, "no column for m_negative"),
    ],
)
def test_a_surface_that_cannot_be_names_its_row(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_surfaces(write(tmp_path / "svi.jsonl", [row]))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([round_row(0, 1.5)], "not between 0 and 1"),
        ([round_row(0, "yes")], r"row 1 .*the price of UP is 'yes', not a number"),  # type: ignore[arg-type]
        ([round_row(0, 1.0, duration_s=-5)], "a round of"),
        ([round_row(0, 1.0, duration_s=0.5)], "a round of"),
        ([round_row(0, 1.0), round_row(0, 0.0)], "row 2: another row has the same time"),
        ([{"start": START, "up_price": 1.0}], "no column for duration_s"),
    ],
)
def test_a_round_that_cannot_be_names_its_row(tmp_path: Path, rows: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_rounds(write(tmp_path / "rounds.jsonl", rows))


def test_a_file_that_is_no_table_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text('{"a": 1}')
    with pytest.raises(UserError, match="not a table of rows"):
        read_rounds(path)
    with pytest.raises(UserError, match="cannot be read"):
        read_prices(tmp_path / "missing.parquet")


@given(
    st.lists(
        st.tuples(st.integers(0, 10_000), st.decimals("0.01", "900000", places=2)),
        min_size=1,
        unique_by=lambda it: it[0],
    )
)
def test_prices_in_any_order_come_back_sorted_and_exact(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    path = folder / "p.csv"
    path.write_text("time,price\n" + "\n".join(f"{START + at},{price}" for at, price in rows) + "\n")
    points = read_prices(path)
    expected = sorted((START + at, int(price * FLOAT)) for at, price in rows)
    assert list(zip(points.at.tolist(), points.spot.tolist(), strict=True)) == expected


ANYTHING = (
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
    | st.lists(st.integers(0, 9), max_size=2)
)
READERS: list[tuple[dict[str, Any], Callable[[Path], Any]]] = [
    (price_update_row(0), read_prices),
    (surface_row(0), read_surfaces),
    (round_row(0, 1.0), read_rounds),
]


@given(st.sampled_from(READERS), st.data())
def test_a_file_with_anything_in_any_field_is_columns_or_a_line(
    tmp_path_factory: pytest.TempPathFactory, reader: tuple[dict[str, Any], Callable[[Path], Any]], data: st.DataObject
) -> None:
    row, read = reader
    spoiled = dict(row)
    for name in data.draw(st.lists(st.sampled_from(sorted(row)), max_size=2)):
        spoiled[name] = data.draw(ANYTHING)
    path = tmp_path_factory.mktemp("spoiled") / "rows.jsonl"
    path.write_text("\n".join(json.dumps(one) for one in (row, spoiled)))
    try:
        rows = read(path)
    except UserError as error:
        result = error.message
    else:
        result = f"{len(rows)} rows"
        assert 1 <= len(rows) <= 2
    assert "\n" not in result


def test_the_real_rounds_settle_as_recorded_in_97_percent() -> None:
    folder = SHARED / "predict"
    if not folder.exists():
        pytest.skip("the real rounds are not here")
    rounds = read_rounds(folder / "updown_rounds_btc.parquet")
    prices = read_prices(folder / "binance_spot_1m_btc.parquet")
    share = agreement(rounds, prices)
    assert len(rounds) == share.rounds + share.undecided + share.unpriced
    assert share.rounds > 2_000
    assert share.share >= 0.97
    assert all(abs(miss.move_bps) < 5 for miss in share.misses)


def test_the_real_updates_of_an_oracle_are_read() -> None:
    path = SHARED / "predict" / "chainlink_updates_btc.csv.gz"
    if not path.exists():
        pytest.skip("the real updates are not here")
    points = read_prices(path)
    assert len(points) == 430
    assert points.at[0] == 1_772_524_915_000
    assert points.spot[0] == pytest.approx(68_161.3 * FLOAT, abs=FLOAT / 100)
    assert (np.diff(points.at) > 0).all()
