"""Runs that are queued or executed, in a real browser: watched on a phone until the end, and cancelled by the button."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

from browser.conftest import NARROW, RunningServer, overflow
from browser.page_screenshots import save_screenshot
from browser.scripted_model import SLOW, ScriptedModel
from server.web.test_api_runs import DAY

TICKS = 24
SLOW_DAY = {**DAY, "model": f"llm/{SLOW}", "price_in": 0.01, "price_out": 0.01, "speculate": "0"}
PATIENCE_MS = 60_000
"""Until a worker, which is another process, has begun."""


def enqueue_run(server: RunningServer, body: dict[str, Any]) -> str:
    """Queue a run, and return its id."""
    reply = httpx2.post(f"{server.api}/runs", json=body, headers={"Authorization": f"Bearer {server.token}"})
    assert reply.status_code == 201, reply.text
    return reply.json()["run_id"]


def status(server: RunningServer, run_id: str) -> str:
    reply = httpx2.get(f"{server.api}/runs/{run_id}", headers={"Authorization": f"Bearer {server.token}"})
    return reply.json()["status"]


def ticks_shown(page: Any, count: int) -> None:
    """Wait until the page shows this number of completed ticks."""
    page.locator("[data-show=ticks]", has_text=f"{count} of {TICKS}").wait_for(timeout=PATIENCE_MS)


def equity_path_length(page: Any) -> int:
    """The length of the path that draws the equity of the run."""
    return page.evaluate("document.querySelector('[data-show=equity] path.line')?.getAttribute('d').length ?? 0")


def test_a_run_is_watched_on_a_phone_until_its_end(
    server: RunningServer, model: ScriptedModel, open_page: Callable[..., Any], screenshots: Path
) -> None:
    model.hold()
    page = open_page(server, f"/runs/{enqueue_run(server, SLOW_DAY)}", NARROW)
    model.let(3)
    ticks_shown(page, 3)
    drawn = "(least) => document.querySelector('[data-show=equity] path.line')?.getAttribute('d').length > least"
    page.wait_for_function(drawn, arg=0)
    early, share = equity_path_length(page), page.evaluate("document.querySelector('[data-show=bar]').value")
    assert 0 < share < 50
    model.let(9)
    ticks_shown(page, 12)
    assert page.evaluate("document.querySelector('[data-show=bar]').value") > share
    page.wait_for_function(drawn, arg=early)
    assert page.locator(".newest li").count() == 12
    save_screenshot(page, "run-watched", screenshots, "dark", "narrow")
    model.let(TICKS - 12)
    page.locator(".chip", has_text="complete").wait_for(timeout=PATIENCE_MS)
    assert page.locator("#decisions").count() == 1
    assert overflow(page) == 0


def test_a_run_is_cancelled_by_its_button_while_it_is_executed_and_while_it_waits(
    server: RunningServer, full_server: RunningServer, model: ScriptedModel, open_page: Callable[..., Any]
) -> None:
    model.hold()
    run_id = enqueue_run(server, {**SLOW_DAY, "from": "2025-03-05", "to": "2025-03-06"})
    page = open_page(server, f"/runs/{run_id}")
    model.let(2)
    ticks_shown(page, 2)
    page.get_by_role("button", name="Cancel").click()
    model.let(1)
    page.get_by_text("This run was cancelled.").wait_for(timeout=PATIENCE_MS)
    assert page.get_by_role("button", name="Cancel").count() == 0
    assert page.get_by_role("button", name="Resume").is_visible()
    assert status(server, run_id) == "cancelled"

    waiting = enqueue_run(full_server, {**DAY, "seed": 2})
    page = open_page(full_server, f"/runs/{waiting}")
    assert "Waiting for a worker" in page.inner_text("main")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("This run was cancelled.").wait_for()
    assert status(full_server, waiting) == "cancelled"
