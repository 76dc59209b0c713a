"""A real browser over a real server: Chromium driven by Playwright, and `pitboss serve` in a process of its own.

Where there is no Chromium these tests are skipped. Every page that a test opens must load nothing from other hosts, log no
error in its console and stay within its width; `open_page` checks that at the end of the test.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from demo_workspace import demo_workspace
from forked import Forked
from pitboss_dev.browser import find_browser

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@dataclass
class Served:
    """A running server."""

    url: str
    """The one-time link."""
    token: str
    api: str
    home: Path

    @property
    def address(self) -> str:
        return self.api.removesuffix("/api")


@pytest.fixture(scope="session")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace as `pitboss demo` leaves it. Copy it before writing to it."""
    return demo_workspace(tmp_path_factory)


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Path], Served]]:
    """Start `pitboss serve` on a copy of a workspace. Keywords are variables of its environment."""
    processes: list[subprocess.Popen[str]] = []

    def start(source: Path, **environment: str) -> Served:
        home = Path(shutil.copytree(source, tmp_path_factory.mktemp("served") / "home"))
        options = ("--home", home, "--port", 0, "--json")
        process = Forked("-m", "pitboss", "serve", *options, env={**os.environ, **environment})
        processes.append(process)
        assert process.stdout is not None
        return Served(**json.loads(process.stdout.readline()), home=home)

    yield start
    for process in processes:
        process.terminate()
        process.communicate(timeout=60)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The browser. Not longer than for a file: while it is open no other test of the process can use `asyncio.run`."""
    path = find_browser()
    if path is None:
        pytest.skip("there is no Chromium; `playwright install chromium` or a package of the system brings one")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def state(server: Served, chromium: Any) -> Any:
    """The cookies of somebody who has used the link of the server of this module, which works once."""
    context = chromium.new_context()
    page = context.new_page()
    page.goto(server.url)
    cookies = context.storage_state()
    context.close()
    return cookies


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Open a page as somebody who has used the one-time link; checks at the end what every page must keep to."""
    faults: list[str] = []
    contexts: list[Any] = []

    def open_(
        server: Served, path: str = "/", size: dict[str, int] = WIDE, theme: str = "light", state: Any = None
    ) -> Any:
        context = chromium.new_context(viewport=size, color_scheme=theme, storage_state=state, reduced_motion="reduce")
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: message.type == "error" and faults.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: faults.append(f"script: {error}"))
        page.on("request", lambda request: _note_foreign(request.url, server, faults))
        if state is None:
            page.goto(server.url)
        if path != "/" or state is not None:
            page.goto(server.address + path)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert faults == []


def _note_foreign(url: str, server: Served, faults: list[str]) -> None:
    if not url.startswith((server.address, "data:", "blob:")):
        faults.append(f"foreign request: {url}")


def overflow(page: Any) -> int:
    """By how many pixels the content is wider than the window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))
