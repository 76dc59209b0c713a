import asyncio
import json
import os
import random
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from import_files import SHARED
from source_servers import (
    FAULTS,
    HOUR,
    MIN15,
    START,
    FakeTime,
    HyperliquidServer,
    candles,
    closing,
    funding,
    serving_app,
)

from data.lake_files import lake_files
from example_counts import seeds
from forked_process import ForkedProcess
from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import iso, parse_instant
from pitboss.data.download import DownloadResult, download, rows_digest
from pitboss.data.lake import Lake
from pitboss.data.source import DownloadRequest
from pitboss.data.sources import hyperliquid, source

BARS, MOST, MOST_RATES = 1_300, 540, 216  # three pages of bars, two of rates, over the end of a year
END = START + BARS * MIN15
FULL_BARS, FULL_MOST = 12_000, 5_000  # three pages of the venue's own size
FULL_END = START + FULL_BARS * MIN15


@pytest.fixture(scope="module", autouse=True)
def small_pages() -> Iterator[None]:
    """Pages as small as those of `market()`; a program that a test starts has those of the venue."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hyperliquid, "MOST_CANDLES", MOST)
        patch.setattr(hyperliquid, "MOST_FUNDING", MOST_RATES)
        yield


def market(bars: int = BARS, most: int = MOST, **more: Any) -> HyperliquidServer:
    return HyperliquidServer(
        candles={("BTC", "15m"): candles("BTC", bars), ("ETH", "15m"): candles("ETH", 300)},
        funding={"BTC": funding("BTC", 560), "ETH": funding("ETH", 40)},
        most=most,
        **more,
    )


def run_download(
    lake: Lake,
    exchange: HyperliquidServer,
    time: FakeTime | None = None,
    seed: int = 1,
    replace: bool = False,
    **more: Any,
) -> list[DownloadResult]:
    fetcher = (time or FakeTime(END + HOUR)).fetcher(seed)
    with serving_app(exchange.app()) as url:
        asked: dict[str, Any] = {"venue": "hyperliquid", "symbols": ("BTC", "ETH"), "intervals": ("15m",)}
        asked |= {"kinds": ("meta", "bars", "funding"), "from_at": START, "to_at": END, "base_url": url} | more
        work = download(lake, source("hyperliquid"), DownloadRequest(**asked), fetcher, replace=replace)
        return asyncio.run(closing(fetcher, work))


@pytest.fixture(scope="module")
def uninterrupted_contents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    lake = Lake(tmp_path_factory.mktemp("undisturbed"))
    run_download(lake, market())
    return lake_files(lake.root)


def test_all_pages_of_all_series_arrive_with_their_digest(lake: Lake) -> None:
    results = {(result.kind, result.symbol): result for result in run_download(lake, market())}
    bars = lake.bars("hyperliquid", "BTC", "15m")
    assert bars is not None
    assert bars.open_at.tolist() == [START + index * MIN15 for index in range(BARS)]
    assert bars.close.tolist() == [float(row["c"]) for row in candles("BTC", BARS)]
    rates = lake.points("funding", "hyperliquid", "BTC")
    assert rates is not None
    assert rates.at.tolist() == [START + index * HOUR for index in range(BARS // 4)]
    assert lake.assets("hyperliquid")["BTC"].tiers[1].max_leverage == 20
    assert results["bars", "BTC"].added == results["bars", "BTC"].rows == BARS
    stored = lake.stored_rows("bars", "hyperliquid", "BTC", "15m")
    assert results["bars", "BTC"].digest == rows_digest(stored)
    assert results["bars", "BTC"].holes == 0


def test_what_is_there_is_not_asked_for_again(lake: Lake) -> None:
    run_download(lake, market())
    again = market()
    results = run_download(lake, again, kinds=("bars",), symbols=("BTC",))
    assert results[0].added == 0
    assert [body["type"] for body in again.requests] == ["meta"]


def test_only_the_hole_between_stored_bars_is_asked_for(lake: Lake) -> None:
    run_download(lake, market(), kinds=("bars",), symbols=("BTC",), to_at=START + 300 * MIN15)
    run_download(lake, market(), kinds=("bars",), symbols=("BTC",), from_at=START + 1_000 * MIN15)
    between = market()
    results = run_download(lake, between, kinds=("bars",), symbols=("BTC",))
    assert (results[0].added, results[0].holes) == (700, 0)
    spans = [body["req"] for body in between.requests[1:]]
    assert min(span["startTime"] for span in spans) == START + 300 * MIN15
    assert max(span["endTime"] for span in spans) < START + 1_000 * MIN15


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_alone_leaves_the_same_bytes(
    lake: Lake, uninterrupted_contents: dict[str, bytes], fault: str
) -> None:
    run_download(lake, market(faults=lambda number: fault if number in (2, 3, 6, 11) else None))
    assert lake_files(lake.root) == uninterrupted_contents


@pytest.mark.parametrize("seed", seeds(*range(4), quick=2))
def test_faults_in_any_mixture_leave_the_same_bytes(
    lake: Lake, uninterrupted_contents: dict[str, bytes], seed: int
) -> None:
    chance = random.Random(seed)
    plan = [chance.choice((*FAULTS, None, None)) for _ in range(40)]
    run_download(lake, market(faults=lambda number: plan[number] if number < len(plan) else None), seed=seed)
    assert lake_files(lake.root) == uninterrupted_contents


@pytest.mark.parametrize("most", [37, 249, FULL_MOST])
def test_a_server_that_gives_fewer_rows_at_once_is_paged_through(
    lake: Lake, uninterrupted_contents: dict[str, bytes], most: int
) -> None:
    if most == 37:
        run_download(lake, market(most=most), symbols=("ETH",), kinds=("bars",))
        assert lake.extent("hyperliquid", "ETH", "15m") == (START, START + 299 * MIN15)
        return
    run_download(lake, market(most=most))
    assert lake_files(lake.root) == uninterrupted_contents


def test_a_bar_that_is_still_open_is_never_stored(lake: Lake) -> None:
    now = START + 10 * MIN15 + 1
    run_download(lake, market(), FakeTime(now), kinds=("bars",), symbols=("BTC",), to_at=now)
    assert lake.extent("hyperliquid", "BTC", "15m") == (START, START + 9 * MIN15)


def test_a_clock_of_ours_that_is_ahead_does_not_make_an_open_bar_final(lake: Lake) -> None:
    # The server dates its replies by the machine's clock; its newest bar is open by that.
    ahead = parse_instant("2100-01-01")
    start = ahead - 10 * MIN15
    exchange = HyperliquidServer(candles={("BTC", "15m"): candles("BTC", 10, start=start)})
    results = run_download(
        lake, exchange, FakeTime(ahead + HOUR), kinds=("bars",), symbols=("BTC",), from_at=start, to_at=ahead
    )
    assert results[0].rows == 0


def test_asking_stays_inside_the_weights_of_a_minute(lake: Lake) -> None:
    time = FakeTime(FULL_END + HOUR)
    spent: list[tuple[float, int]] = []
    exchange = market(FULL_BARS // 2, most=100)
    plain = exchange.rows

    def counting(body: dict[str, Any]) -> Any:
        rows = plain(body)
        per = 60 if body["type"] == "candleSnapshot" else 20
        spent.append((time.elapsed(), 20 + (len(rows) // per if body["type"] != "meta" else 0)))
        return rows

    exchange.rows = counting  # type: ignore[method-assign]
    run_download(lake, exchange, time, symbols=("BTC",), to_at=START + FULL_BARS // 2 * MIN15)
    assert sum(weight for _, weight in spent) > 1_200
    for at, _ in spent:
        assert sum(weight for at_s, weight in spent if at - 60 < at_s <= at) <= 1_200
    assert time.elapsed() < 60 * (sum(weight for _, weight in spent) / 1_200 + 2)


def test_a_hole_of_the_venue_is_reported_and_not_filled(lake: Lake) -> None:
    rows = candles("BTC", 300)
    exchange = HyperliquidServer(candles={("BTC", "15m"): rows[:100] + rows[110:]})
    result = run_download(lake, exchange, kinds=("bars",), symbols=("BTC",), to_at=START + 300 * MIN15)[0]
    assert (result.rows, result.holes) == (290, 1)
    assert "1 hole, the first from 2024-12-21T01:00:00Z to 2024-12-21T03:30:00Z" in result.notes


def test_history_that_begins_later_than_asked_is_reported(lake: Lake) -> None:
    exchange = HyperliquidServer(candles={("BTC", "15m"): candles("BTC", 100, start=START + 50 * MIN15)})
    result = run_download(lake, exchange, kinds=("bars",), symbols=("BTC",), to_at=START + 150 * MIN15)[0]
    assert result.notes == ("the source has it only from 2024-12-20T12:30:00Z on",)


def test_open_interest_is_recorded_at_the_moment_it_was_asked_for(lake: Lake) -> None:
    states = [{"openInterest": str(5 + index), "markPx": "1.5", "oraclePx": "1.6"} for index in range(3)]
    time = FakeTime(END + 123)
    run_download(lake, HyperliquidServer(contexts=states), time, kinds=("open_interest",))
    held = lake.points("open_interest", "hyperliquid", "ETH")
    assert held is not None
    assert (held.at.tolist(), held.value.tolist()) == ([END + 123], [6.0])


def test_a_mistyped_symbol_is_reported_before_anything_is_stored(lake: Lake) -> None:
    with pytest.raises(UserError) as caught:
        run_download(lake, market(), symbols=("BTCC",))
    assert caught.value.hint == "did you mean BTC?"
    assert lake_files(lake.root) == {}


def test_all_means_every_listed_symbol_that_still_trades(lake: Lake) -> None:
    results = run_download(lake, market(), symbols=("all",), kinds=("bars",))
    assert [result.symbol for result in results] == ["BTC", "ETH"]


def test_rows_of_another_symbol_are_never_stored(lake: Lake) -> None:
    exchange = HyperliquidServer(candles={("BTC", "15m"): candles("ETH", 50)})
    with pytest.raises(TransientError, match="asked for 15m candles of BTC, got 15m of ETH"):
        run_download(lake, exchange, kinds=("bars",), symbols=("BTC",))
    assert lake_files(lake.root) == {}


def test_a_bar_that_cannot_be_is_never_stored(lake: Lake) -> None:
    rows = candles("BTC", 50)
    rows[20]["h"] = "1"
    with pytest.raises(TransientError, match="is below low"):
        run_download(lake, HyperliquidServer(candles={("BTC", "15m"): rows}), kinds=("bars",), symbols=("BTC",))
    assert lake_files(lake.root) == {}


def test_stored_bars_stay_as_they_are_unless_they_are_to_be_replaced(lake: Lake) -> None:
    exchange = HyperliquidServer(candles={("BTC", "15m"): candles("BTC", 50)})
    span = {"kinds": ("bars",), "symbols": ("BTC",), "to_at": START + 50 * MIN15}
    run_download(lake, exchange, kinds=("bars",), symbols=("BTC",), to_at=START + 10 * MIN15)
    mine = lake.stored_rows("bars", "hyperliquid", "BTC", "15m")
    assert mine is not None
    lake.put("bars", "hyperliquid", "BTC", "15m", mine.with_columns(pl.col("volume") + 1), replace=True)
    kept = run_download(lake, exchange, **span)[0]
    assert (kept.added, kept.replaced) == (40, 0)
    renewed = run_download(lake, exchange, replace=True, **span)[0]
    assert (renewed.added, renewed.replaced) == (0, 10)
    bars = lake.bars("hyperliquid", "BTC", "15m")
    assert bars is not None
    assert bars.volume.tolist() == [float(row["v"]) for row in candles("BTC", 50)]


def test_an_overlap_that_two_pages_disagree_about_is_refused(lake: Lake) -> None:
    exchange = market()
    plain = exchange.rows

    def changing(body: dict[str, Any]) -> Any:
        rows = plain(body)
        later = body["type"] == "candleSnapshot" and body["req"]["startTime"] > START
        return [row | {"v": "77"} for row in rows] if later else rows

    exchange.rows = changing  # type: ignore[method-assign]
    with pytest.raises(UserError, match="already stored with other values"):
        run_download(lake, exchange, kinds=("bars",), symbols=("BTC",))


def test_a_server_that_never_recovers_is_given_up_with_what_was_stored_kept(lake: Lake) -> None:
    with pytest.raises(TransientError, match=r"answers 429 \(tried 8 times\)"):
        run_download(lake, market(faults=lambda number: "busy" if number > 3 else None))
    assert lake.extent("hyperliquid", "BTC", "15m") is not None


def start_download(home: Path, url: str, to_at: int = END) -> ForkedProcess:
    words = f"data download hyperliquid --symbols BTC,ETH --interval 15m --from 2024-12-20 --to {iso(to_at)}"
    words += f" --kinds meta,bars,funding --json --home {home} --base-url {url}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PITBOSS_")}
    return ForkedProcess("-m", "pitboss", *words.split(), env=environment)


@pytest.mark.chaos
def test_a_download_killed_again_and_again_ends_like_one_that_was_not(
    tmp_path: Path, uninterrupted_contents: dict[str, bytes]
) -> None:
    for held in (3, 4):  # a page in, and further pages in
        exchange = market(hold=held)
        with serving_app(exchange.app()) as url:
            process = start_download(tmp_path, url)
            assert exchange.reached.wait(60)
            process.send_signal(signal.SIGKILL)
            process.communicate()
    assert lake_files(tmp_path / "lake").keys() != uninterrupted_contents.keys()
    exchange = market()
    with serving_app(exchange.app()) as url:
        process = start_download(tmp_path, url)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert lake_files(tmp_path / "lake") == uninterrupted_contents
    assert {(one["kind"], one["symbol"]): one["rows"] for one in json.loads(out)}["bars", "BTC"] == BARS


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(20))
def test_a_kill_at_any_moment_leaves_a_lake_that_ends_the_same(
    tmp_path: Path, uninterrupted_contents: dict[str, bytes], seed: int
) -> None:
    wait = 0.7 + random.Random(seed).random() * 1.2
    with serving_app(market().app()) as url:
        process = start_download(tmp_path, url)
        try:
            process.wait(wait)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
        process = start_download(tmp_path, url)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert lake_files(tmp_path / "lake") == uninterrupted_contents


def test_a_setting_names_another_address_and_an_option_wins_over_it(tmp_path: Path) -> None:
    from pitboss.bootstrap.download import run_download as bring_by_settings
    from pitboss.bootstrap.settings import Settings
    from pitboss.data.download import DownloadProgress

    by_setting, by_option = HyperliquidServer(), HyperliquidServer()
    with serving_app(by_setting.app()) as first, serving_app(by_option.app()) as second:
        settings = Settings(home=tmp_path, hyperliquid_url=first)
        for base_url in ("", second):
            request = DownloadRequest("", kinds=("meta",), base_url=base_url)
            asyncio.run(
                bring_by_settings(Lake(tmp_path / "lake"), settings, "hyperliquid", request, DownloadProgress())
            )
    assert (len(by_setting.requests), len(by_option.requests)) == (1, 1)


@pytest.mark.parametrize(
    ("name", "more"),
    [("rss", {"base_url": "http://x"}), ("hyperliquid", {"urls": ("http://x",)}), ("hyperliquid", {"files": True})],
)
def test_an_option_that_a_source_does_not_take_is_refused(tmp_path: Path, name: str, more: dict[str, Any]) -> None:
    from pitboss.bootstrap.download import run_download as bring_by_settings
    from pitboss.bootstrap.settings import Settings
    from pitboss.data.download import DownloadProgress

    with pytest.raises(UserError):
        asyncio.run(
            bring_by_settings(
                Lake(tmp_path), Settings(home=tmp_path), name, DownloadRequest("", **more), DownloadProgress()
            )
        )


def test_ctrl_c_keeps_what_came_and_says_how_to_go_on(tmp_path: Path) -> None:
    exchange = market(FULL_BARS, FULL_MOST, hold=3)
    with serving_app(exchange.app()) as url:
        process = start_download(tmp_path, url, FULL_END)
        assert exchange.reached.wait(60)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "stopped; 5,002 new rows are stored. Continue with the same command:" in err
    assert "pitboss data download hyperliquid --symbols BTC,ETH" in err
    assert Lake(tmp_path / "lake").extent("hyperliquid", "BTC", "15m") == (START, START + 4_998 * MIN15)


def recorded_wire_reply(name: str) -> Any:
    path = SHARED / "wire" / "hyperliquid" / name
    if not path.is_file():
        pytest.skip(f"{path} is not here: recorded replies of the venue")
    return json.loads(path.read_bytes())


def test_recorded_replies_of_the_venue_are_stored(lake: Lake) -> None:
    sessions = {one["request"]["type"]: one for one in recorded_wire_reply("sdk_info_shared.json")}
    rates, bars, meta = sessions["fundingHistory"], sessions["candleSnapshot"], sessions["meta"]["response"]
    asked, coin = bars["request"]["req"], rates["request"]["coin"]
    exchange = HyperliquidServer(
        candles={(asked["coin"], asked["interval"]): bars["response"]}, funding={coin: rates["response"]}, meta=meta
    )
    of_bars = {"symbols": (asked["coin"],), "intervals": (asked["interval"],), "to_at": asked["endTime"]}
    results = run_download(lake, exchange, kinds=("meta", "bars"), from_at=bars["response"][0]["t"], **of_bars)
    assert {one.kind: one.rows for one in results} == {"meta": len(meta["universe"]), "bars": len(bars["response"])}
    first = rates["response"][0]["time"] // HOUR * HOUR
    funded = run_download(lake, exchange, kinds=("funding",), symbols=(coin,), from_at=first)[0]
    assert funded.rows == len(rates["response"])
    assert funded.first_at == first


def test_real_candles_replayed_with_faults_equal_their_import(lake: Lake, tmp_path: Path) -> None:
    path = SHARED / "hyperliquid" / "candles" / "15m" / "BTC.parquet"
    if not path.is_file():
        pytest.skip(f"{path} is not here: real candles")
    from pitboss.data.importing import import_paths

    frame = pl.read_parquet(path).head(8_000)
    imported = Lake(tmp_path / "imported")
    part = tmp_path / "candles" / "15m" / "BTC.parquet"
    part.parent.mkdir(parents=True)
    frame.write_parquet(part)
    import_paths(imported, [part])
    rows = [
        {
            "t": at,
            "T": at + MIN15 - 1,
            "s": "BTC",
            "i": "15m",
            "o": str(o),
            "h": str(h),
            "l": str(low),
            "c": str(c),
            "v": str(v),
        }
        for at, o, h, low, c, v in frame.select(
            pl.col("date").dt.epoch("ms"), "open", "high", "low", "close", "volume"
        ).iter_rows()
    ]
    exchange = HyperliquidServer(
        candles={("BTC", "15m"): rows},
        faults=lambda number: FAULTS[number % len(FAULTS)] if number % 3 == 0 else None,
    )
    results = run_download(
        lake,
        exchange,
        FakeTime(rows[-1]["t"] + HOUR),
        kinds=("bars",),
        symbols=("BTC",),
        from_at=rows[0]["t"],
        to_at=rows[-1]["t"] + 1,
    )
    assert results[0].digest == rows_digest(imported.stored_rows("bars", "hyperliquid", "BTC", "15m"))


def test_a_list_in_place_of_the_asset_table_is_a_malformed_reply(lake: Lake) -> None:
    exchange = market()
    exchange.meta = [exchange.meta]
    with pytest.raises(TransientError, match="the reply is not one asset table"):
        run_download(lake, exchange)
