"""The pages of studies, costs, data and comparisons in a real browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

from browser.conftest import NARROW, RunningServer, overflow

BARS = "open_time,open,high,low,close,volume\n" + "\n".join(
    f"2025-01-0{day}T{hour:02d}:00:00Z,10,11,9,10,1" for day in (1, 3) for hour in range(24)
)


def test_a_sweep_is_started_in_the_form_and_ends_with_its_report(
    server: RunningServer, open_page: Callable[..., Any]
) -> None:
    page = open_page(server, "/studies")
    page.click("[data-do=new-sweep]")
    page.fill("#from", "2025-03-01")
    page.fill("#to", "2025-03-03")
    page.fill("#model", "policy/momentum")
    page.fill("#axes .axis:nth-child(1) input[data-part=field]", "risk.max_leverage")
    page.fill("#axes .axis:nth-child(1) input[data-part=values]", "1, 2")
    page.get_by_text("2 runs. It costs nothing.").wait_for()
    page.click("#study button[type=submit]")
    page.wait_for_url("**/studies/*")
    page.get_by_text("Effect of each field", exact=True).wait_for(timeout=60_000)
    assert overflow(page) <= 0
    study = page.url.rpartition("/")[2]
    page.goto(f"{server.address}/studies")
    assert page.locator(f"a[href='/studies/{study}']").is_visible()

    runs = httpx2.get(f"{server.api}/studies/{study}", headers={"Authorization": f"Bearer {server.token}"}).json()
    ids = [trial["runs"][0]["run_id"] for trial in runs["trials"]]
    page.goto(f"{server.address}/compare?run={ids[0]}&run={ids[1]}")
    assert page.get_by_role("img", name="Equity of the runs from 100").is_visible()
    page.locator("#equity .chart-tools .strip").wait_for()


def test_a_file_is_imported_and_its_missing_day_is_in_the_calendar(
    full_server: RunningServer, open_page: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "BTC.csv"
    file.write_text(BARS)
    page = open_page(full_server, "/data", size=NARROW)
    page.click("[data-do=open-import]")
    page.click("#import button[type=submit]")
    page.get_by_text("Choose a file first.").wait_for()
    page.set_input_files("#file", file)
    page.select_option("#kind", "bars")
    page.select_option("#interval", "1h")
    page.fill("#symbol", "BTC")
    page.fill("#venue", "mine")
    page.click("#import button[type=submit]")
    page.get_by_text("Imported BTC.csv: 48 new rows.").wait_for()
    assert page.locator(".day.none title").first.text_content() == "2025-01-02: 0 rows, 100% missing"
    assert overflow(page) <= 0


def test_a_download_shows_why_it_failed(full_server: RunningServer, open_page: Callable[..., Any]) -> None:
    page = open_page(full_server, "/data", theme="dark")
    page.click("[data-do=open-download]")
    page.fill("#symbols", "BTC")
    page.click("#download button[type=submit]")
    page.get_by_text("hyperliquid needs from").wait_for()
    assert overflow(page) <= 0
