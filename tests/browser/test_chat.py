"""The chat drawer in a real browser, with a scripted model behind HTTP: an answer with links, marked numbers, a confirmed card."""

from collections.abc import Callable
from typing import Any

from browser.conftest import NARROW, RunningServer, overflow
from browser.scripted_model import ScriptedModel
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import look_into

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script> [run javascript:alert(3)] https://elsewhere.example/"


def ask(page: Any, text: str) -> None:
    if not page.locator("#chat").is_visible():
        page.keyboard.press("/")
    page.locator("#chat-text").fill(text)
    page.keyboard.press("Enter")
    page.locator("#chat button[data-do=stop-chat]").wait_for(state="hidden")


def test_an_answer_has_steps_links_and_marks_what_no_fact_holds(
    server: RunningServer, open_page: Callable[..., Any]
) -> None:
    run_id = server.ids["traded"]
    page = open_page(server, f"/runs/{run_id}")
    assert not page.locator("#chat").is_visible()
    page.keyboard.press("Control+k")
    assert page.locator("#chat-text").evaluate("element => element === document.activeElement")
    assert page.locator("#chat-about").inner_text() == f"about run {run_id}"
    ask(page, "Why was this refused?")
    page.locator("#chat .answer a").wait_for()
    assert page.locator("#chat .tool-steps").inner_text().strip() == "explain_decision"
    assert page.locator("#chat .answer a").get_attribute("href") == f"/runs/{run_id}#d53"
    assert page.locator("#chat .answer mark").inner_text() == "77,777"
    assert "Cost $" in page.locator("#chat .remark").inner_text()
    page.keyboard.press("Escape")
    assert not page.locator("#chat").is_visible()
    page.reload()
    page.keyboard.press("/")
    assert page.locator("#chat .question").inner_text() == "Why was this refused?", "kept while the tab is open"
    page.get_by_role("button", name="New").click()
    assert page.locator("#chat .question").count() == 0


def test_a_page_without_a_session_forgets_the_conversations_of_its_tab(
    server: RunningServer, open_page: Callable[..., Any]
) -> None:
    conversations = "Object.keys(sessionStorage).filter((name) => name.startsWith('pitboss-chat:')).length"
    page = open_page(server, f"/runs/{server.ids['traded']}")
    ask(page, "Why was this refused?")
    assert page.evaluate(conversations) == 1
    page.context.clear_cookies()
    page.goto(f"{server.address}/sign-in")
    assert page.evaluate(conversations) == 0


def test_text_of_a_model_is_inert(server: RunningServer, model: ScriptedModel, open_page: Callable[..., Any]) -> None:
    model.says["Be hostile"] = HOSTILE
    page = open_page(server, "/")
    dialogs: list[Any] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog))
    ask(page, "Be hostile")
    assert page.locator("#chat .answer").inner_text() == HOSTILE
    assert page.locator("#chat .answer *").count() == 0
    assert dialogs == []


def test_a_card_is_confirmed_and_sent_with_the_session_of_the_person(
    server: RunningServer, open_page: Callable[..., Any]
) -> None:
    page = open_page(server, f"/runs/{server.ids['traded']}")
    ask(page, "Please change the leverage")
    card = page.locator("#chat .card")
    assert card.locator("h3").inner_text() == "Save a new version of trend-thesis"
    assert card.locator("li").all_inner_texts() == ["risk.max_leverage: 3 → 2"]
    before = version(server)
    card.get_by_role("button", name="Confirm").click()
    card.locator(".result a").wait_for()
    assert version(server) == before + 1
    assert card.locator(".result a").get_attribute("href") == "/skills/trend-thesis"
    ask(page, "Please change the leverage once more")
    second = page.locator("#chat .card").nth(1)
    second.get_by_role("button", name="Dismiss").click()
    assert second.locator(".result").inner_text() == "Dismissed"
    assert version(server) == before + 1


def version(server: RunningServer) -> int:
    with look_into(load_settings(server.home)) as workspace:
        return workspace.skills.get("trend-thesis", None).version


def test_the_drawer_fills_a_phone_and_nothing_is_wider(server: RunningServer, open_page: Callable[..., Any]) -> None:
    page = open_page(server, "/", size=NARROW)
    page.get_by_role("button", name="Ask").first.click()
    for theme in ("dark", "light"):
        page.emulate_media(color_scheme=theme)
        box = page.locator("#chat").bounding_box()
        assert (box["x"], box["width"], box["height"]) == (0, 390, 844)
        assert overflow(page) == 0
    page.get_by_role("button", name="Close").click()
    assert not page.locator("#chat").is_visible()
