"""The community pages in a real browser: a waiting transaction is approved, and the log follows what is written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from browser.conftest import NARROW, Served, overflow
from forum_workspace import ask_for_approvals, fill_forum, write_log
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import look_into


@pytest.fixture(scope="module")
def server(serve: Callable[..., Served], demo_home: Path) -> Served:
    server = serve(demo_home)
    fill_forum(server.home)
    ask_for_approvals(server.home)
    write_log(server.home, "the first word")
    return server


@pytest.fixture(scope="module")
def state(server: Served, chromium: Any) -> Any:
    """The session of the one-time link, which works once."""
    context = chromium.new_context()
    context.new_page().goto(server.url)
    state = context.storage_state()
    context.close()
    return state


def states(server: Served) -> list[str]:
    with look_into(load_settings(server.home)) as workspace:
        return sorted(request.state for request in workspace.approval_requests.listing(every=True))


def test_a_waiting_transaction_is_approved_by_a_person(
    server: Served, state: Any, open_page: Callable[..., Any]
) -> None:
    page = open_page(server, "/community", state=state)
    page.get_by_role("link", name="Decide").click()
    questions: list[str] = []

    def answer(dialog: Any) -> None:
        questions.append(dialog.message)
        dialog.accept()

    page.on("dialog", answer)
    assert page.get_by_role("button", name="Approve").count() == 2
    page.get_by_role("button", name="Approve").first.click()
    page.get_by_role("button", name="Withdraw").wait_for()
    assert questions == ["Let the agent send this transaction?"]
    assert states(server) == ["approved", "pending"]
    page.get_by_role("button", name="Deny").click()
    page.get_by_text("Nothing waits for an approval").wait_for()
    assert states(server) == ["approved", "denied"]


def test_the_log_shows_a_new_entry_without_a_reload(server: Served, state: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(server, "/community/log", state=state)
    assert page.get_by_text("the first word").is_visible()
    write_log(server.home, "a new word")
    page.get_by_text("a new word").wait_for(timeout=20_000)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_community_page_is_wider_than_a_phone(
    theme: str, server: Served, state: Any, open_page: Callable[..., Any]
) -> None:
    page = open_page(server, "/community", size=NARROW, theme=theme, state=state)
    for path in ("", "/requests", "/agents", "/approvals", "/log", "/threads/asks"):
        page.goto(f"{server.address}/community{path}")
        assert overflow(page) == 0, path
