"""The community pages in a real browser: a waiting transaction is approved, and the log follows what is written."""

from collections.abc import Callable
from typing import Any

from browser.conftest import RunningServer
from forum_workspace import write_log
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import look_into


def states(server: RunningServer) -> list[str]:
    with look_into(load_settings(server.home)) as workspace:
        return sorted(request.state for request in workspace.approval_requests.listing(every=True))


def test_a_waiting_transaction_is_approved_by_a_person(
    full_server: RunningServer, open_page: Callable[..., Any]
) -> None:
    page = open_page(full_server, "/community")
    page.get_by_role("link", name="Decide").click()
    questions: list[str] = []

    def answer(dialog: Any) -> None:
        questions.append(dialog.message)
        dialog.accept()

    page.on("dialog", answer)
    page.get_by_role("button", name="Approve").first.wait_for()
    assert page.get_by_role("button", name="Approve").count() == 2
    page.get_by_role("button", name="Approve").first.click()
    page.get_by_role("button", name="Withdraw").wait_for()
    assert questions == ["Let the agent send this transaction?"]
    assert states(full_server) == ["approved", "pending"]
    page.get_by_role("button", name="Deny").click()
    page.get_by_text("Nothing waits for an approval").wait_for()
    assert states(full_server) == ["approved", "denied"]


def test_the_log_shows_a_new_entry_without_a_reload(full_server: RunningServer, open_page: Callable[..., Any]) -> None:
    page = open_page(full_server, "/community/log")
    assert page.get_by_text("I looked at the vault").is_visible()
    write_log(full_server.home, "a new word")
    page.get_by_text("a new word").wait_for(timeout=20_000)
