"""Signing in and the settings page, in a real browser."""

import re
from collections.abc import Callable
from typing import Any

from browser.conftest import NOBODY, RunningServer
from browser.full_workspace import PASSWORD

HOSTILE = '"><img src=x onerror="document.title=1"><script>document.title=2</script>'


def test_a_person_signs_in_manages_settings_and_signs_out(
    empty_server: RunningServer, open_page: Callable[..., Any]
) -> None:
    page = open_page(empty_server, "/settings?tab=tokens", state=NOBODY)
    assert page.title() == "Sign in – pitboss"
    page.fill("#name", "Anna")
    page.fill("#password", PASSWORD)
    page.click(".sign-in button")
    page.wait_for_url(f"{empty_server.address}/settings?tab=tokens")

    page.fill("#label", HOSTILE)
    page.check("input[value='runs:read']")
    page.check("input[value='costs:read']")
    page.click("text=Create a token")
    page.wait_for_selector("#token[open]")
    token = page.input_value("#token-value")
    assert re.fullmatch("pb_[0-9a-f]{64}", token)
    with page.expect_navigation():
        page.click("#token .close")
    assert HOSTILE in page.inner_text("#tokens")
    assert "costs:read, runs:read" in page.inner_text("#tokens")
    assert token not in page.content()
    assert page.title() == "Tokens – Settings – pitboss"
    page.click("#tokens button")
    assert HOSTILE in page.inner_text("#confirm-text")
    with page.expect_navigation():
        page.click("#confirm-yes")
    assert "revoked" in page.inner_text("#tokens")

    page.goto(f"{empty_server.address}/settings?tab=keys")
    page.fill("#name", "groq")
    page.fill("#value", "gsk_0123456789")
    with page.expect_navigation():
        page.click("text=Store the key")
    assert "The key is stored." in page.inner_text(".toasts")
    assert "set 20" in page.inner_text("#keys tbody tr >> nth=0")
    assert "gsk_0123456789" not in page.content()

    page.goto(f"{empty_server.address}/settings?tab=budgets")
    page.fill("#daily_usd-value", "7.5")
    with page.expect_navigation():
        page.click("#budgets button >> nth=0")
    assert page.input_value("#daily_usd-value") == "7.5"
    assert (empty_server.home / "settings.toml").read_text() == "daily_usd = 7.5\n"

    page.goto(f"{empty_server.address}/settings?tab=users")
    page.fill("#name", "bob")
    page.fill("#password", PASSWORD)
    with page.expect_navigation():
        page.click("text=Add the user")
    assert "bob" in page.inner_text("#users")

    page.goto(f"{empty_server.address}/settings")
    page.click("text=Sign out")
    page.wait_for_url("**/sign-in")
    page.goto(f"{empty_server.address}/settings")
    assert page.title() == "Sign in – pitboss"
