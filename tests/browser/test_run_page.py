"""The page of a run in a real browser: filters, the drawer of a refused decision, zoom, keys, a phone-sized window."""

from collections.abc import Callable
from typing import Any

import pytest

from browser.conftest import NARROW, WIDE, RunningServer, overflow

RULE = "R3_POSITION_CAP"
MARGIN = "limit $2,022.02, with this order $8,087.69: $6,065.67 beyond"
EQUITY, PRICES = "figure[data-part=equity]", "figure[data-part='price/BTC']"


@pytest.fixture(scope="module")
def run_id(server: RunningServer) -> str:
    return server.ids["traded"]


def rows_shown(page: Any, count: int) -> None:
    page.locator(".log .shown", has_text=f"{count} rows").wait_for()


def wait_for_decision(page: Any, text: str) -> None:
    """Wait until the drawer shows the decision at this place of the list."""
    page.locator("#decision[open] .decision-head", has_text=text).wait_for()


def test_a_refused_decision_is_found_and_its_rule_and_margin_are_read(
    server: RunningServer, run_id: str, open_page: Callable[..., Any]
) -> None:
    page = open_page(server, f"/runs/{run_id}")
    rows_shown(page, 92)  # the proposals
    page.select_option(".log-filters [name=outcome]", "all")
    rows_shown(page, 552)
    assert page.locator(".log-row").count() < 60  # of the 552 only those in sight exist
    page.select_option(".log-filters [name=outcome]", "refused")
    rows_shown(page, 8)
    assert page.locator(".log-row").count() == 8
    page.click(".log-row >> nth=0")
    drawer = page.locator("#decision[open] .decision")
    drawer.wait_for()
    text = drawer.inner_text()
    assert RULE in text
    assert MARGIN in text
    assert "1 of 8" in text
    page.click("[data-do=next-decision]")
    wait_for_decision(page, "2 of 8")
    page.keyboard.press("k")
    wait_for_decision(page, "1 of 8")
    page.keyboard.press("Escape")
    page.wait_for_selector("#decision:not([open])", state="attached")
    assert page.locator("line.pin").count() >= 2  # the decision is marked on the charts


def test_the_keyboard_moves_through_the_table_and_opens_a_decision(
    server: RunningServer, run_id: str, open_page: Callable[..., Any]
) -> None:
    page = open_page(server, f"/runs/{run_id}?outcome=refused")
    rows_shown(page, 8)
    for key in ("j", "j", "k", "j"):
        page.keyboard.press(key)
    page.wait_for_selector(".log-row.selected[data-index='1']")
    page.keyboard.press("Enter")
    page.wait_for_selector("#decision[open] .decision")
    assert "2 of 8" in page.inner_text(".decision-head")
    page.keyboard.press("j")
    wait_for_decision(page, "3 of 8")
    page.keyboard.press("Escape")
    page.wait_for_selector("#decision:not([open])", state="attached")
    page.wait_for_selector(".log-view:focus")  # the table has the keys again
    page.keyboard.press("End")
    page.wait_for_selector(".log-row.selected[data-index='7']")


def test_charts_zoom_pan_and_return_and_their_read_out_follows(
    server: RunningServer, run_id: str, open_page: Callable[..., Any]
) -> None:
    page = open_page(server, f"/runs/{run_id}")
    whole, prices = (page.get_attribute(figure, "data-start") for figure in (EQUITY, PRICES))

    def changed(figure: str, before: str) -> str:
        """Wait until a chart begins elsewhere than before; where it begins then."""
        return page.wait_for_selector(f"{figure}:not([data-start='{before}'])").get_attribute("data-start")

    page.click("#equity [data-do=zoom-in]")
    zoomed = changed(EQUITY, whole)
    page.click("#equity [data-do=pan-right]")
    later = changed(EQUITY, zoomed)
    assert int(whole) < int(zoomed) < int(later)
    page.hover(f"{EQUITY} svg[role=img]")
    assert "This run" in page.inner_text(f"{EQUITY} .readout")
    page.focus(f"{EQUITY} svg[role=img]")
    page.keyboard.press("Shift+ArrowLeft")
    assert int(changed(EQUITY, later)) < int(later)
    page.keyboard.press("0")
    page.wait_for_selector(f"{EQUITY}[data-start='{whole}']")
    page.wait_for_selector(f"{PRICES}[data-start='{prices}']")  # each chart is drawn when its own reply arrives
    box = page.locator(f"{EQUITY} svg[role=img]").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 110, steps=3)
    page.mouse.up()
    assert int(changed(EQUITY, whole)) > int(whole)
    assert int(changed(PRICES, prices)) > int(prices)  # all charts show the same time


def test_a_mark_on_a_chart_opens_its_decision_and_a_link_leads_to_one(
    server: RunningServer, run_id: str, open_page: Callable[..., Any]
) -> None:
    page = open_page(server, f"/runs/{run_id}#d53")
    page.wait_for_selector("#decision[open] .decision[data-seq='53']")
    page.keyboard.press("Escape")
    mark = page.locator("figure[data-part='price/BTC'] .marks a").first
    seq = str(mark.get_attribute("href")).removeprefix("#d")
    mark.dispatch_event("click")
    page.wait_for_selector(f"#decision[open] .decision[data-seq='{seq}']")


def test_the_page_and_its_drawer_fit_a_phone_and_a_wide_window(
    server: RunningServer, run_id: str, open_page: Callable[..., Any]
) -> None:
    for size, theme in ((NARROW, "light"), (WIDE, "dark")):
        page = open_page(server, f"/runs/{run_id}", size, theme)
        rows_shown(page, 92)
        assert overflow(page) == 0
        page.locator(".log-row").first.click()
        page.wait_for_selector("#decision[open] .decision")
        assert overflow(page) == 0
        drawer = "document.querySelector('#decision')"
        assert page.evaluate(f"{drawer}.scrollWidth - {drawer}.clientWidth") == 0


def test_a_decision_is_asked_again_and_the_fork_is_followed_to_its_end_beside_its_source(
    server: RunningServer, run_id: str, open_page: Callable[..., Any]
) -> None:
    page = open_page(server, f"/runs/{run_id}")
    page.click("[data-do=verify-run]")
    page.locator(".run-result.ok", has_text="hashes to the digest").wait_for()
    page.goto(f"{server.address}/runs/{run_id}?outcome=refused#d53")
    page.wait_for_selector("#decision[open] .fork-form")
    page.fill("#fork-model", "policy/hold")
    page.click(".fork-form [type=submit]")
    page.wait_for_selector(".live, #changes table", timeout=60_000)  # a short fork may be over before its page is open
    page.wait_for_selector("#changes table", timeout=120_000)
    changes = page.inner_text("#changes")
    assert "2025-01-22 05:00" in changes
    assert "Open long BTC for $8,088.08 at 3×" in changes
    assert f"/runs/{run_id}" in str(page.get_attribute("#changes .facts a", "href"))
