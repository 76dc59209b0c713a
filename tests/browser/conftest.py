"""A real browser over real servers: Chromium driven by Playwright, and `pitboss serve` in processes of their own.

Where there is no Chromium these tests are skipped. Every page that a test opens must load nothing from other hosts, log no
error in its console and stay within its width; `open_page` checks that at the end of the test.

Processor time goes into starting browsers, tabs and servers (a tab takes as much as two pages), not into looking at pages. So a worker
starts each of them once: one browser, which tests use one after the other, and a few servers that they share. It has two tabs: in one
of them pages are drawn, as for a person; in the other they have their layout, and half of the processor time is saved. A page that a test
only reads and measures is opened in the second: `drawn=False`. Clicks and keys need frames, and so the first.
"""

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Error, sync_playwright

from browser import forked_programs
from browser.full_workspace import PASSWORD, full_workspace
from browser.scripted_model import ScriptedModel
from forked_process import ForkedProcess, forked_command
from pitboss.bootstrap.accounts import Accounts
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import look_into, open_workspace
from pitboss.store.passwords import hash_password
from pitboss_dev.browser import find_browser
from provider_thread import fake_provider

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDE, NARROW = {"width": 1440, "height": 600}, {"width": 390, "height": 844}
ICON, REST = "/favicon.ico", "/health"
"""Asked for by the browser itself where it rests between two tests; pages name their icon."""
NOBODY: dict[str, Any] = {"cookies": []}
"""The state of a browser that has no session."""


@dataclass
class RunningServer:
    """A running server."""

    url: str
    """The one-time link."""
    token: str
    api: str
    home: Path
    ids: dict[str, str] = field(default_factory=dict)
    """What is in its workspace, by names."""
    state: Any = None
    """The cookies of a browser after the one-time link was used."""

    @property
    def address(self) -> str:
        return self.api.removesuffix("/api")


# Browser ---------------------------------------------------------------------------------------------------------------


@dataclass
class PageVisit:
    """What the pages of a test may do, and what they did that they must not."""

    address: str
    expected: tuple[str, ...]
    faults: list[str]

    def note_error(self, message: Any) -> None:
        is_icon = message.location["url"].endswith(ICON)
        if message.type == "error" and not is_icon and not any(words in message.text for words in self.expected):
            self.faults.append(f"console: {message.text}")

    def note_foreign(self, url: str) -> None:
        if not url.startswith((self.address, "data:", "blob:")):
            self.faults.append(f"foreign request: {url}")


class OpenBrowser:
    """The browser of a worker, started when the first test needs it.

    Playwright leaves its event loop running in this thread. Between two tests of the browser the loop is not the thread's running
    one, so that other tests can use `asyncio.run`.
    """

    def __init__(self) -> None:
        self._driver: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.browser: Any = None
        self.context: Any = None
        self.visit: PageVisit | None = None
        """What the test that uses the tab expects of its pages."""
        self._tabs: dict[bool, Any] = {}
        """By whether their pages are drawn."""

    def enter(self) -> None:
        """A test of the browser begins."""
        if self._driver is not None:
            asyncio._set_running_loop(self._loop)

    def leave(self) -> None:
        """It has ended."""
        asyncio._set_running_loop(None)

    def started(self, path: str) -> Any:
        """The context that all tabs are opened in."""
        if self._driver is None:
            self._driver = sync_playwright()
            driver = self._driver.__enter__()
            self._loop = asyncio.get_running_loop()
            self.browser = driver.chromium.launch(executable_path=path, args=list(ARGUMENTS))
            self.context = self.browser.new_context(reduced_motion="reduce")
        return self.context

    def tab(self, drawn: bool = True) -> Any:
        """The tab; a new one if a test has left the last one in a state that the next should not see."""
        if drawn not in self._tabs:
            tab = self._tabs[drawn] = self.context.new_page() if drawn else self._tab_without_frames()
            tab.on("console", lambda message: self.visit and self.visit.note_error(message))
            tab.on("pageerror", lambda error: self.visit and self.visit.faults.append(f"script: {error}"))
            tab.on("request", lambda request: self.visit and self.visit.note_foreign(request.url))
        return self._tabs[drawn]

    def _tab_without_frames(self) -> Any:
        """A tab that draws frames only on request, where the browser can do that; otherwise an ordinary one."""
        page = self.context.new_page()
        target = self.context.new_cdp_session(page).send("Target.getTargetInfo")["targetInfo"]
        options = {"browserContextId": target["browserContextId"], "enableBeginFrameControl": True}
        try:
            with self.context.expect_page() as created:
                self.browser.new_browser_cdp_session().send("Target.createTarget", {"url": "about:blank", **options})
        except Error:
            return page
        page.close()
        return created.value

    def tidy(self) -> None:
        """Leave the pages, and reset their storage, their requests and their handlers of dialogs."""
        self.visit = None
        for drawn, tab in list(self._tabs.items()):
            is_editor = tab.evaluate("document.querySelector('#skill-text') !== null")  # asks before it is left
            if is_editor or tab._impl_obj.listeners("dialog"):
                tab.close()
                del self._tabs[drawn]
            elif tab.url.startswith("http") and not tab.url.endswith(REST):
                tab.evaluate("localStorage.clear(); sessionStorage.clear();")
        self.rest()

    def rest(self) -> None:
        """Leave the pages for one of the same server that asks for nothing; an empty page would take a new process."""
        for tab in self._tabs.values():
            if tab.url.startswith("http") and not tab.url.endswith(REST):
                tab.goto("/".join(tab.url.split("/")[:3]) + REST)

    def close(self) -> None:
        """End the browser."""
        if self._driver is not None:
            self.enter()
            self.browser.close()
            self._driver.__exit__(None, None, None)
            self.leave()


