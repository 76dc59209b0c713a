"""Candles of Pyth: paged, resumed, inside the limit, and nothing that cannot be."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyth_server import MINUTE_S, PythServer, columns, minutes
from source_servers import FAULTS, FakeTime, closing, serving_app

from data.lake_files import lake_files
from pitboss.bootstrap.download import run_download as bring_by_settings
from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import parse_instant
from pitboss.data.download import DownloadProgress, DownloadResult, download
from pitboss.data.fetch import MalformedReply
from pitboss.data.lake import Lake
from pitboss.data.source import DownloadRequest
from pitboss.data.sources import pyth as pyth_source
from pitboss.data.sources import source
from pitboss.data.sources.pyth import name_of, rows_of

START = parse_instant("2026-02-21")
MINUTE = 60_000
BARS, MOST = 1_400, 500  # three pages
END = START + BARS * MINUTE


@pytest.fixture(scope="module", autouse=True)
def small_pages() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pyth_source, "MOST_BARS", MOST)
        yield


def market(**more: Any) -> PythServer:
    return PythServer(rows=minutes(BARS, START // 1000), **more)


def run_download(
    lake: Lake, pyth: PythServer, time: FakeTime | None = None, timeout_s: float = 30.0, **more: Any
) -> list[DownloadResult]:
    fetcher = (time or FakeTime(END + 10 * MINUTE)).fetcher(timeout_s=timeout_s)
    with serving_app(pyth.app()) as url:
        asked: dict[str, Any] = {"venue": "pyth", "symbols": ("BTC",), "intervals": ("1m",)}
        asked |= {"from_at": START, "to_at": END, "base_url": url} | more
        return asyncio.run(closing(fetcher, download(lake, source("pyth"), DownloadRequest(**asked), fetcher)))


@pytest.fixture(scope="module")
def uninterrupted_contents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    lake = Lake(tmp_path_factory.mktemp("undisturbed"))
    run_download(lake, market())
    return lake_files(lake.root)


def test_minutes_of_several_pages_arrive_as_bars(lake: Lake) -> None:
    pyth = market()
    results = run_download(lake, pyth)
    bars = lake.bars("pyth", "BTC", "1m")
    assert bars is not None
    assert bars.open_at.tolist() == [START + index * MINUTE for index in range(BARS)]
    assert bars.close.tolist() == [row[4] for row in minutes(BARS, 0)]
    assert (results[0].added, results[0].holes) == (BARS, 0)
    assert pyth.queries[0]["path"] == "/v1/shims/tradingview/history"
    assert pyth.queries[0]["symbol"] == "Crypto.BTC/USD"
    assert pyth.queries[0]["resolution"] == "1"
    assert len(pyth.queries) <= -(-BARS // (MOST - 1))


def test_the_same_command_goes_on_where_it_was(lake: Lake, uninterrupted_contents: dict[str, bytes]) -> None:
    with pytest.raises(TransientError, match="answers 50"):
        run_download(lake, market(faults=lambda number: "down" if number > 1 else None))
    kept = lake.extent("pyth", "BTC", "1m")
    assert kept == (START, START + (MOST - 1) * MINUTE)
    rest = market()
    run_download(lake, rest)
    assert min(int(query["from"]) for query in rest.queries) >= kept[1] // 1000
    assert lake.extent("pyth", "BTC", "1m") == (START, END - MINUTE)
    again = market()
    assert run_download(lake, again)[0].added == 0
    assert again.queries == []


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_alone_leaves_the_same_bars(
    lake: Lake, uninterrupted_contents: dict[str, bytes], fault: str
) -> None:
    run_download(lake, market(faults=lambda number: fault if number in (1, 2, 4) else None))
    assert lake_files(lake.root) == uninterrupted_contents


def test_a_server_that_gives_fewer_bars_at_once_is_paged_through(
    lake: Lake, uninterrupted_contents: dict[str, bytes]
) -> None:
    run_download(lake, market(most=175))
    assert lake_files(lake.root) == uninterrupted_contents


def test_no_ten_seconds_hold_more_than_thirty_requests(lake: Lake) -> None:
    time = FakeTime(END + 10 * MINUTE)
    at: list[float] = []
    pyth = market(most=20)
    reply = pyth.reply

    async def noted(request: Any) -> Any:
        at.append(time.elapsed())
        return await reply(request)

    pyth.reply = noted
    run_download(lake, pyth, time)
    assert len(at) > 60
    assert all(later - earlier >= 10 for earlier, later in zip(at, at[30:], strict=False))
    assert time.elapsed() < 60, "it need not wait for whole minutes"


def test_a_bar_that_is_not_over_or_still_to_come_is_never_stored(lake: Lake) -> None:
    now = START + 10 * MINUTE + 1
    run_download(lake, market(), FakeTime(now), to_at=now)
    assert lake.extent("pyth", "BTC", "1m") == (START, START + 9 * MINUTE)


def test_bars_from_the_future_or_before_the_range_are_not_stored(lake: Lake) -> None:
    now = START + 10 * MINUTE
    sent = columns([*minutes(5, START // 1000 - 600), *minutes(100, START // 1000)])
    run_download(lake, PythServer(fixed_reply=sent), FakeTime(now), to_at=now)
    assert lake.extent("pyth", "BTC", "1m") == (START, START + 9 * MINUTE)


def test_a_clock_of_ours_that_is_ahead_does_not_make_an_open_bar_final(lake: Lake) -> None:
    # The server dates its replies by the machine's clock; by that these bars are all still to come.
    start = parse_instant("2099-01-01")
    pyth = PythServer(rows=minutes(10, start // 1000))
    results = run_download(lake, pyth, FakeTime(start + 60 * MINUTE), from_at=start, to_at=start + 10 * MINUTE)
    assert results[0].rows == 0


def test_a_range_that_the_service_does_not_have_is_reported_and_is_no_error(lake: Lake) -> None:
    results = run_download(lake, PythServer())
    assert results[0].rows == 0
    assert results[0].notes == ("the source has nothing in this range",)


def test_what_the_service_calls_an_error_is_reported_at_once_without_its_control_signs(lake: Lake) -> None:
    pyth = PythServer(fixed_reply={"s": "error", "errmsg": "no such\n\x1b[31m symbol " + "x" * 500})
    with pytest.raises(UserError) as caught:
        run_download(lake, pyth)
    assert len(pyth.queries) == 1
    assert "no such [31m symbol" in caught.value.message
    assert "\x1b" not in caught.value.message
    assert len(caught.value.message) < 300


ROW = (START // 1000, 100.0, 101.0, 99.0, 100.5)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ([], "neither ok nor no_data"),
        ("ok", "neither ok nor no_data"),
        ({"s": True}, "neither ok nor no_data"),
        ({"s": "ok"}, "no column 't'"),
        ({"s": "ok", "t": 5}, "no column 't'"),
        ({**columns([ROW]), "o": []}, "no column 'o'"),
        ({**columns([ROW]), "c": None}, "no column 'c'"),
        ({**columns([ROW]), "t": ["1771632000"]}, "no time"),
        ({**columns([ROW]), "t": [True]}, "no time"),
        ({**columns([ROW]), "t": [START]}, "no time"),
        ({**columns([ROW]), "t": [1e300]}, "no time"),
        ({**columns([ROW]), "t": [-5]}, "no time"),
        ({**columns([ROW]), "c": ["100.5"]}, "impossible value of 'c'"),
        ({**columns([ROW]), "c": [None]}, "impossible value of 'c'"),
        ({**columns([ROW]), "c": [False]}, "impossible value of 'c'"),
        ({**columns([ROW]), "h": [1e300]}, "impossible value of 'h'"),
        ({**columns([ROW]), "l": [-1.0]}, "not a price"),
        ({**columns([ROW]), "h": [98.0]}, "below low"),
        ({**columns([ROW]), "t": [START // 1000 + 1]}, "multiple of 1m"),
        (columns([ROW, (ROW[0], 100.0, 101.0, 99.0, 100.75)]), "two rows of one time"),
    ],
)
def test_a_reply_that_cannot_be_is_one_clear_line(lake: Lake, reply: Any, message: str) -> None:
    with pytest.raises(TransientError, match=r"tried 8 times") as caught:
        run_download(lake, PythServer(fixed_reply=reply))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert lake.bars("pyth", "BTC", "1m") is None


@pytest.mark.parametrize("content", [b"<html>busy</html>", b"", b'{"s":"ok","t":[NaN]}', b'{"s":"ok"', b"\xff\xfe"])
def test_what_is_not_json_is_tried_again_and_reported(lake: Lake, content: bytes) -> None:
    with pytest.raises(TransientError, match="not valid JSON"):
        run_download(lake, PythServer(content=content))


def test_a_reply_without_end_is_not_read(lake: Lake) -> None:
    with pytest.raises(UserError, match="sent more than"):
        run_download(lake, PythServer(content=b" " * (5 * 2**20)))


def test_a_server_that_never_answers_is_given_up(lake: Lake) -> None:
    with pytest.raises(TransientError, match=r"no complete reply in 0\.05 s"):
        run_download(lake, PythServer(hang=True), timeout_s=0.05)


@pytest.mark.parametrize("interval", ["3m", "8h"])
def test_an_interval_that_the_service_lacks_is_refused_with_those_it_has(lake: Lake, interval: str) -> None:
    with pytest.raises(UserError) as caught:
        run_download(lake, PythServer(), intervals=(interval,))
    assert "1m" in caught.value.hint


def test_another_address_comes_from_the_setting(lake: Lake, tmp_path: Path) -> None:
    pyth = market()
    with serving_app(pyth.app()) as url:
        settings = Settings(home=tmp_path, pyth_url=url)
        request = DownloadRequest("", ("BTC",), ("1m",), (), START, START + 100 * MINUTE)
        results = asyncio.run(bring_by_settings(lake, settings, "pyth", request, DownloadProgress()))
    assert (results[0].venue, results[0].rows) == ("pyth", 100)


def test_a_name_with_a_dot_is_asked_for_as_it_is() -> None:
    assert name_of("ETH") == "Crypto.ETH/USD"
    assert name_of("Equity.US.AAPL/USD") == "Equity.US.AAPL/USD"


ANYTHING = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
CELLS = st.lists(ANYTHING, min_size=1, max_size=1) | st.lists(st.integers(1, 10**6), min_size=1, max_size=1) | ANYTHING
REPLIES = st.fixed_dictionaries(
    {"s": st.just("ok") | ANYTHING, **dict.fromkeys("tohlc", CELLS)}, optional={"v": CELLS, "errmsg": ANYTHING}
)


@given(REPLIES | ANYTHING)
def test_any_reply_gives_bars_or_one_of_two_refusals(value: Any) -> None:
    try:
        rows = rows_of(value, "host", "Crypto.BTC/USD")
    except (MalformedReply, UserError):
        return
    assert all(isinstance(row["t"], int) and row["t"] > 0 for row in rows)
    assert all(abs(row[name]) < 1e12 for row in rows for name in "ohlcv")


@given(st.lists(st.integers(0, 500), max_size=40))
def test_candles_come_back_as_they_were_sent(places: list[int]) -> None:
    rows = [minutes(501, MINUTE_S)[index] for index in places]
    found = rows_of(columns(rows), "host", "x")
    assert [(row["t"] // 1000, row["o"], row["h"], row["l"], row["c"]) for row in found] == rows
