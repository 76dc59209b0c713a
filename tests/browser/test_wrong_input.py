"""Forms that are filled in wrongly, and pages whose session or connection has ended: each says so."""

from collections.abc import Callable
from typing import Any

from browser.conftest import RunningServer

BACKTEST = "/backtest?skill=trend-thesis&data=demo"
UNAUTHORIZED = {"status": 401, "content_type": "application/problem+json", "body": '{"detail": "no session"}'}


def test_what_the_browser_cannot_read_is_named_at_its_field_and_starts_no_run(
    full_server: RunningServer, open_page: Callable[..., Any]
) -> None:
    page = open_page(full_server, BACKTEST)
    page.get_by_text("This costs nothing").wait_for()
    page.click("#repeats", click_count=3)
    page.keyboard.type("1e")
    page.locator("#repeats-error", has_text="repeats: ").wait_for()
    page.click("#start-run")
    assert page.url.endswith(BACKTEST)
    page.fill("#repeats", "1")
    page.fill("#from", "")
    page.locator("#from-error", has_text="from: ").wait_for()
    assert ":00Z" not in page.inner_text("main")


def test_a_study_in_which_nothing_varies_says_what_is_missing(
    full_server: RunningServer, open_page: Callable[..., Any]
) -> None:
    page = open_page(full_server, "/studies")
    page.click("[data-do=new-sweep]")
    page.click("#study button[type=submit]")
    page.get_by_text("Name a field and its values first.").wait_for()
    page.keyboard.press("Escape")
    page.click("[data-do=new-arena]")
    page.click("#study button[type=submit]")
    page.get_by_text("Name a model first.").wait_for()


def test_a_session_that_has_ended_and_a_server_that_is_away_are_told_in_words(
    full_server: RunningServer, open_page: Callable[..., Any]
) -> None:
    page = open_page(full_server, BACKTEST, expected=("status of 401", "ERR_FAILED"))
    page.get_by_text("This costs nothing").wait_for()
    page.route("**/api/estimate", lambda route: route.fulfill(**UNAUTHORIZED))
    page.fill("#equity", "500")
    page.get_by_text("your session has ended (sign in again)").wait_for()
    page.unroute("**/api/estimate")
    page.route("**/api/estimate", lambda route: route.abort())
    page.fill("#equity", "600")
    page.get_by_text("the server does not answer").wait_for()
    page.unroute("**/api/estimate")


def test_the_home_page_goes_on_after_a_failure_and_leaves_when_the_session_has_ended(
    full_server: RunningServer, open_page: Callable[..., Any]
) -> None:
    statuses = [503, 200, 401]
    page = open_page(full_server, "/", expected=("status of 503", "status of 401"))
    left = full_server.address + "/?left"

    def reply(route: Any) -> None:
        status = statuses.pop(0) if statuses else 401
        route.fulfill(status=status, content_type="text/html", body=f"<p data-active=1>answer {status}</p>")

    page.route("**/now", reply)
    page.get_by_text("answer 200").wait_for(timeout=60_000)
    page.route(full_server.address + "/", lambda route: route.fulfill(status=303, headers={"Location": left}))
    page.wait_for_url(left, timeout=60_000)
    page.unroute_all()


def test_the_page_of_an_active_run_is_loaded_again_when_its_run_is_gone(
    full_server: RunningServer, open_page: Callable[..., Any]
) -> None:
    path = f"/api/runs/{full_server.ids['queued']}"
    address = full_server.address + path.removeprefix("/api")
    page = open_page(full_server, "/", expected=("status of 404",))
    loads: list[str] = []

    def load(route: Any) -> None:
        loads.append(route.request.url)
        if len(loads) == 1:
            route.continue_()
        else:
            route.fulfill(content_type="text/html", body="loaded again")

    page.route(address, load)
    page.route(f"**{path}/events", lambda route: route.fulfill(status=404))
    page.route(full_server.address + path, lambda route: route.fulfill(status=404))
    page.goto(address)
    page.get_by_text("loaded again").wait_for()
    page.unroute_all()