@pytest.fixture(scope="session")
def open_browser() -> Iterator[OpenBrowser]:
    browser = OpenBrowser()
    yield browser
    browser.close()


@pytest.fixture(autouse=True)
def browser_loop(open_browser: OpenBrowser) -> Iterator[None]:
    """Playwright's loop is the running one during tests of the browser only."""
    open_browser.enter()
    yield
    open_browser.leave()


@pytest.fixture
def context(open_browser: OpenBrowser) -> Any:
    """The one context. What a test stored in it does not reach the next: it begins without cookies."""
    path = find_browser()
    if path is None:
        pytest.skip("there is no Chromium; `playwright install chromium` or a package of the system brings one")
    return open_browser.started(path)


@pytest.fixture
def open_page(context: Any, open_browser: OpenBrowser) -> Iterator[Callable[..., Any]]:
    """Open a page in the tab after the one-time link was used; checks at the end what every page must keep to.

    `expected` are words of the errors that the console logs for a refusal which the test is about.
    """
    faults: list[str] = []

    def open_(
        server: RunningServer,
        path: str = "/",
        size: dict[str, int] = WIDE,
        theme: str = "light",
        state: Any = None,
        expected: tuple[str, ...] = (),
        drawn: bool = True,
    ) -> Any:
        page = open_browser.tab(drawn)
        open_browser.visit = None
        open_browser.rest()  # until it is left a page may ask for something, and the cookies change
        open_browser.visit = PageVisit(server.address, expected, faults)
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=theme)
        context.clear_cookies()
        if state is None and server.state is None:
            page.goto(server.url)
            server.state = context.storage_state()
            if path == "/":
                return page
        else:
            context.add_cookies((state or server.state)["cookies"])
        page.goto(server.address + path)
        if drawn:  # the page of a run that is being composed loads itself again
            page.locator("[data-wait]").wait_for(state="detached")
            page.wait_for_load_state()
        return page

    yield open_
    open_browser.tidy()
    assert faults == []


def overflow(page: Any) -> int:
    """By how many pixels the content is wider than the window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


# Servers ---------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., RunningServer]]:
    """Start `pitboss serve` on a copy of a workspace. Keywords are variables of its environment."""
    processes: list[subprocess.Popen[str]] = []

    def start(source: Path, ids: dict[str, str] | None = None, **environment: str) -> RunningServer:
        home = Path(shutil.copytree(source, tmp_path_factory.mktemp("served") / "home"))
        options = ("--home", home, "--port", 0, "--json")
        program = (forked_programs.__file__, json.dumps(forked_command()), "pitboss", "serve")
        process = ForkedProcess(*program, *options, env={**os.environ, **environment})
        processes.append(process)
        assert process.stdout is not None
        return RunningServer(**json.loads(process.stdout.readline()), home=home, ids=ids or {})

    yield start
    for process in processes:
        process.terminate()
    for process in processes:
        process.communicate(timeout=60)


@pytest.fixture(scope="session")
def model() -> Iterator[ScriptedModel]:
    """The model that the chat and the paid runs of `server` ask."""
    script = ScriptedModel()
    with fake_provider(script) as provider:
        script.provider = provider
        yield script


@pytest.fixture(scope="session")
def server(serve: Callable[..., RunningServer], demo_home: Path, model: ScriptedModel) -> RunningServer:
    """The demo workspace, with workers and a model that costs money."""
    with look_into(load_settings(demo_home)) as workspace:
        ids = {"traded": workspace.runs.listing(1).runs[0].id}
    return serve(
        demo_home,
        ids,
        LLM_BASE_URL=model.provider.url,
        LLM_API_KEY="test-key-123456",
        LLM_MODEL="fake",
        PITBOSS_CHAT_MODEL="llm/fake",
        PITBOSS_CHAT_PRICE_IN="1",
        PITBOSS_CHAT_PRICE_OUT="2",
        PITBOSS_DAILY_USD="100000",
        PITBOSS_MAX_WORKERS="1",
    )


@pytest.fixture(scope="session")
def full_server(
    serve: Callable[..., RunningServer], demo_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> RunningServer:
    """A workspace with something on every page, in which nothing is executed."""
    home, ids = full_workspace(demo_home, tmp_path_factory)
    return serve(home, ids, PITBOSS_EXECUTOR="none")


@pytest.fixture(scope="session")
def empty_server(serve: Callable[..., RunningServer], tmp_path_factory: pytest.TempPathFactory) -> RunningServer:
    """A workspace without runs, skills and data, with the admin anna."""
    home = tmp_path_factory.mktemp("empty") / "home"
    with open_workspace(load_settings(home)) as workspace:
        Accounts(workspace).users.add("anna", "admin", hash_password(PASSWORD, "ab" * 16, log_n=4, p=1))
    return serve(home, PITBOSS_MAX_WORKERS="1")


@pytest.fixture(scope="session")
def screenshots(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that pictures of whole pages are kept in: the one of `--screenshots`, or one of this test run."""
    chosen = request.config.getoption("screenshots")
    folder = Path(chosen) if chosen else tmp_path_factory.getbasetemp() / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def pictures(request: pytest.FixtureRequest, screenshots: Path) -> Path | None:
    """The folder for pictures of quick looks at pages, if `--screenshots` asks for them."""
    return screenshots if request.config.getoption("screenshots") else None
