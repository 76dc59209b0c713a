"""The page of a deployment in a real browser: commands with their reasons, questions before those that end something."""

from collections.abc import Callable
from typing import Any

from browser.conftest import NARROW, RunningServer, overflow


def test_a_deployment_is_paused_with_a_reason_and_resumed(
    full_server: RunningServer, open_page: Callable[..., Any]
) -> None:
    page = open_page(full_server, f"/deployments/{full_server.ids['paper_deployment']}", size=NARROW)
    assert page.locator(".deployment-head .badges").inner_text().split() == ["paper", "running"]
    assert overflow(page) <= 0
    assert page.locator("[data-command=resume]").is_disabled()
    page.fill("#reason", "the feed looks wrong")
    page.click("[data-command=pause]")
    page.locator(".deployment-head .badge", has_text="paused").wait_for()
    row = page.locator("#sent tbody tr").first.inner_text()
    assert ("pause" in row, "local" in row, "the feed looks wrong" in row) == (True, True, True)
    assert (page.locator("#reason").input_value(), overflow(page)) == ("", 0)
    assert page.locator("[data-command=pause]").is_disabled()

    page.click("[data-command=kill]")
    assert page.get_by_text("Kill this deployment?").is_visible()
    assert overflow(page) <= 0
    page.keyboard.press("Escape")
    page.click("[data-command=resume]")
    page.locator(".deployment-head .badge", has_text="running").wait_for()


def test_a_halt_asks_for_a_reason_and_real_money_for_the_typed_name(
    full_server: RunningServer, open_page: Callable[..., Any]
) -> None:
    page = open_page(
        full_server, f"/deployments/{full_server.ids['halted_deployment']}", theme="dark", expected=("status of 409",)
    )
    page.click("[data-command=resume]")
    assert page.evaluate("document.activeElement.id") == "command-reason"
    page.keyboard.press("Enter")
    assert page.locator(".deployment-head .badge", has_text="halted").is_visible()
    page.fill("#command-reason", "prices checked by hand")
    page.keyboard.press("Enter")
    page.locator(".deployment-head .badge", has_text="running").wait_for()

    page.goto(f"{full_server.address}/deployments/{full_server.ids['live_deployment']}")
    assert page.get_by_text("LIVE · armed").is_visible()
    page.click("[data-command=pause]")
    page.get_by_text("LIVE · disarmed").wait_for()
    page.click("[data-command=resume]")
    page.fill("#command-confirm", "mian")
    page.keyboard.press("Enter")
    page.get_by_text("the account was not confirmed").wait_for()
    page.fill("#command-confirm", "main")
    page.keyboard.press("Enter")
    page.get_by_text("LIVE · armed").wait_for()


def test_a_skill_is_deployed_on_paper_from_its_page(full_server: RunningServer, open_page: Callable[..., Any]) -> None:
    page = open_page(full_server, "/skills/trend-thesis", size=NARROW, expected=("status of 422",))
    page.click("[data-do=deploy]")
    assert page.locator("#deploy-confirm").is_hidden()
    page.click(".deploy-caps summary")
    page.fill("[data-cap='risk.max_leverage']", "50")
    page.click("#deploy-send")
    page.get_by_text("would be looser than in the skill").wait_for()
    page.fill("[data-cap='risk.max_leverage']", "1")
    page.click("#deploy-send")
    page.wait_for_url("**/deployments/*")
    assert page.get_by_text("No process works on it now").is_visible()
    assert overflow(page) <= 0


def test_a_cap_beyond_the_skill_is_refused_in_the_drawer_and_a_lower_one_is_in_effect_at_once(
    full_server: RunningServer, open_page: Callable[..., Any]
) -> None:
    path = f"/deployments/{full_server.ids['paper_deployment']}"
    page = open_page(full_server, path, size=NARROW, expected=("status of 422",))
    page.click("[data-do=change-caps]")
    page.fill("#caps-form [data-cap='risk.max_leverage']", "50")
    page.click("#caps-send")
    problem = page.locator("#caps-problem", has_text="looser than in the skill")
    problem.wait_for()
    assert problem.evaluate("element => element.getBoundingClientRect().bottom <= innerHeight + 1"), (
        "it is below the screen"
    )
    assert overflow(page) <= 0
    page.fill("#caps-form [data-cap='risk.max_leverage']", "1")
    page.fill("#caps-reason", "calmer until the holidays")
    page.click("#caps-send")
    page.get_by_text("The caps are in effect.").wait_for()
    assert page.locator("#caps-dialog").is_hidden()
    page.locator("#caps dl", has_text="max leverage").get_by_text("1", exact=True).first.wait_for()
