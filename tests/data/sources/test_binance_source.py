import asyncio
import hashlib
import io
import random
import zipfile
from typing import Any

import pytest
from aiohttp import web
from source_servers import FAULTS, HOUR, FakeTime, closing, faulty_reply, serving_app

from pitboss.core.errors import UserError
from pitboss.core.instant import iso, parse_instant
from pitboss.data.download import DownloadResult, download
from pitboss.data.fetch import MalformedReply
from pitboss.data.lake import Lake
from pitboss.data.source import DownloadRequest
from pitboss.data.sources import source
from pitboss.data.sources.binance import pair_of, read_zip

START = parse_instant("2024-01-20")
COUNT = 24 * 20
NOW = parse_instant("2024-03-01")


def klines() -> list[list[Any]]:
    rows: list[list[Any]] = []
    for index in range(COUNT):
        at, price = START + index * HOUR, 100 + index % 7
        rows.append(
            [
                at,
                str(price),
                str(price + 2),
                str(price - 2),
                str(price + 1),
                "3.5",
                at + HOUR - 1,
                "0",
                9,
                "0",
                "0",
                "0",
            ]
        )
    return rows


def rates() -> list[dict[str, Any]]:
    return [
        {
            "symbol": "BTCUSDT",
            "fundingTime": START + index * 8 * HOUR + 3,
            "fundingRate": f"0.0001{index:02d}",
            "markPrice": "1",
        }
        for index in range(COUNT // 8)
    ]


class BinanceServer:
    def __init__(self, faults: Any = lambda number: None, files: dict[str, bytes] | None = None) -> None:
        self.faults, self.files, self.request_count, self.paths = faults, files or published_files(), 0, []

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/fapi/v1/klines", self.klines)
        app.router.add_get("/fapi/v1/fundingRate", self.funding)
        app.router.add_get("/data/{path:.*}", self.file)
        return app

    async def klines(self, request: web.Request) -> web.StreamResponse:
        if request.query["symbol"] != "BTCUSDT":
            return web.json_response({"code": -1121, "msg": "Invalid symbol."}, status=400)
        return await self._cut(request, klines(), lambda row: row[0])

    async def funding(self, request: web.Request) -> web.StreamResponse:
        return await self._cut(request, rates(), lambda row: row["fundingTime"])

    async def _cut(self, request: web.Request, rows: list[Any], time: Any) -> web.StreamResponse:
        self.request_count += 1
        asked = request.query
        fit = [row for row in rows if int(asked["startTime"]) <= time(row) <= int(asked["endTime"])]
        return await faulty_reply(
            request,
            fit[: min(200, int(asked["limit"]))],
            self.faults(self.request_count),
            random.Random(self.request_count),
        )

    async def file(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        self.paths.append(path)
        content = self.files.get(path.removesuffix(".CHECKSUM"))
        if content is None:
            return web.Response(status=404)
        if path.endswith(".CHECKSUM"):
            return web.Response(text=f"{hashlib.sha256(content).hexdigest()}  {path.rpartition('/')[2]}\n")
        self.request_count += 1
        return await _bytes(content, self.faults(self.request_count))


async def _bytes(content: bytes, fault: str | None) -> web.Response:
    if fault == "busy":
        return web.Response(status=429)
    return web.Response(body=content[: len(content) // 2] if fault else content)


def zipped(name: str, text: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(name), text)
    return content.getvalue()


def published_files() -> dict[str, bytes]:
    """January as a month, with a heading; February only as days, without one."""
    rows = {iso(row[0])[:10]: "" for row in klines()}
    for row in klines():
        rows[iso(row[0])[:10]] += ",".join(str(value) for value in row) + "\n"
    heading = "open_time,open,high,low,close,volume,close_time,quote_volume,count,tbv,tbq,ignore\n"
    january = heading + "".join(text for day, text in rows.items() if day < "2024-02")
    folder, stem = "futures/um/{}/klines/BTCUSDT/1h/", "BTCUSDT-1h-"
    found = {folder.format("monthly") + f"{stem}2024-01.zip": zipped(f"{stem}2024-01.csv", january)}
    for day, text in rows.items():
        if day >= "2024-02":
            found[folder.format("daily") + f"{stem}{day}.zip"] = zipped(f"{stem}{day}.csv", text)
    for month in ("2024-01", "2024-02"):
        text = "calc_time,funding_interval_hours,last_funding_rate\n" + "".join(
            f"{row['fundingTime']},8,{row['fundingRate']}\n" for row in rates() if iso(row["fundingTime"])[:7] == month
        )
        name = f"BTCUSDT-fundingRate-{month}"
        found[f"futures/um/monthly/fundingRate/BTCUSDT/{name}.zip"] = zipped(f"{name}.csv", text)
    return found


def run_download(lake: Lake, venue: BinanceServer, **more: Any) -> list[DownloadResult]:
    fetcher = FakeTime(NOW).fetcher()
    with serving_app(venue.app()) as url:
        asked: dict[str, Any] = {"venue": "binance", "symbols": ("BTC",), "intervals": ("1h",), "from_at": START}
        asked |= {"to_at": START + COUNT * HOUR, "base_url": url} | more
        return asyncio.run(closing(fetcher, download(lake, source("binance"), DownloadRequest(**asked), fetcher)))


def test_klines_and_funding_come_whole_from_the_api(lake: Lake) -> None:
    results = run_download(lake, BinanceServer())
    assert [(result.kind, result.symbol, result.rows, result.holes) for result in results] == [
        ("bars", "BTC", COUNT, 0),
        ("funding", "BTC", COUNT // 8, 0),
    ]
    rate = lake.points("funding", "binance", "BTC")
    assert rate is not None
    assert rate.at.tolist() == [START + index * 8 * HOUR for index in range(COUNT // 8)]


def test_files_and_api_bring_the_same_rows(tmp_path: Any) -> None:
    api = run_download(Lake(tmp_path / "api"), BinanceServer())
    files = run_download(Lake(tmp_path / "files"), BinanceServer(), files=True)
    assert [result.digest for result in files] == [result.digest for result in api]


@pytest.mark.parametrize("files", [False, True])
def test_faults_change_nothing_in_what_is_stored(tmp_path: Any, files: bool) -> None:
    calm = run_download(Lake(tmp_path / "calm"), BinanceServer(), files=files)
    wild = run_download(
        Lake(tmp_path / "wild"), BinanceServer(lambda number: FAULTS[number % 9] if number % 2 else None), files=files
    )
    assert [result.digest for result in wild] == [result.digest for result in calm]


def test_an_unknown_symbol_is_reported(lake: Lake) -> None:
    with pytest.raises(UserError, match="rejects the request") as caught:
        run_download(lake, BinanceServer(), symbols=("NONE",))
    assert "check the symbol" in caught.value.hint


def test_a_symbol_with_its_quote_is_filed_without_it(lake: Lake) -> None:
    assert {result.symbol for result in run_download(lake, BinanceServer(), symbols=("BTCUSDT",))} == {"BTC"}
    assert pair_of("BTCUSDC") == "BTCUSDC"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a zip",
        zipped("a.csv", "1,2,3\n")[:-30],
        zipped("a.txt", "1,2,3\n"),
        zipped("a.csv", "1,2,3\nx,2,3\n"),
        zipped("a.csv", "open_time,a\n1,2\n"),
    ],
)
def test_what_is_no_file_of_the_venue_is_broken_and_nothing_else(content: bytes) -> None:
    with pytest.raises(MalformedReply):
        read_zip(content)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (f"{START},100,97,98,100,1,0,0,0,0,0,0", "high 97.0 is below low"),
        (f"{START},100,102", "a row of the reply is too short"),
    ],
)
def test_a_published_file_with_bad_rows_is_refused_at_once(lake: Lake, line: str, why: str) -> None:
    venue = BinanceServer(
        files={"futures/um/monthly/klines/BTCUSDT/1h/BTCUSDT-1h-2024-01.zip": zipped("a.csv", f"{line}\n")}
    )
    with pytest.raises(UserError, match=f"has a file with bad rows: .*{why}"):
        run_download(lake, venue, files=True, kinds=("bars",))
    assert venue.request_count == 1
    assert lake.list() == []
