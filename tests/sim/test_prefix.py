"""A longer range never changes what was recorded before: ticks, receipts and equity of a run are a prefix of a longer one's."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pitboss.bootstrap.settings import load_settings
from pitboss.core import codec, curve
from pitboss.core.instant import DAY_MS, HOUR_MS, MINUTE_MS, Instant, parse_instant
from pitboss.data.demo import write_demo
from pitboss.data.lake import Lake
from pitboss.data.series import TIME, series
from pitboss.runs.venues import venue_of
from pitboss.sim.replay import replay
from pitboss.sim.watch import Watch
from pitboss.testing.journal import MemoryJournal
from pitboss.venues.perp.testing import plain_skill

END = parse_instant("2025-04-01")
FROM = END - DAY_MS
STEP = 5 * MINUTE_MS
DELISTED = FROM + 9 * HOUR_MS + 20 * MINUTE_MS
SYMBOLS = ("BTC", "ETH", "SOL")
PERP = plain_skill(
    SYMBOLS,
    "15m",
    context={
        "symbols": list(SYMBOLS),
        "bars_interval": "15m",
        "bars_lookback": 20,
        "news_lookback_hours": 6,
        "events": {"enabled": True, "lookahead_hours": 48},
    },
    tools={"built_in": ["get_funding_rate", "get_open_interest", "fetch_news_sentiment"]},
)
PREDICT = {
    "pitboss": 1,
    "name": "updown",
    "venue": "predict",
    "model": "policy/alternate",
    "strategy": {"mandate": "momentum"},
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated market with rows of every series inside hours, and one symbol that ends inside an hour."""
    home = tmp_path_factory.mktemp("prefix")
    lake = Lake(home / "lake")
    write_demo(lake, 7, 3)
    hours = np.arange(FROM - HOUR_MS, END, HOUR_MS)
    for symbol in SYMBOLS:
        rates = points(hours + 37 * MINUTE_MS, 3e-4)
        lake.put("funding", "demo", symbol, None, rates)
        lake.put("mark", "demo", symbol, None, points(hours, 100.0))
        lake.put("oracle", "demo", symbol, None, points(hours + 11 * MINUTE_MS, 100.0))
        lake.put("open_interest", "demo", symbol, None, points(hours + 23 * MINUTE_MS, 5e4), replace=True)
    ends = {"symbol": ["SOL"], "listed_at": [None], "delisted_at": [DELISTED]}
    lake.put("listings", "demo", None, None, frame("listings", {**ends, "known_at": [None]}))
    minutes = np.arange(FROM - 2 * HOUR_MS, FROM + 6 * HOUR_MS, MINUTE_MS)
    price = 80_000 * np.exp(np.cumsum(np.random.default_rng(3).normal(0, 4e-4, len(minutes))))
    bars = {"open_at": minutes, "open": price, "high": price * 1.001, "low": price * 0.999, "close": price * 1.0002}
    lake.put("bars", "minutes", "BTC", "1m", frame("bars", {**bars, "volume": np.ones(len(minutes))}))
    return home


def points(at: Any, value: float) -> pl.DataFrame:
    return frame("funding", {"at": at, "value": value * (1 + np.arange(len(at)) % 5)})


def frame(kind: str, columns: Mapping[str, Any]) -> pl.DataFrame:
    shape = series(kind).columns
    return pl.DataFrame(
        {
            name: pl.Series(columns[name], dtype=pl.Int64).cast(TIME) if shape[name] == TIME else columns[name]
            for name in shape
        },
        schema=dict(shape),
    )


def recorded(home: Path, skill: Mapping[str, Any], model: str, data_venue: str, to_at: Instant) -> dict[str, Any]:
    """What a run over the range records: every tick, every receipt in order, every equity point."""
    venue = venue_of(skill)
    request = venue.request_type()(skill=skill, from_at=FROM, to_at=to_at, model=model, data_venue=data_venue)
    course = venue.prepare(request, Lake(home / "lake"), load_settings(home, None)).course()
    journal = MemoryJournal()
    asyncio.run(replay(course, journal, venue.first_state(course), Watch()))
    ticks: list[Any] = []
    receipts: list[Any] = []
    equity: list[Any] = []
    for record in journal.records():
        body = codec.loads(record.covered)
        receipts += body.get("receipts", [])
        equity += curve.points(body.get("equity", []))
        if record.kind == "tick":
            chained = ("seq", "prev_digest", "receipts", "equity")  # spans and curves are packed by the range
            ticks.append({name: value for name, value in body.items() if name not in chained})
    return {"ticks": ticks, "receipts": receipts, "equity": equity}


def check_prefix(short: dict[str, Any], long: dict[str, Any]) -> None:
    for name, values in short.items():
        assert values == long[name][: len(values)], name


ends = st.integers(1, DAY_MS // STEP).map(lambda bars: FROM + bars * STEP)


@settings(max_examples=12)
@example(ends=[DELISTED, DELISTED + HOUR_MS], model="buy_and_hold")
@given(ends=st.tuples(ends, ends).map(sorted), model=st.sampled_from(["buy_and_hold", "random", "momentum"]))
def test_a_longer_range_changes_nothing_before_its_end(home: Path, ends: list[Instant], model: str) -> None:
    short, long = (recorded(home, PERP, f"policy/{model}", "demo", to_at) for to_at in ends)
    check_prefix(short, long)


@pytest.mark.parametrize("minutes", [45, 125, 555])
def test_the_same_holds_for_prompts_and_tools_which_read_every_series(home: Path, minutes: int) -> None:
    short, long = (
        recorded(home, PERP, "standin/analyst", "demo", FROM + after * MINUTE_MS) for after in (minutes, minutes + 65)
    )
    assert all(tick["prompt_sha256"] for tick in short["ticks"])
    check_prefix(short, long)


def test_a_funding_row_whose_hour_began_in_the_range_is_paid_though_it_is_stamped_after_the_end(home: Path) -> None:
    run = recorded(home, PERP, "policy/buy_and_hold", "demo", FROM + HOUR_MS + 30 * MINUTE_MS)
    assert FROM + HOUR_MS + 37 * MINUTE_MS in {row["at"] for row in run["receipts"] if row["kind"] == "funded"}


@pytest.mark.parametrize("minutes", [7, 61, pytest.param(150, marks=pytest.mark.proof)])
@pytest.mark.parametrize("model", ["policy/alternate", "standin/analyst"])
def test_a_longer_range_changes_nothing_before_its_end_on_predict(home: Path, minutes: int, model: str) -> None:
    short, long = (
        recorded(home, PREDICT, model, "minutes", FROM + after * MINUTE_MS) for after in (minutes, minutes + 43)
    )
    assert short["equity"]
    check_prefix(short, long)
