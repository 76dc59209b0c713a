"""Looking at a page: in a theme and a size it must fit the window, and a picture of it is kept."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from browser.conftest import NARROW, WIDE, overflow

THEMES, SIZES = ("light", "dark"), {"wide": WIDE, "narrow": NARROW}
LOW = tuple({**size, "height": 300} for size in (NARROW, WIDE))
"""Windows of the same widths in which less is drawn: most of the processor time of these tests goes into drawing."""


FETCHED = """() => (document.querySelector('.log .shown')?.textContent ?? 'rows')
  && !document.querySelector('[data-fetch] .note')?.textContent.includes('Comparing')
  && !document.querySelector('#check-state')?.matches(':not(.ok, .bad)')
  && !document.querySelector('#estimate')?.textContent.includes('…')"""


def settled(page: Any) -> None:
    """Wait for what the scripts of a page fetch when it opens, and unfold its options."""
    page.locator("[data-wait]").wait_for(state="detached")  # the page of a run is being composed
    page.wait_for_function(FETCHED)
    page.eval_on_selector_all("details.more-options", "(all) => { for (const one of all) one.open = true; }")


def looked_at(page: Any, name: str, folder: Path, theme: str, size: str, whole: bool = False) -> None:
    """Look at an open page in a theme and a size. The picture is of what is in sight, or of the whole page."""
    page.set_viewport_size(SIZES[size])
    page.emulate_media(color_scheme=theme)
    assert overflow(page) == 0, (name, theme, size)
    kind = {"type": "png"} if whole else {"type": "jpeg", "quality": 70}
    page.screenshot(path=folder / f"{name}-{theme}-{size}.{kind['type']}", full_page=whole, **kind)


def looked_at_quickly(page: Any, name: str, folder: Path) -> None:
    """Look at an open page as on a phone by night, with a picture, and whether it fits a wide window."""
    settled(page)
    looked_at(page, name, folder, "dark", "narrow")
    fits(page, LOW[1:], name)


def fits(page: Any, sizes: Sequence[dict[str, int]], name: object) -> None:
    """Whether the page fits windows of these sizes."""
    for size in sizes:
        page.set_viewport_size(size)
        assert overflow(page) == 0, (name, size)
