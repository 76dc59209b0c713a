"""The routes of market data: the list, coverage with gaps, imports and downloads."""

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.instant import HOUR_MS, iso, parse_instant
from pitboss.data.source import DownloadRequest
from pitboss.server.api.downloads import MOST_LISTED, BackgroundDownload, Downloads

START = parse_instant("2025-01-01")


def bars(hours: Iterator[int] | range | list[int]) -> bytes:
    rows = ["open_time,open,high,low,close,volume"]
    rows += [f"{iso(START + hour * HOUR_MS)},10,11,9,10,1" for hour in hours]
    return "\n".join(rows).encode()


def import_csv(client: TestClient, content: bytes, **options: Any) -> Any:
    params = {"name": "BTC.csv", "kind": "bars", "symbol": "BTC", "interval": "1h", "venue": "mine", **options}
    return client.post("/api/data/import", params=params, content=content)


def test_the_demo_market_is_listed_with_its_coverage(client: TestClient) -> None:
    series = client.get("/api/data").json()
    assert all(row["synthetic"] for row in series)
    named = {"venue": "demo", "kind": "bars", "symbol": "BTC", "interval": "5m"}
    covered = client.get("/api/data/coverage", params=named).json()
    assert len(covered["days"]) == 90
    assert covered["gaps"] == []
    assert client.get("/api/data/coverage", params={**named, "symbol": "DOGE"}).status_code == 404
    assert client.get("/api/data/coverage", params={**named, "kind": "../.."}).status_code == 404


def test_an_imported_file_shows_its_gap_on_the_days_that_it_covers(client: TestClient) -> None:
    reply = import_csv(client, bars([*range(30), *range(42, 60)]))
    assert reply.status_code == 200, reply.text
    (result,) = reply.json()
    assert (result["rows"], result["added"], result["path"]) == (48, 48, "BTC.csv")
    named = {"venue": "mine", "kind": "bars", "symbol": "BTC", "interval": "1h"}
    covered = client.get("/api/data/coverage", params=named).json()
    assert [day["rows"] for day in covered["days"]] == [24, 12, 12]
    assert [day["missing"] for day in covered["days"]] == [0, 0.5, 0]
    assert covered["gaps"] == [{"from_at": "2025-01-02T06:00:00Z", "to_at": "2025-01-02T18:00:00Z"}]
    assert import_csv(client, bars(range(30))).json()[0]["added"] == 0


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (b"", {}),
        (b"nonsense", {}),
        (bars(range(3)), {"name": "../BTC.csv"}),
        (bars(range(3)), {"venue": "../../x"}),
        (bars(range(3)), {"venue": "demo"}),
        (bars(range(3)), {"interval": "7m"}),
        (b"\x00\xff" * 100, {"name": "BTC.parquet"}),
    ],
)
def test_a_file_that_cannot_be_imported_is_a_422_and_stores_nothing(
    client: TestClient, content: bytes, options: dict[str, Any]
) -> None:
    before = client.get("/api/data").json()
    refused = import_csv(client, content, **options)
    assert (refused.status_code, refused.json()["status"]) == (422, 422), refused.text
    assert client.get("/api/data").json() == before


@pytest.mark.parametrize("name", ["BTC (1).csv", "BTC.csv"])
def test_a_file_is_imported_under_the_name_that_a_browser_gave_it(client: TestClient, name: str) -> None:
    assert import_csv(client, bars(range(3)), name=name).json()[0]["path"] == name


def test_a_name_that_is_refused_says_which_characters_are_accepted(client: TestClient) -> None:
    reply = import_csv(client, bars(range(3)), name="BTC*.csv")
    assert reply.status_code == 422
    assert "letters, digits, spaces" in reply.json()["hint"]


def test_a_name_that_no_file_can_have_is_a_422(client: TestClient) -> None:
    reply = import_csv(client, bars(range(3)), name="a" + "ü" * 140 + ".csv")
    assert (reply.status_code, reply.json()["code"]) == (422, "user_error")


def test_a_download_that_runs_stays_in_the_list_however_many_follow_it(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(self: Downloads, download: BackgroundDownload, *arguments: object) -> None:
        del self, arguments
        download.status = "running" if download.id == "0" else "complete"

    monkeypatch.setattr(Downloads, "_run", run)
    downloads = Downloads()
    for number in range(MOST_LISTED + 10):
        download = BackgroundDownload(f"{number}", "local", "binance", DownloadRequest(""), 0)
        downloads.start(download, workspace.lake, workspace.settings, False)
        downloads.join()
    listed = [download.id for download in downloads.listed("local")]
    assert (listed[-1], len(listed)) == ("0", MOST_LISTED)


def test_the_demo_market_can_be_generated_again(client: TestClient) -> None:
    written = client.post("/api/data/demo").json()
    assert {row["venue"] for row in written} == {"demo"}


def test_a_download_that_fails_says_why(client: TestClient) -> None:
    started = client.post("/api/data/download", json={"source": "hyperliquid", "symbols": ["BTC"]})
    assert started.status_code == 202, started.text
    download_id = started.json()["download_id"]
    client.app.state.downloads.join()  # pyright: ignore[reportAttributeAccessIssue, reportFunctionMemberAccess]
    shown = client.get(f"/api/data/downloads/{download_id}").json()
    assert (shown["status"], shown["hint"]) == ("error", "for example interval 15m")
    assert [row["download_id"] for row in client.get("/api/data/downloads").json()] == [download_id]
    assert client.post(f"/api/data/downloads/{download_id}/cancel").status_code == 200
    assert client.get("/api/data/downloads/none").status_code == 404


@pytest.mark.parametrize("body", [{"source": "nowhere"}, {"source": "rss", "urls": ["file:///etc/passwd"]}, {}])
def test_a_wrong_download_is_refused_at_once(client: TestClient, body: dict[str, Any]) -> None:
    assert client.post("/api/data/download", json=body).status_code == 422
