"""Checks that pages fit the window in a theme and a size, and saves screenshots of them on request.

`make test` checks hundreds of pages, so the checks send few messages to the browser and do not use Playwright's selectors, which
are slow.
"""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import Error

from browser.conftest import NARROW, WIDE, overflow

THEMES, SIZES = ("light", "dark"), {"wide": WIDE, "narrow": NARROW}
LOW = tuple({**size, "height": 300} for size in (NARROW, WIDE))
"""Lower windows of the same widths: most of the processor time of these tests goes into drawing."""
PATIENCE_MS = 30_000
LOADS = 4
"""How often a page may reload itself while it is composed."""
SETTLED = """async (patience) => {
  const rows = () => document.querySelector('.log .shown')?.textContent ?? 'none';
  const isFetched = () => document.readyState === 'complete' && rows()
    && !document.querySelector('[data-wait]')
    && !document.querySelector('[data-fetch] .note')?.textContent.includes('Comparing')
    && !document.querySelector('#check-state')?.matches(':not(.ok, .bad)')
    && !document.querySelector('#estimate')?.textContent.includes('…');
  for (const until = performance.now() + patience; !isFetched(); await new Promise((next) => setTimeout(next, 20))) {
    if (performance.now() > until) return false;
  }
  for (const one of document.querySelectorAll('details.more-options')) one.open = true;
  return true;
}"""


def wait_until_settled(page: Any) -> None:
    """Wait for what the scripts of a page fetch when it opens, and unfold its options."""
    for is_last in (*[False] * LOADS, True):
        try:
            assert page.evaluate(SETTLED, PATIENCE_MS), page.url
        except Error:  # the page of a run is composed when it is asked for, and then loads itself again
            if is_last:
                raise
        else:
            return


def save_screenshot(page: Any, name: str, folder: Path, theme: str, size: str) -> None:
    """Check an open page in a theme and a size, and save a screenshot of the whole page."""
    page.set_viewport_size(SIZES[size])
    page.emulate_media(color_scheme=theme)
    assert overflow(page) == 0, (name, theme, size)
    # Parts below the window are drawn when they are scrolled to, which a picture of the whole page does not do.
    page.evaluate("for (const part of document.querySelectorAll('section')) part.style.contentVisibility = 'visible'")
    page.screenshot(path=folder / f"{name}-{theme}-{size}.png", full_page=True)


class PageChecker:
    """Checks pages of one tab in the dark theme, narrow and wide.

    With a folder it saves a screenshot of the visible part there; the page must then be drawn.
    """

    def __init__(self, page: Any, folder: Path | None) -> None:
        self._page = page
        self._folder = folder
        self._session = page.context.new_cdp_session(page)
        page.emulate_media(color_scheme="dark")

    def open(self, address: str) -> None:
        """Open a page in the current window size."""
        self._page.goto(address)
        wait_until_settled(self._page)

    def check(self, name: str) -> None:
        """Check the open page."""
        wait_until_settled(self._page)
        assert_fits(self._page, (NARROW, LOW[1]), name)
        if self._folder is not None:
            self._page.set_viewport_size(NARROW)
            picture = self._session.send("Page.captureScreenshot", {"format": "jpeg", "quality": 70})
            (self._folder / f"{name}-dark-narrow.jpeg").write_bytes(base64.b64decode(picture["data"]))


def assert_fits(page: Any, sizes: Sequence[dict[str, int]], name: object) -> None:
    """Assert that the page fits windows of these sizes; the current size first, because each change costs a layout."""
    for size in sorted(sizes, key=lambda size: size != page.viewport_size):
        if size != page.viewport_size:
            page.set_viewport_size(size)
        assert overflow(page) == 0, (name, size)
