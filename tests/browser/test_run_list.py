"""The list of runs in the narrowest common window of a computer, and on a phone."""

from collections.abc import Callable
from typing import Any


def test_every_column_is_in_sight_and_a_period_stays_in_one_line(
    full_server: Any, open_page: Callable[..., Any]
) -> None:
    page = open_page(full_server, "/runs", {"width": 1280, "height": 800}, drawn=False)
    hidden = "document.querySelector('.compare-form .scroll')"
    assert page.evaluate(f"{hidden}.scrollWidth - {hidden}.clientWidth") <= 0
    page = open_page(full_server, "/runs", {"width": 390, "height": 844}, drawn=False)
    lines = """cells => cells.map(cell => {
        const range = document.createRange();
        range.selectNodeContents(cell);
        return range.getClientRects().length;
    })"""
    counts = page.locator(".run-list tbody td:nth-child(5)").evaluate_all(lines)
    assert set(counts) == {1}
