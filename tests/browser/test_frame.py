"""What surrounds every page, in a real browser."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from browser.conftest import NARROW, WIDE, Served, overflow


@pytest.fixture(scope="module")
def server(serve: Callable[..., Served], demo_home: Path) -> Served:
    return serve(demo_home)


def test_the_link_opens_the_home_page_and_the_theme_button_switches(
    server: Served, open_page: Callable[..., Any]
) -> None:
    page = open_page(server)
    assert page.title() == "Home – pitboss"
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.click("[data-do=theme]")
    assert page.evaluate(paper) != light
    state = page.context.storage_state()
    for size in (WIDE, NARROW):
        assert overflow(open_page(server, "/", size, state=state)) == 0
