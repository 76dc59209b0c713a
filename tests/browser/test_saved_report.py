"""A report saved to a file, in a real browser: all charts show the same part of time, wide and on a phone, without a server."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from browser.conftest import NARROW, WIDE, OpenBrowser, overflow
from pitboss.report.shell import html_document
from pitboss.venues.perp.panels.page import compose
from report.test_report import sample

EQUITY, BTC, ETH = "figure[data-part=equity]", "figure[data-part='price/BTC']", "figure[data-part='price/ETH']"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("saved") / "report.html"
    path.write_text(html_document(compose(sample(days=40, every=96))), encoding="utf-8")
    return path.as_uri()


def starts(page: Any) -> list[int]:
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
    saved: str, context: Any, open_browser: OpenBrowser
) -> None:
    page, faults = open_browser.tab(), list[str]()
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.set_viewport_size(WIDE)
    page.goto(saved)
    (whole,) = set(starts(page))
    assert page.locator(f"{BTC} .candle").count() == 0
    drag(page, "#equity .strip", 0.5, 0.53)
    page.wait_for_selector(f"{BTC} .candle", state="attached")
    (near,) = set(starts(page))
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
    assert faults == []
