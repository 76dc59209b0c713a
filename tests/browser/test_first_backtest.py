"""The way to a backtest in a real browser: two clicks from an empty workspace, a range on the chart, the consent to a cost."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from browser.conftest import NARROW, RunningServer
from browser.page_screenshots import PageChecker
from browser.scripted_model import ScriptedModel
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import look_into

EMPTY = {
    "/skills": "No skill is saved yet",
    "/backtest": "There is no data to run on",
    "/runs": "No runs yet",
    "/studies": "There are no studies yet",
    "/costs": "Nothing was spent in the last 30 days",
    "/data": "There is no market data yet",
    "/community": "There is no forum in this workspace",
    "/settings?tab=tokens": "No tokens",
}
"""What a page of a workspace says in which nothing happened yet."""
FINISHED_MS = 60_000
"""Until a run of another process has ended."""


def test_an_empty_workspace_says_what_to_do_and_two_clicks_lead_to_a_finished_backtest(
    empty_server: RunningServer, open_page: Callable[..., Any], pictures: Path | None
) -> None:
    page = open_page(empty_server, drawn=pictures is not None)
    looks = PageChecker(page, pictures)
    for path, words in EMPTY.items():
        looks.open(empty_server.address + path)
        assert words in page.evaluate("document.querySelector('main').innerText")
        looks.check(f"empty-{path.strip('/').partition('?')[0]}")
    looks.open(empty_server.address)
    looks.check("empty-home")
    page = open_page(empty_server, "/", NARROW)
    assert page.is_disabled("[data-do=first-run]")
    page.click("[data-do=prepare]")
    page.click("[data-do=first-run]:enabled")
    page.wait_for_url("**/runs/*")
    page.locator(".chip, .badge", has_text="complete").first.wait_for(timeout=FINISHED_MS)
    assert "trend-thesis" in page.inner_text("main")
    page.goto(page.url.partition("/runs/")[0])
    assert "Latest runs" in page.inner_text("main")


def test_the_range_is_chosen_on_the_chart_and_a_dear_run_and_its_fork_ask_before_they_spend(
    server: RunningServer, model: ScriptedModel, open_page: Callable[..., Any]
) -> None:
    page = open_page(server, "/backtest?skill=trend-thesis&data=demo", expected=("status of 409",))
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
    calls, runs = model.provider.calls, runs_of(server)
    page.click("#start-run")
    page.wait_for_selector("#confirm[open]")
    assert "may cost $" in page.inner_text("#confirm-text")
    assert "Spend up to $" in page.inner_text("#confirm-start")
    page.click("#confirm .actions [data-do=close-dialog]")
    assert page.url.startswith(f"{server.address}/backtest")
    assert (model.provider.calls, runs_of(server)) == (calls, runs), (
        "nothing is left, and nothing spent, without consent"
    )
    page.click("#start-run")
    page.click("#confirm[open] #confirm-start")
    page.wait_for_url("**/runs/*")
    page.locator(".chip, .badge", has_text="complete").first.wait_for(timeout=FINISHED_MS)
    assert model.provider.calls > calls
    assert len(runs_of(server)) == len(runs) + 1

    # A decision of that run is asked again, at the same price.
    calls, runs = model.provider.calls, runs_of(server)
    page.locator(".log-row").nth(1).click()
    page.wait_for_selector("#decision[open] .fork-form")
    page.select_option("#fork-field", "strategy.horizon")
    page.fill("#fork-value", "two hours")
    confirm = page.locator("[data-do=confirm-fork]")
    assert not confirm.is_visible()
    page.click(".fork-form [type=submit]")
    confirm.wait_for()
    assert "may cost $" in page.inner_text(".fork-problem")
    page.keyboard.press("Escape")
    page.wait_for_selector("#decision:not([open])", state="attached")
    assert (model.provider.calls, runs_of(server)) == (calls, runs), "a fork that nobody agreed to is not there"
    page.locator(".log-row").nth(1).click()
    page.wait_for_selector("#decision[open] .fork-form")
    page.select_option("#fork-field", "strategy.horizon")
    page.fill("#fork-value", "two hours")
    page.click(".fork-form [type=submit]")
    source = page.url
    confirm.click()
    page.wait_for_url(lambda url: "/runs/" in url and url.partition("#")[0] != source.partition("#")[0])
    page.wait_for_selector("#changes table, #changes .note:not(:has-text('Comparing'))", timeout=FINISHED_MS)
    assert model.provider.calls > calls
    assert len(runs_of(server)) == len(runs) + 1


def runs_of(server: RunningServer) -> set[str]:
    """The ids of all runs, those of forks too."""
    with look_into(load_settings(server.home)) as workspace:
        return {run.id for run in workspace.runs.listing().runs}
