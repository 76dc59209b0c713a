"""A report saved to a file, in a real browser: all charts show the same part of time, wide and on a phone, without a server."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser.conftest import NARROW, WIDE, OpenBrowser, overflow
from pitboss.core.instant import DAY_MS, HOUR_MS
from pitboss.report.comparison.chart import equity_chart
from pitboss.report.shell import ReportPage, html_document
from pitboss.venues.perp.panels.page import compose
from report.test_report import sample

EQUITY, BTC, ETH = "figure[data-part=equity]", "figure[data-part='price/BTC']", "figure[data-part='price/ETH']"

START = 1_750_000_000_000


@pytest.fixture(scope="module")
def saved_report_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("saved") / "report.html"
    path.write_text(html_document(compose(sample(days=40, every=96))), encoding="utf-8")
    return path.as_uri()


def chart_starts(page: Any) -> list[int]:
    return [int(page.get_attribute(figure, "data-start")) for figure in (EQUITY, BTC, ETH)]


def drag(page: Any, element: str, start: float, end: float) -> None:
    """Drag over an element from one share of its width to another."""
    page.locator(element).scroll_into_view_if_needed()
    box = page.locator(element).bounding_box()
    page.mouse.move(box["x"] + box["width"] * start, box["y"] + 12)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * end, box["y"] + 14, steps=3)
    page.mouse.up()


def test_charts_of_a_file_share_one_range_show_candles_when_near_and_fit_a_phone(
    saved_report_url: str, context: Any, open_browser: OpenBrowser
) -> None:
    page, faults = open_browser.tab(), list[str]()
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.set_viewport_size(WIDE)
    page.goto(saved_report_url)
    (whole,) = set(chart_starts(page))
    assert page.locator(f"{BTC} .candle").count() == 0
    drag(page, "#equity .strip", 0.5, 0.53)
    page.wait_for_selector(f"{BTC} .candle", state="attached")
    (near,) = set(chart_starts(page))
    assert near > whole
    page.hover(f"{ETH} svg[role=img]")
    shown = [page.inner_text(f"{figure} .readout") for figure in (EQUITY, BTC, ETH)]
    assert len({text[:20] for text in shown}) == 1, "the read-outs are of one instant"
    assert "Drawdown" in shown[0]
    assert "Close" in shown[1]
    page.click("#prices [data-do=zoom-reset]")
    page.wait_for_selector(f"{EQUITY}[data-start='{whole}']")
    page.set_viewport_size(NARROW)
    page.wait_for_selector(f"{EQUITY} svg.narrow")
    assert overflow(page) == 0
    labels = page.locator(f"{EQUITY} .grid text[text-anchor=middle]")
    boxes = sorted((box["x"], box["x"] + box["width"]) for box in (each.bounding_box() for each in labels.all()))
    assert len(boxes) >= 2
    assert all(left[1] < right[0] for left, right in pairwise(boxes)), "labels do not overlap"
    boxes_too_wide = "boxes => boxes.filter(box => box.scrollWidth > box.clientWidth).map(box => box.ariaLabel)"
    assert page.eval_on_selector_all(".scroll:has(> table)", boxes_too_wide) == [], "tables fit"
    assert page.locator(".round-trips td:visible").count() > 4
    assert page.locator(".by-symbol td[data-label]:visible").count() > 4
    assert faults == []


def test_the_curves_of_compared_runs_zoom_and_switch_like_those_of_a_report(
    tmp_path: Path, context: Any, open_browser: OpenBrowser
) -> None:
    at = np.arange(400, dtype=np.float64) * HOUR_MS + START
    runs = [{"label": label, "run_id": f"run-{label}", "model": "policy/sma_cross"} for label in "AB"]
    chart = equity_chart(runs, [(at, 100 + np.sin(at / DAY_MS)), (at[200:], 100 + np.cos(at[200:] / DAY_MS))])
    page_of = ReportPage("compared", [], [], [("equity", "Equity", "Equity", chart)])
    path = tmp_path / "compared.html"
    path.write_text(html_document(page_of), encoding="utf-8")
    page = open_browser.tab()
    page.set_viewport_size(WIDE)
    page.goto(path.as_uri())
    page.wait_for_selector(f"figure[data-start='{int(at[0])}'] .line.h1", state="attached")
    drag(page, "#equity .strip", 0.6, 0.8)
    page.wait_for_selector("#equity [data-do=zoom-reset]:not([disabled])")
    page.hover("figure svg[role=img]")
    assert re.fullmatch(r"2025-\d\d-\d\d \d\d:\d\d UTC · A \d+\.\d\d · B \d+\.\d\d", page.inner_text(".readout"))
    page.click("text=run-B")
    page.wait_for_selector("figure:not(:has(div .line.h1))")
    page.set_viewport_size(NARROW)
    page.wait_for_selector("figure svg.narrow")
    assert overflow(page) == 0
