"""The way to a backtest in a real browser: two clicks from an empty workspace, a range on the chart, the consent to a cost."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from browser.conftest import NARROW, WIDE, Served, overflow
from pitboss.testing.provider import FakeProvider, decide
from serving import served

FINISHED_MS = 60_000
"""Until a run of another process has ended."""


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with served(decide) as provider:
        yield provider


@pytest.fixture(scope="module")
def server(serve: Callable[..., Served], demo_home: Path, provider: FakeProvider) -> Served:
    return serve(demo_home, LLM_BASE_URL=provider.url, LLM_API_KEY="test-key-123456", PITBOSS_DAILY_USD="100000")


def test_two_clicks_lead_from_an_empty_workspace_to_a_finished_backtest(
    serve: Callable[..., Served], open_page: Callable[..., Any], tmp_path: Path
) -> None:
    page = open_page(serve(tmp_path), size=NARROW)
    assert overflow(page) == 0
    assert page.is_disabled("[data-do=first-run]")
    page.click("[data-do=prepare]")
    page.click("[data-do=first-run]:enabled")
    page.wait_for_url("**/runs/*")
    page.locator(".chip, .badge", has_text="complete").first.wait_for(timeout=FINISHED_MS)
    assert "trend-thesis" in page.inner_text("main")
    page.goto(page.url.partition("/runs/")[0])
    assert "Latest runs" in page.inner_text("main")


def test_the_range_is_chosen_on_the_chart_and_a_dear_run_asks_before_it_spends(
    server: Served, provider: FakeProvider, open_page: Callable[..., Any]
) -> None:
    page = open_page(server, "/backtest?skill=trend-thesis&data=demo")
    before = page.input_value("#from")
    page.focus("[data-handle=from]")
    page.keyboard.press("ArrowLeft")
    assert page.input_value("#from") < before
    box = page.locator("[data-handle=to] .grip").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] - 80, box["y"] + 10, steps=3)
    page.mouse.up()
    assert page.input_value("#to") < "2025-04-01"
    page.fill("#from", "2025-03-20T00:00")
    page.fill("#to", "2025-03-20T06:00")
    page.locator("#estimate", has_text="costs nothing").wait_for()

    page.fill("#model", "llm/fake")
    page.click(".more-options summary")
    page.fill("#price_in", "1000")
    page.fill("#price_out", "1000")
    page.select_option("#speculate", "0")
    page.locator("#estimate.high", has_text="About $").wait_for()
    calls = provider.calls
    page.click("#start-run")
    page.wait_for_selector("#confirm[open]")
    assert "may cost $" in page.inner_text("#confirm-text")
    assert "Spend up to $" in page.inner_text("#confirm-start")
    page.click("#confirm .actions [data-do=close-dialog]")
    assert page.url.startswith(f"{server.address}/backtest")
    assert provider.calls == calls, "nothing is spent without consent"
    page.click("#start-run")
    page.click("#confirm[open] #confirm-start")
    page.wait_for_url("**/runs/*")
    page.locator(".chip, .badge", has_text="complete").first.wait_for(timeout=FINISHED_MS)
    assert provider.calls > calls


def test_the_pages_fit_a_phone_and_a_wide_window(
    serve: Callable[..., Served], demo_home: Path, open_page: Callable[..., Any]
) -> None:
    server = serve(demo_home)
    page = open_page(server, "/")
    state = page.context.storage_state()
    for path in ("/", "/backtest?skill=examples/trend-thesis", "/backtest?skill=examples/contract-auditor"):
        for size, theme in ((NARROW, "dark"), (WIDE, "light")):
            page = open_page(server, path, size, theme, state)
            if path != "/":
                page.click(".more-options summary")
                page.locator("#estimate", has_text="costs nothing").wait_for()
            assert overflow(page) == 0
