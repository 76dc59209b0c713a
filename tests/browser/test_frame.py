"""What surrounds every page, in a real browser."""

from collections.abc import Callable
from typing import Any

from browser.conftest import RunningServer


def test_the_link_opens_the_home_page_and_the_theme_button_switches(
    server: RunningServer, open_page: Callable[..., Any]
) -> None:
    page = open_page(server)
    assert page.title() == "Home – pitboss"
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.click("[data-do=theme]")
    assert page.evaluate(paper) != light
