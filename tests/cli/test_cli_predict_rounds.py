"""`pitboss predict rounds` and `pitboss predict markets`."""

from pathlib import Path

import polars as pl
import pytest
from run_command import pitboss_ok, pitboss_refused

from pitboss.core.instant import iso, parse_instant

START = parse_instant("2026-02-21T14:30:00Z")
MINUTE = 60_000
REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "predict"


@pytest.fixture
def rounds(tmp_path: Path) -> Path:
    path = tmp_path / "rounds.csv"
    outcomes = [1.0, 1.0, 0.0, 0.5, 1.0]
    starts = [START + place * 5 * MINUTE for place in range(len(outcomes))]
    pl.DataFrame({"start": starts, "duration_s": [300] * 5, "up_price": outcomes}).write_csv(path)
    return path


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.csv"
    opens = [100.0, 101.0, 100.99, 100.995, 102.0]
    pl.DataFrame({"time": [START + place * 5 * MINUTE for place in range(5)], "price": opens}).write_csv(path)
    return path


def test_rounds_are_settled_and_the_rest_is_listed_by_the_size_of_its_move(rounds: Path, prices: Path) -> None:
    result = pitboss_ok("predict", "rounds", rounds, "--prices", prices, "--json").json
    assert {name: result[name] for name in ("rounds", "agreed", "undecided", "unpriced")} == {
        "rounds": 3,
        "agreed": 1,
        "undecided": 1,
        "unpriced": 1,
    }
    assert result["share"] == pytest.approx(1 / 3)
    assert [round(miss["move_bps"], 2) for miss in result["misses"]] == [-0.99, 0.5]
    assert result["misses"][0] == {
        "start": iso(START + 5 * MINUTE),
        "duration_s": 300,
        "open": 101.0,
        "close": 100.99,
        "move_bps": pytest.approx(-0.990099),
        "recorded": "UP",
        "settled": "DOWN",
    }
    assert result["bands"][0] == {"move": "under 1 bps", "rounds": 2}
    plain = pitboss_ok("predict", "rounds", rounds, "--prices", prices).out
    assert "1 of 3 rounds settle as recorded: 33.33 %" in plain
    assert "under 1 bps" in plain
    assert "-0.99" in plain


def test_real_rounds_agree_in_97_percent_and_every_other_one_is_listed() -> None:
    if not REAL.exists():
        pytest.skip("the real rounds are not here")
    asked = ("predict", "rounds", REAL / "updown_rounds_btc.parquet", "--prices", REAL / "binance_spot_1m_btc.parquet")
    result = pitboss_ok(*asked, "--json").json
    assert result["share"] >= 0.97
    assert result["rounds"] > 2_000
    assert (
        result["rounds"] - result["agreed"] == len(result["misses"]) == sum(band["rounds"] for band in result["bands"])
    )
    moves = [abs(miss["move_bps"]) for miss in result["misses"]]
    assert moves == sorted(moves, reverse=True)
    assert len(pitboss_ok(*asked).out.splitlines()) > len(moves)


def test_prices_of_another_time_are_reported_with_both_times(rounds: Path, tmp_path: Path) -> None:
    late = tmp_path / "late.csv"
    pl.DataFrame({"time": [START + 10**9], "price": [5.0]}).write_csv(late)
    said = pitboss_refused("predict", "rounds", rounds, "--prices", late)
    assert iso(START) in said
    assert iso(START + 10**9) in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("{rounds}",), "--prices"),
        (("{rounds}", "--prices", "nowhere.csv"), "nowhere.csv"),
        (("nowhere.parquet", "--prices", "{prices}"), "nowhere.parquet"),
        (("{prices}", "--prices", "{prices}"), "no column for duration_s"),
        (("{rounds}", "--prices", "{rounds}"), "no column for the price"),
        (("{rounds}", "--prices", "{prices}", "--within", "soon"), "--within"),
        (("{rounds}", "--prices", "{prices}", "--asset", "X", "--jsn"), "--json"),
    ],
)
def test_what_cannot_be_compared_is_said_in_a_line(
    rounds: Path, prices: Path, words: tuple[str, ...], said: str
) -> None:
    filled = [word.format(rounds=rounds, prices=prices) for word in words]
    assert said in pitboss_refused("predict", "rounds", *filled)


def test_markets_at_a_time_are_those_of_the_schedule() -> None:
    result = pitboss_ok("predict", "markets", "--at", "2026-02-21T14:30:00Z", "--json").json
    assert (result["at"], result["source"]) == ("2026-02-21T14:30:00Z", "schedule")
    first = result["markets"][0]
    assert first == {
        "market_id": "BTC-2026-02-21T14:45:00Z",
        "tiers": ["15m"],
        "expiry": "2026-02-21T14:45:00Z",
        "seconds_to_expiry": 900,
    }
    tiers = [tier for market in result["markets"] for tier in market["tiers"]]
    assert set(tiers) == {"15m", "1h", "1d", "1w"}
    lefts = [market["seconds_to_expiry"] for market in result["markets"]]
    assert lefts == sorted(lefts)
    assert lefts[0] > 0
    plain = pitboss_ok("predict", "markets", "--at", "2026-02-21T14:30:00Z").out
    assert len(plain.splitlines()) == len(lefts) + 1
    assert "00:15:00" in plain


def test_tiers_that_meet_are_one_market_and_can_be_chosen() -> None:
    at = ("predict", "markets", "--at", "2026-02-20T06:30:00Z", "--json")
    friday = [market for market in pitboss_ok(*at).json["markets"] if market["expiry"] == "2026-02-20T08:00:00Z"]
    assert [market["tiers"] for market in friday] == [["15m", "1h", "1d", "1w"]]
    weekly = pitboss_ok(*at, "--tiers", "1w").json["markets"]
    assert {tuple(market["tiers"]) for market in weekly} == {("1w",)}
    assert pitboss_ok(*at, "--underlying", "ETH").json["markets"][0]["market_id"].startswith("ETH-")


def test_markets_without_a_time_are_those_of_now() -> None:
    assert pitboss_ok("predict", "markets", "--json").json["markets"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--at", "soon"), "--at"),
        (("--at", "9999-12-31"), "outside of the schedule"),
        (("--at", "1969-01-01"), "outside of the schedule"),
        (("--tiers", "2h"), "15m, 1h, 1d, 1w"),
        (("--live", "--at", "2026-02-21"), "--live"),
    ],
)
def test_a_time_or_tier_that_is_not_there_is_said_in_a_line(words: tuple[str, ...], said: str) -> None:
    assert said in pitboss_refused("predict", "markets", *words)


@pytest.mark.parametrize("command", ["rounds", "markets", "price"])
def test_help_has_an_example(command: str) -> None:
    assert f"pitboss predict {command} " in pitboss_ok("predict", command, "--help").out
